"""Clients without any right send odd requests: nothing changes, nothing is told, and nothing fails."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.server.api.guard import hidden_node
from tests.server.api.guard.hidden_node import SECRETS, HiddenNode, Tracebacks
from tests.server.api.guard.odd_requests import ABSENT, ABSENT_ID, HIDDEN, odd_requests, with_absent
from tests.support.requests.raw import Closed, RawConnection

from ottla.model.errors import ErrorCode
from ottla.server.api.api_table import SERVED, SERVED_TO_CONTROLLERS
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.api import API_NAMES, request_class
from ottla.wire.frame import request_frame
from ottla.wire.message import Struct, fields
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.records.produce import ProduceRequest

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_ID
# Whoever knows an id is told whether there is such a topic, as in Kafka; Produce looks at acks in between.
TOLD_BY_ID = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, UNKNOWN, ErrorCode.INVALID_REQUIRED_ACKS)
EXAMPLES = 25
CASES = [
    pytest.param(key, controllers, id=API_NAMES[key] + ("-controller" if controllers else ""))
    for controllers, served in ((False, SERVED), (True, SERVED_TO_CONTROLLERS))
    for key in served
]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiddenNode]:
    with EmbeddedBroker(tmp_path_factory.mktemp("hidden"), hidden_node.settings()) as broker:
        yield HiddenNode(broker)


@pytest.fixture
def tracebacks() -> Iterator[Tracebacks]:
    handler = Tracebacks()
    logging.getLogger("ottla").addHandler(handler)
    yield handler
    logging.getLogger("ottla").removeHandler(handler)


class Told(NamedTuple):
    """What a client gets: the bytes of the answer and their meaning; nothing if the connection is closed."""

    data: bytes
    message: Any


def ask(node: HiddenNode, request: Any, version: int, controllers: bool) -> Told:
    host, port = node.node.addresses[1 if controllers else 0]
    with RawConnection(f"{host}:{port}", timeout_s=20) as connection:
        connection.send(request_frame(request, version, 7, "odd"))
        answered = request
        if isinstance(request, ProduceRequest) and request.acks == 0:
            answered, version = ApiVersionsRequest(), 0
            connection.send(request_frame(answered, version, 7, "odd"))
        try:
            data = connection.receive()
        except Closed:
            return Told(b"", None)
        return Told(data, connection.decode(type(answered).key, version, data, 7))


class Compared:
    """What answers say, with the absent names for the hidden ones, and without an order."""

    def __init__(self, hidden_id: bytes, *, by_id: bool) -> None:
        """`by_id`: whether the client knows the id of a hidden topic, and so may be told that it has no right."""
        self._hidden_id = hidden_id
        self._by_id = by_id

    def plain(self, value: Any) -> Any:
        if isinstance(value, list):
            items = sorted(map(self.plain, value), key=repr)
            return _apart(items) if self._by_id else items
        if isinstance(value, Struct):
            said = {field.name: self.plain(getattr(value, field.name)) for field in fields(type(value))}
            if self._by_id and said.get("error_code") in TOLD_BY_ID:
                said.update(error_code=UNKNOWN, error_message=None)
            return said
        if isinstance(value, str):
            return value.replace(HIDDEN, ABSENT)
        found = bytes(value) if isinstance(value, memoryview) else value
        return ABSENT_ID if found == self._hidden_id else found


def _apart(items: list[Any]) -> list[Any]:
    """Each item once, and those about no partition left out: a handler merges the answers about one id, and the guard
    gives an answer for each time that the request names it. So answers about partitions are split into one for each.
    """
    said: list[Any] = []
    for each in items:
        if isinstance(each, dict) and "partition_responses" in each:
            said += [each | {"partition_responses": [partition]} for partition in each["partition_responses"]]
        else:
            said.append(each)
    said.sort(key=repr)
    return [each for at, each in enumerate(said) if not at or each != said[at - 1]]


@pytest.mark.parametrize(("key", "controllers"), CASES)
def test_nothing_changes_and_nothing_is_told(
    node: HiddenNode, tracebacks: Tracebacks, key: int, controllers: bool
) -> None:
    low, high = (SERVED_TO_CONTROLLERS if controllers else SERVED)[key]
    before = node.state()

    @settings(max_examples=EXAMPLES, print_blob=False, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data: st.DataObject) -> None:
        version = data.draw(st.just(high) | st.integers(low, high))
        request = data.draw(odd_requests(request_class(key), version, node.topic_id))
        told = ask(node, request, version, controllers)
        sent = request_frame(request, version, 7, "odd")
        assert not [secret for secret in (*SECRETS, node.topic_id) if secret in told.data and secret not in sent]
        other = ask(node, with_absent(request, node.topic_id), version, controllers)
        compared = Compared(node.topic_id, by_id=node.topic_id in sent)
        assert compared.plain(told.message) == compared.plain(other.message)
        assert node.state() == before
        assert not tracebacks.found

    check()
    assert node.listed() == node.known
