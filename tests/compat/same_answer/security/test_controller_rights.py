"""Listeners of controllers: the same answers as a real Kafka, without rights and with those of brokers, ClusterAction.

Requests name another cluster, or an epoch of a broker that is over, so that with rights they change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.requests.limited import CLIENT, TEXT, Sides, grant
from tests.support.requests.one_of_each import TOPIC, one_of_each
from tests.support.requests.same import Both, Plain, Side

from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_ID
from ottla.security.acls import CLUSTER_NAME, AclOperation, AclResourceType
from ottla.server.api.api_table import SERVED_TO_CONTROLLERS
from ottla.wire.api import API_NAMES, request_class

# An address that may do what brokers may, and nothing else.
BROKER = "127.0.0.3"
# The texts of Kafka describe the request as Java shows it, so they are not compared.
NOT_COMPARED = {"ApiVersions"}
# Deliberate differences: the error of Kafka's controller, and of ours.
_UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR
_REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
DIFFERENT = {
    # Who has ClusterAction may send them as anybody in an Envelope, too; older nodes sent them as they are (ADR 0042).
    ("AlterConfigs", "with ClusterAction"): (_REFUSED, ErrorCode.INVALID_CONFIG),
    ("IncrementalAlterConfigs", "with ClusterAction"): (_REFUSED, ErrorCode.NONE),
    # Kafka's controllers say that they serve these, and have nothing that does.
    **{
        (api, holder): (_UNKNOWN, error)
        for api, error in (
            ("DescribeDelegationToken", ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
            ("DescribeUserScramCredentials", ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        )
        for holder in ("without rights", "with ClusterAction")
    },
}
HOLDERS = {"without rights": CLIENT, "with ClusterAction": BROKER}
CASES = [
    pytest.param(key, version, holder, id=f"{API_NAMES[key]}-v{version}-{holder}")
    for key, (low, high) in SERVED_TO_CONTROLLERS.items()
    if API_NAMES[key] not in NOT_COMPARED
    for version in range(low, high + 1)
    for holder in HOLDERS
]


@pytest.fixture(scope="module")
def controllers(sides: Sides) -> Iterator[dict[str, Both]]:
    """Clients of both controllers, by what they may do."""
    for admin in sides.admins.values():
        grant(admin, AclOperation.CLUSTER_ACTION, AclResourceType.CLUSTER, CLUSTER_NAME, BROKER)
    made = {holder: sides.of_controllers(address) for holder, address in HOLDERS.items()}
    yield made
    for both in made.values():
        both.kafka.close()
        both.ottla.close()


@pytest.mark.parametrize(("key", "version", "holder"), CASES)
def test_a_controller_answers_as_kafkas(controllers: dict[str, Both], key: int, version: int, holder: str) -> None:
    def script(client: Side) -> Iterator[Plain]:
        request = one_of_each(request_class(key), version, client.ids.get(TOPIC, NO_ID))
        yield client.call(request, version, blank=TEXT)

    both = controllers[holder]
    if errors := DIFFERENT.get((API_NAMES[key], holder)):
        assert [error_in(*script(each)) for each in (both.kafka, both.ottla)] == list(errors)
    else:
        both.same(script)


def error_in(answer: Plain) -> int:
    """The error of a request, or of its only item."""
    return int(answer["error_code"] if "error_code" in answer else answer["responses"][0]["error_code"])
