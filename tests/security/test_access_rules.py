"""Access rules: single rules by example, and any entries and questions against a model without an index."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.security.naive_authorizer import NaiveAuthorizer

from ottla.security.access_rules import AccessReason, AccessRules
from ottla.security.acl_entry import AclEntry, AclFilter
from ottla.security.acls import AclOperation, AclPermission, AclResourceType, PatternType
from ottla.security.authorizer import Authorizer
from ottla.security.principal import Principal, parse_principal

ALICE, BOB = Principal.user("alice"), Principal.user("bob")
HERE = "127.0.0.1"
TOPIC, GROUP = AclResourceType.TOPIC, AclResourceType.GROUP
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE


def entry(
    name: str = "orders",
    *,
    who: str = "User:alice",
    host: str = "*",
    operation: int = READ,
    permission: int = AclPermission.ALLOW,
    pattern: int = PatternType.LITERAL,
    resource: int = TOPIC,
) -> AclEntry:
    return AclEntry(resource, name, pattern, who, host, operation, permission)


def rules(*entries: AclEntry, super_users: tuple[str, ...] = (), is_open: bool = False) -> AccessRules:
    made = AccessRules(super_users, allow_everyone_if_no_acl_found=is_open)
    for number, each in enumerate(entries):
        made.add(each.as_record(number.to_bytes(16, "big")))
    return made


def test_they_are_an_authorizer() -> None:
    authorizer: Authorizer = rules()
    assert not authorizer.allows(ALICE, HERE, READ, TOPIC, "orders")


def test_an_entry_is_for_its_principal_host_operation_and_resource() -> None:
    only = rules(entry(host=HERE))
    assert only.allows(ALICE, HERE, READ, TOPIC, "orders")
    assert not only.allows(BOB, HERE, READ, TOPIC, "orders")
    assert not only.allows(ALICE, "127.0.0.2", READ, TOPIC, "orders")
    assert not only.allows(ALICE, HERE, WRITE, TOPIC, "orders")
    assert not only.allows(ALICE, HERE, READ, GROUP, "orders")
    assert not only.allows(ALICE, HERE, READ, TOPIC, "orders2")


def test_a_denial_outweighs_every_permission() -> None:
    both = rules(
        entry("*", who="User:*", operation=AclOperation.ALL),
        entry("ord", pattern=PatternType.PREFIXED, permission=AclPermission.DENY),
    )
    assert not both.allows(ALICE, HERE, READ, TOPIC, "orders")
    assert both.allows(ALICE, HERE, WRITE, TOPIC, "orders")
    assert both.allows(BOB, HERE, READ, TOPIC, "orders")


@pytest.mark.parametrize(
    ("granted", "asked"),
    [
        (READ, DESCRIBE),
        (WRITE, DESCRIBE),
        (AclOperation.DELETE, DESCRIBE),
        (AclOperation.ALTER, DESCRIBE),
        (AclOperation.ALTER_CONFIGS, AclOperation.DESCRIBE_CONFIGS),
    ],
)
def test_a_permission_includes_another_and_a_denial_does_not(granted: AclOperation, asked: AclOperation) -> None:
    assert rules(entry(operation=granted)).allows(ALICE, HERE, asked, TOPIC, "orders")
    denied = rules(entry(operation=granted, permission=AclPermission.DENY), entry(operation=asked))
    assert denied.allows(ALICE, HERE, asked, TOPIC, "orders")
    assert not rules(entry(operation=asked)).allows(ALICE, HERE, granted, TOPIC, "orders")


def test_a_resource_without_entries_is_open_if_the_setting_says_so() -> None:
    opened = rules(entry("orders"), is_open=True)
    assert opened.allows(BOB, HERE, READ, TOPIC, "payments")
    assert not opened.allows(BOB, HERE, READ, TOPIC, "orders")
    assert not rules(entry("*"), is_open=True).allows(BOB, HERE, READ, TOPIC, "payments")


def test_a_super_user_may_do_what_is_denied() -> None:
    denied = rules(entry("*", who="User:*", permission=AclPermission.DENY), super_users=("User:alice",))
    assert denied.allows(ALICE, HERE, READ, TOPIC, "orders")
    assert denied.allows_some(ALICE, HERE, WRITE, TOPIC)
    assert not denied.allows(BOB, HERE, READ, TOPIC, "orders")


@pytest.mark.parametrize("host", ["0:0:0:0:0:0:0:1", "::1", "0::1"])
def test_an_address_has_one_meaning_in_each_of_its_forms(host: str) -> None:
    assert rules(entry(host=host)).allows(ALICE, "::1", READ, TOPIC, "orders")


def test_an_ipv4_client_of_an_ipv6_socket_has_its_ipv4_address() -> None:
    assert rules(entry(host="10.0.0.1")).allows(ALICE, "::ffff:10.0.0.1", READ, TOPIC, "orders")
    for stored, client in (("fe80::1", "fe80::1%eth0"), ("fe80:0:0:0:0:0:0:1%eth0", "fe80::1")):
        denied = rules(entry(), entry(host=stored, permission=AclPermission.DENY))
        assert not denied.allows(ALICE, client, READ, TOPIC, "orders"), "a scope does not tell addresses apart"


def test_an_unknown_permission_denies_and_an_unknown_operation_does_nothing() -> None:
    assert not rules(entry(), entry(permission=9)).allows(ALICE, HERE, READ, TOPIC, "orders")
    assert rules(entry(), entry(operation=99, permission=AclPermission.DENY)).allows(ALICE, HERE, READ, TOPIC, "orders")


def test_some_resource_needs_a_permission_that_is_not_wholly_denied() -> None:
    assert rules(entry(operation=WRITE)).allows_some(ALICE, HERE, WRITE, TOPIC)
    assert not rules(entry(operation=WRITE)).allows_some(ALICE, HERE, WRITE, GROUP)
    assert not rules(entry(operation=WRITE)).allows_some(ALICE, HERE, DESCRIBE, TOPIC), "as in Kafka, nothing included"
    prefix = entry("ord", operation=WRITE, pattern=PatternType.PREFIXED, permission=AclPermission.DENY)
    assert not rules(entry(operation=WRITE), prefix).allows_some(ALICE, HERE, WRITE, TOPIC)
    assert rules(entry("payments", operation=WRITE), prefix).allows_some(ALICE, HERE, WRITE, TOPIC)


def test_explanations_name_the_entry_that_decided() -> None:
    some = rules(entry(), entry("*", who="User:*", operation=WRITE, permission=AclPermission.DENY))
    allowed = some.explain(ALICE, HERE, READ, TOPIC, "orders")
    assert allowed.allowed and allowed.entry is not None and AclEntry.of(allowed.entry) == entry()
    denied = some.explain(ALICE, HERE, WRITE, TOPIC, "orders")
    assert not denied.allowed and denied.entry is not None and denied.entry.principal == "User:*"
    assert some.explain(BOB, HERE, READ, TOPIC, "orders").reason is AccessReason.NO_MATCH
    assert some.explain(BOB, HERE, READ, GROUP, "orders").reason is AccessReason.CLOSED
    assert rules(is_open=True).explain(BOB, HERE, READ, GROUP, "g").reason is AccessReason.OPEN
    assert rules(super_users=("User:bob",)).explain(BOB, HERE, READ, GROUP, "g").reason is AccessReason.SUPER_USER


def test_the_version_changes_with_every_change_and_with_nothing_else() -> None:
    some = rules(entry())
    seen = [some.version]
    some.allows(ALICE, HERE, READ, TOPIC, "orders")
    some.remove(b"unknown")
    assert some.version == seen[0]
    for change in (
        lambda: some.add(entry("b").as_record(b"b")),
        lambda: some.remove(b"b"),
        lambda: some.replace_all([]),
    ):
        change()
        assert some.version not in seen
        seen.append(some.version)


def test_ten_thousand_entries_of_one_topic_and_of_many_prefixes() -> None:
    """An answer looks at the patterns of the name and the asker, not at all entries."""
    many = [entry("*", who=f"User:u{number}") for number in range(10_000)]
    many += [entry(f"tenant-{number}-", who="User:alice", pattern=PatternType.PREFIXED) for number in range(10_000)]
    some = rules(*many)
    assert len(some) == 20_000
    assert some.allows(ALICE, HERE, READ, TOPIC, "tenant-777-orders")
    assert not some.allows(BOB, HERE, READ, TOPIC, "tenant-777-orders")
    resources = some._resources[TOPIC]
    assert len(list(resources.matching("tenant-777-orders"))) == 2
    assert len(resources._lengths) == 4, "the lengths of prefixes, not the prefixes, are tried"


# --- any entries, any questions -----------------------------------------------------------------------------------

NAMES = ["a", "ab", "abc", "abd", "b", "*", "*a", "ba"]
PRINCIPALS = ["User:alice", "User:bob", "User:*", "Group:alice"]
HOSTS = ["*", HERE, "10.0.0.1"]
OPERATIONS = [op for op in AclOperation if op >= AclOperation.ALL]
ENTRIES = st.builds(
    AclEntry,
    st.sampled_from([TOPIC, GROUP]),
    st.sampled_from(NAMES),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    st.sampled_from(PRINCIPALS),
    st.sampled_from(HOSTS),
    st.sampled_from(OPERATIONS),
    st.sampled_from([AclPermission.ALLOW, AclPermission.ALLOW, AclPermission.DENY]),
)
QUESTIONS = st.tuples(
    st.sampled_from(["User:alice", "User:bob", "Group:alice"]),
    st.sampled_from([HERE, "10.0.0.1"]),
    st.sampled_from(OPERATIONS),
    st.sampled_from([TOPIC, GROUP]),
    st.sampled_from([*NAMES, "hardcode", "x"]),
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(ENTRIES, max_size=12),
    st.lists(QUESTIONS, min_size=1, max_size=20),
    st.sampled_from([(), ("User:bob",)]),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_they_answer_as_the_model(
    entries: list[AclEntry],
    questions: list[tuple[str, str, AclOperation, AclResourceType, str]],
    super_users: tuple[str, ...],
    is_open: bool,
    rng: random.Random,
) -> None:
    """After entries came and went in any order."""
    real = AccessRules(super_users, allow_everyone_if_no_acl_found=is_open)
    model = NaiveAuthorizer(super_users, is_open)
    for number, each in enumerate(entries):
        id = bytes([rng.randrange(number + 1)]) * 16  # some replace earlier ones
        real.add(each.as_record(id))
        model.entries[id] = each
        if model.entries and rng.random() < 0.25:
            gone = rng.choice(list(model.entries))
            real.remove(gone)
            del model.entries[gone]
    if rng.random() < 0.2:
        real.replace_all([each.as_record(id) for id, each in model.entries.items()])
    assert len(real) == len(model.entries)
    for who, host, operation, resource, name in questions:
        principal = parse_principal(who)
        expected = model.allows(who, host, operation, resource, name)
        assert real.allows(principal, host, operation, resource, name) == expected
        assert real.explain(principal, host, operation, resource, name).allowed == expected
        assert real.allows_some(principal, host, operation, resource) == model.allows_some(
            who, host, operation, resource
        )


def test_nothing_is_left_of_entries_that_are_gone() -> None:
    rng = random.Random(7)
    some = AccessRules()
    ids = [bytes([number]) * 16 for number in range(100)]
    for id in ids:
        pattern = rng.choice([PatternType.LITERAL, PatternType.PREFIXED])
        some.add(entry(rng.choice(NAMES), who=rng.choice(PRINCIPALS), pattern=pattern).as_record(id))
    for id in rng.sample(ids, len(ids)):
        some.remove(id)
    left = some._resources[TOPIC]
    assert not (left.literal or left.prefixed or left.holders or left._lengths)


# --- filters ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filter", "names"),
    [
        (AclFilter(), ["*", "ab", "abc", "a-", "User:x"]),
        (AclFilter(resource_name="abc", pattern_type=PatternType.MATCH), ["*", "ab", "abc"]),
        (AclFilter(resource_name="abc"), ["abc"]),
        (AclFilter(resource_name="ab", pattern_type=PatternType.PREFIXED), ["ab"]),
        (AclFilter(resource_name="ab", pattern_type=PatternType.LITERAL), []),
        (AclFilter(pattern_type=PatternType.MATCH), ["*", "ab", "abc", "a-", "User:x"]),
        (AclFilter(pattern_type=PatternType.PREFIXED), ["ab", "a-"]),
        (AclFilter(resource_type=AclResourceType.USER), ["User:x"]),
        (AclFilter(principal="User:bob"), ["abc"]),
        (AclFilter(host=HERE), ["a-"]),
        (AclFilter(operation=WRITE), ["*"]),
        (AclFilter(permission=AclPermission.DENY), ["ab"]),
    ],
)
def test_filters(filter: AclFilter, names: list[str]) -> None:
    entries = [
        entry("*", operation=WRITE),
        entry("ab", pattern=PatternType.PREFIXED, permission=AclPermission.DENY),
        entry("abc", who="User:bob"),
        entry("a-", pattern=PatternType.PREFIXED, host=HERE),
        entry("User:x", resource=AclResourceType.USER),
    ]
    assert [each.resource_name for each in entries if filter.matches(each)] == names
