"""Every API with every set of the rights that it declares: the same answers as a real Kafka, and no right for nothing.

Sets are all that can be made of the declared rights, from none to all, and the reverse: everything but them. So the
declared rights are enough for Kafka, too; each of them matters; and no other right takes their place.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from tests.support.requests.holders import Clients, Granted, Holder, client_rights, holders_of
from tests.support.requests.limited import TEXT, Sides, wait_for_coordinator
from tests.support.requests.one_of_each import GROUP, TOPIC, TRANSACTION
from tests.support.requests.right_forms import SHARE_KEY, forms_of, request_of
from tests.support.requests.right_stages import prepare, stage
from tests.support.requests.same import Plain, Side
from tests.support.requests.shares import SHARE
from tests.support.requests.transactional import Transactional

from ottla.security.acls import AclOperation, AclResourceType
from ottla.server.api import dispatch
from ottla.server.api.api_table import SERVED
from ottla.server.api.needs import ERRORS, Needs
from ottla.wire.api import API_NAMES, FIRST_OWN_KEY

# Texts of Kafka describe the request as Java shows it, so they are not compared.
NOT_COMPARED = {
    "ApiVersions",
    # Served where they are offered, and nobody needs a right for them: see ../test_telemetry.py.
    "GetTelemetrySubscriptions",
    "PushTelemetry",
}
COMPARED = [key for key in SERVED if API_NAMES[key] not in NOT_COMPARED and key < FIRST_OWN_KEY]
KEYS = [pytest.param(key, id=API_NAMES[key]) for key in COMPARED]
# Fields that differ between two clusters, whatever the rights.
BLANK = {
    "DescribeQuorum": ("high_watermark", "log_end_offset", "leader_epoch"),
    "DescribeTransactions": ("transaction_start_time_ms",),
}
# Lists of all that is there, of which only the names here are compared: other tests have left theirs.
LISTS = {
    "ListGroups": ("groups", "group_id"),
    "ListTransactions": ("transaction_states", "transactional_id"),
    "ListConfigResources": ("config_resources", "resource_name"),
}
_NO_TOKENS = "clients of a plaintext listener get no tokens; tests/compat/test_delegation_tokens.py has others who do"
_LETTERS = "asked for settings that name a dead-letter topic, which Kafka does not have: test_letter_topics.py"
_WRITE_LETTERS = (AclOperation.WRITE, AclResourceType.TOPIC)
_CREATE_LETTERS = (AclOperation.CREATE, AclResourceType.TOPIC), (AclOperation.CREATE, AclResourceType.CLUSTER)
# Rights that no request here depends on, and why.
UNSHOWN: dict[tuple[str, Granted], str] = {
    ("InitProducerId", (AclOperation.TWO_PHASE_COMMIT, AclResourceType.TRANSACTIONAL_ID)): "no stable version asks",
    ("CreateDelegationToken", (AclOperation.CREATE_TOKENS, AclResourceType.USER)): _NO_TOKENS,
    ("DescribeDelegationToken", (AclOperation.DESCRIBE, AclResourceType.DELEGATION_TOKEN)): _NO_TOKENS,
    ("DescribeDelegationToken", (AclOperation.DESCRIBE_TOKENS, AclResourceType.USER)): _NO_TOKENS,
    ("CreateTopics", _WRITE_LETTERS): _LETTERS,
    **{
        (api, right): _LETTERS
        for api in ("AlterConfigs", "IncrementalAlterConfigs")
        for right in (_WRITE_LETTERS, *_CREATE_LETTERS)
    },
}
# Deliberate differences: the value of a field for a client without one of these rights, and why.
TOLD_LESS = {
    # Kafka tells the id, and so that the topic exists, to a client that may not know of it.
    "AlterShareGroupOffsets": ("topic_id", (AclOperation.READ, AclResourceType.TOPIC)),
}
# A deleted topic has to be made again, which takes its time.
FEWER_VERSIONS = {"DeleteTopics"}
Asked = tuple[int, str, Holder]  # version, form, who asks


def needs_of(key: int) -> Needs:
    dispatch.load_handlers()
    return dispatch.ENDPOINTS[key].needs


@pytest.fixture(scope="module")
def clients(sides: Sides) -> Iterator[Clients]:
    for admin in sides.admins.values():
        Transactional(admin, TRANSACTION).find()
        wait_for_coordinator(admin, SHARE, SHARE_KEY)
    clients = Clients(sides, [holder for key in SERVED for holder in holders_of(needs_of(key))])
    yield clients
    clients.close()


@pytest.mark.parametrize("key", KEYS)
def test_every_set_of_rights(sides: Sides, clients: Clients, key: int) -> None:
    name, needs, (low, high) = API_NAMES[key], needs_of(key), SERVED[key]
    asked: list[Asked] = [
        (version, form, holder)
        for version in ((low, high) if name in FEWER_VERSIONS else range(low, high + 1))
        for form in forms_of(key)
        for holder in holders_of(needs)
    ]

    def script(_: Side, admin: Side) -> Iterator[Plain]:
        new = count()
        with stage(name, admin):
            for version, form, holder in asked:
                client = clients.of(admin.name, holder)
                prepare(name, admin, client)
                request = request_of(key, version, forms_of(key)[form], admin.ids[TOPIC], f"{version}-{next(new)}")
                answer = client.call(request, version, blank=(*TEXT, *BLANK.get(name, ()), *told_less(name, holder)))
                yield {f"v{version} {form}, with {holder}": without_others(name, answer)}

    answers = {one: next(iter(answer.values())) for one, answer in zip(asked, sides.same(script), strict=True)}
    rights = client_rights(needs)
    for (version, form, holder), answer in answers.items():
        if holder == Holder(rights):
            assert not codes(answer) & set(ERRORS.values()), f"v{version} {form}: Kafka asks for more"
    unshown = {right for right in rights if not matters(right, answers)}
    assert unshown == {right for api, right in UNSHOWN if api == name}, "rights that change nothing"


def told_less(name: str, holder: Holder) -> tuple[str, ...]:
    """The fields that are not compared, since Ottla tells this client less than Kafka does."""
    field, right = TOLD_LESS.get(name, ("", None))
    return (field,) if field and (right in holder.rights) == holder.denied else ()


def without_others(name: str, answer: Plain) -> Plain:
    if name not in LISTS:
        return answer
    listed, named = LISTS[name]
    return {**answer, listed: [each for each in answer[listed] if each[named] in (TOPIC, GROUP, TRANSACTION)]}


def matters(right: Granted, answers: dict[Asked, Plain]) -> bool:
    """Whether there is a client who is told something else if it gets the right."""
    for (version, form, holder), answer in answers.items():
        if right not in holder.rights and not holder.denied:
            richer = Holder(holder.rights | {right})
            if verdict(answer) != verdict(answers[version, form, richer]):
                return True
    return False


def verdict(answer: Plain) -> Plain:
    """What rights decide in an answer: errors, what is listed, authorized operations; not offsets and the like."""
    if isinstance(answer, dict):
        return {
            name: verdict(value)
            for name, value in answer.items()
            if not isinstance(value, int) or name.endswith(("error_code", "authorized_operations"))
        }
    return [verdict(each) for each in answer] if isinstance(answer, list) else answer


def codes(answer: Plain) -> set[int]:
    """All error codes in an answer."""
    if isinstance(answer, dict):
        own = {value for name, value in answer.items() if name.endswith("error_code")}
        return own.union(*map(codes, answer.values()))
    return set().union(*map(codes, answer)) if isinstance(answer, list) else set()
