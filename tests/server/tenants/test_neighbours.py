"""A user of one tenant tries every API, in every version, on the names of another: it sees and changes nothing.

That a request is refused for want of rights shows that it would have been carried out otherwise. Where an API answers
everybody, the same request of an administrator tells of the neighbour.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.server.tenants.conftest import (
    GROUP,
    PASSWORDS,
    SECRET,
    TOPIC,
    TRANSACTION,
    Neighbours,
    at_work,
    security_of,
)
from tests.support.requests import one_of_each as generated
from tests.support.requests.raw import RawConnection
from tests.support.requests.refusals import OPEN, REFUSALS, SILENT, codes

from ottla.client.blocking.blocking import Blocking
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID
from ottla.server.api.api_table import SERVED
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.api import API_NAMES, request_class
from ottla.wire.message import Struct, fields
from ottla.wire.messages.groups.list_groups import ListGroupsRequest
from ottla.wire.messages.security.describe_acls import DescribeAclsRequest
from ottla.wire.messages.security.describe_client_quotas import DescribeClientQuotasRequest
from ottla.wire.messages.security.describe_delegation_token import DescribeDelegationTokenRequest
from ottla.wire.messages.security.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest
from ottla.wire.messages.topics.describe_log_dirs import DescribeLogDirsRequest
from ottla.wire.messages.topics.list_config_resources import ListConfigResourcesRequest
from ottla.wire.messages.topics.metadata import MetadataRequest
from ottla.wire.messages.txns.list_transactions import ListTransactionsRequest

HARMLESS = {"ApiVersions", "SaslHandshake", "SaslAuthenticate"}
# Older versions make a token for whoever asks.
ONES_OWN = {("CreateDelegationToken", 1), ("CreateDelegationToken", 2)}
CASES = [
    pytest.param(key, version, id=f"{API_NAMES[key]}-v{version}")
    for key, (low, high) in SERVED.items()
    if API_NAMES[key] not in HARMLESS
    for version in range(low, high + 1)
]
# Requests that name nothing: all topics, all groups, and so on.
EVERYTHING: list[tuple[Any, int]] = [
    (MetadataRequest(topics=None), 12),
    (ListGroupsRequest(states_filter=[], types_filter=[]), 5),
    (ListTransactionsRequest(state_filters=[], producer_id_filters=[]), 1),
    (ListConfigResourcesRequest(resource_types=[]), 1),
    (DescribeLogDirsRequest(topics=None), 4),
    (DescribeUserScramCredentialsRequest(users=None), 0),
    (DescribeDelegationTokenRequest(owners=None), 3),
    (DescribeClientQuotasRequest(components=[], strict=False), 1),
    (
        DescribeAclsRequest(
            resource_type_filter=1,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        ),
        3,
    ),
]


def as_user(broker: EmbeddedBroker, user: str) -> RawConnection:
    connection = RawConnection(broker.bootstrap)
    shaken: Any = connection.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    message = f"\0{user}\0{PASSWORDS[user]}".encode()
    told: Any = connection.call(SaslAuthenticateRequest(auth_bytes=message), 2)
    assert shaken.error_code == told.error_code == 0
    return connection


def texts(message: Any) -> Iterator[str]:
    """All strings and bytes in a message."""
    for field in fields(type(message)):
        value = getattr(message, field.name)
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, Struct):
                yield from texts(each)
            elif isinstance(each, str):
                yield each
            elif isinstance(each, bytes | memoryview):
                yield bytes(each).decode("latin-1")


def seen(answer: Any, request: Any) -> list[str]:
    """What an answer tells of the neighbour, except the names that the request itself has."""
    asked = set(texts(request))
    return [each for each in texts(answer) if "globex" in each and each not in asked and not _echoes(each, asked)]


def _echoes(text: str, asked: set[str]) -> bool:
    """Whether a message repeats a name of the request, and nothing else of the neighbour."""
    for each in sorted(asked, key=len, reverse=True):
        text = text.replace(each, "") if "globex" in each else text
    return "globex" not in text


@pytest.mark.parametrize(("key", "version"), CASES)
def test_every_api_on_the_neighbour(
    neighbours: Neighbours, key: int, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert neighbours.broker.node is not None
    monkeypatch.setattr(generated, "TOPIC", TOPIC)
    monkeypatch.setattr(generated, "GROUP", GROUP)
    monkeypatch.setattr(generated, "TRANSACTION", TRANSACTION)
    topic_id = neighbours.broker.node.metadata.state.topics[TOPIC].id
    before, name = neighbours.dump(), API_NAMES[key]
    for named_by in (topic_id, NO_ID):
        if named_by != NO_ID and name == "Metadata" and version < 12:
            continue  # these versions have a field for the id, but may not use it
        if named_by == NO_ID and name in ("Produce", "Fetch") and version >= 13:
            continue  # these versions name topics by id alone
        request = generated.one_of_each(request_class(key), version, named_by)
        with as_user(neighbours.broker, "acme.app") as connection:
            answer = connection.call(request, version)
        assert not seen(answer, request)
        assert SECRET not in "".join(texts(answer))
        is_refused = bool(REFUSALS & set(codes(answer, version)))
        assert is_refused != (name in OPEN or (name, version) in SILENT | ONES_OWN), answer
    assert neighbours.dump() == before


@pytest.mark.parametrize(("request_", "version"), EVERYTHING, ids=lambda each: type(each).__name__)
def test_lists_of_everything(neighbours: Neighbours, request_: Any, version: int) -> None:
    with as_user(neighbours.broker, "acme.app") as connection:
        assert not seen(connection.call(request_, version), request_)
    with as_user(neighbours.broker, "admin") as connection:
        assert seen(connection.call(request_, version), request_), "who may see it sees it"


def test_what_is_compared_has_members_and_transactions(neighbours: Neighbours) -> None:
    *_, groups, offsets, transactions = neighbours.dump()
    assert len(groups[GROUP].members) == 1 and offsets[GROUP]
    assert transactions[TRANSACTION].state == "Ongoing"


def test_a_tenant_cannot_leave_its_prefix(neighbours: Neighbours) -> None:
    broker, before = neighbours.broker, neighbours.dump()
    with Blocking(broker.bootstrap, security=security_of("acme.app")) as client:
        for name in ("other", "acme", "globex.more"):
            with pytest.raises(ApiError) as refused:
                client.admin.topics.create(name)
            assert refused.value.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert neighbours.dump() == before
    with at_work(broker, "acme"):
        pass
    with Blocking(broker.bootstrap, security=security_of("acme.app")) as client:
        assert client.admin.topics.names() == ["acme.orders"]
