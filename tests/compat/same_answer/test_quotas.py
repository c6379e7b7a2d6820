"""Client quotas: a client over its quota gets the same answer from Ottla as from a real Kafka.

Every script uses client ids of its own, and a new connection for each request: a throttled one is not read.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.compat.conftest import Names
from tests.compat.same_answer.test_topics import topic
from tests.server.talk import FETCH_VERSION, PRODUCE_VERSION, fetch_request, produce_request
from tests.support.requests.raw import RawConnection
from tests.support.requests.same import Both, Plain, Side

from ottla.model.ids import NO_ID
from ottla.wire.frame import request_frame
from ottla.wire.message import Request, Response
from ottla.wire.messages.security.alter_client_quotas import AlterClientQuotasRequest
from ottla.wire.messages.topics.create_partitions import CreatePartitionsRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.delete_topics import DeleteTopicsRequest

_Entry = AlterClientQuotasRequest.EntryData


def set_quota(side: Side, client_id: str, key: str, value: float) -> None:
    entity = [_Entry.EntityData(entity_type="client-id", entity_name=client_id)]
    entry = _Entry(entity=entity, ops=[_Entry.OpData(key=key, value=value, remove=False)])
    answer = side.call(AlterClientQuotasRequest(entries=[entry], validate_only=False), 1)
    assert answer["entries"][0]["error_code"] == 0, answer
    side.settle()


def asked_as(side: Side, client_id: str, request: Request[Response], version: int) -> Response:
    with RawConnection(side.bootstrap) as connection:
        connection.send(request_frame(request, version, 1, client_id))
        return connection.decode(type(request).key, version, connection.receive(), 1)


def told(side: Side, client_id: str, request: Request[Response], version: int) -> Iterator[Plain]:
    """The answer, with the throttle time in whole seconds: both were asked at slightly different times."""
    answer = asked_as(side, client_id, request, version)
    yield side.plain(answer, version, blank=("throttle_time_ms",))
    yield round(answer.throttle_time_ms / 1000)  # type: ignore[attr-defined]


@pytest.mark.parametrize("version", [4, 5, 6, 7])
def test_create_topics_over_the_quota(both: Both, new_name: Names, version: int) -> None:
    name = new_name("mutated")

    def script(side: Side) -> Iterator[Plain]:
        set_quota(side, name, "controller_mutation_rate", 1.0)
        many = CreateTopicsRequest(topics=[topic(f"{name}-{at}", 16) for at in range(2)])
        yield from told(side, name, many, version)  # the bucket has 11

    both.same(script)


@pytest.mark.parametrize("strict", [False, True])
def test_create_partitions_and_delete_topics_over_the_quota(both: Both, new_name: Names, strict: bool) -> None:
    name = new_name("mutated")

    def script(side: Side) -> Iterator[Plain]:
        side.create(name, 1)
        side.create(f"{name}-gone", 1)
        for user in ("grows", "deletes"):
            set_quota(side, f"{name}-{user}", "controller_mutation_rate", 1.0)
            used_up = CreateTopicsRequest(topics=[topic(f"{name}-of-{user}", 31)])
            yield from told(side, f"{name}-{user}", used_up, 7)
        growth = CreatePartitionsRequest.Topic(name=name, count=3, assignments=None)
        grow = CreatePartitionsRequest(topics=[growth], timeout_ms=10_000, validate_only=False)
        yield from told(side, f"{name}-grows", grow, 3 if strict else 2)
        if strict:
            doomed = DeleteTopicsRequest.DeleteTopicState(name=f"{name}-gone", topic_id=NO_ID)
            yield from told(side, f"{name}-deletes", DeleteTopicsRequest(topics=[doomed], timeout_ms=10_000), 6)
        else:
            delete = DeleteTopicsRequest(topic_names=[f"{name}-gone"], timeout_ms=10_000)
            yield from told(side, f"{name}-deletes", delete, 4)

    both.same(script)


@pytest.mark.parametrize("acks", [1, -1])
def test_a_producer_over_its_quota(both: Both, new_name: Names, acks: int) -> None:
    name = new_name("produced")

    def script(side: Side) -> Iterator[Plain]:
        side.create(name)
        set_quota(side, name, "producer_byte_rate", 1000.0)
        request = produce_request({(name, 0): [b"x" * 30_000]}, acks=acks)
        # With a new client the throttle time is exact: a millisecond for each byte of the request.
        yield side.plain(asked_as(side, name, request, PRODUCE_VERSION), PRODUCE_VERSION)

    both.same(script)


@pytest.mark.parametrize("session", [(0, -1), (0, 0)])
def test_a_consumer_over_its_quota(both: Both, new_name: Names, session: tuple[int, int]) -> None:
    name = new_name("consumed")

    def script(side: Side) -> Iterator[Plain]:
        side.create(name)
        asked_as(side, "writer", produce_request({(name, 0): [b"x" * 30_000]}), PRODUCE_VERSION)
        set_quota(side, name, "consumer_byte_rate", 1000.0)
        request = fetch_request({(name, 0): 0}, session=session, max_wait_ms=500)
        yield from told(side, name, request, FETCH_VERSION)

    both.same(script)


def test_a_consumer_within_its_quota(both: Both, new_name: Names) -> None:
    name = new_name("consumed")

    def script(side: Side) -> Iterator[Plain]:
        side.create(name)
        for _ in range(2):
            asked_as(side, "writer", produce_request({(name, 0): [b"x" * 3_000]}), PRODUCE_VERSION)
        set_quota(side, name, "consumer_byte_rate", 1000.0)
        request = fetch_request({(name, 0): 0}, max_wait_ms=500)
        answer = asked_as(side, name, request, FETCH_VERSION)
        data = answer.responses[0].partitions[0]  # type: ignore[attr-defined]
        yield len(data.records), answer.throttle_time_ms  # type: ignore[attr-defined]

    both.same(script)
