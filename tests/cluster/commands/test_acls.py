"""CreateAcls and DeleteAcls, and the changes that nodes are told."""

from __future__ import annotations

import pytest
from tests.cluster.bench import Cluster, verdict

from ottla.cluster.commands.create_acls import CreateAcls
from ottla.cluster.commands.delete_acls import DeleteAcls
from ottla.cluster.entities import AclChanged
from ottla.cluster.snapshot import snapshot
from ottla.cluster.state import ClusterState
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acl_entry import AclEntry, AclFilter
from ottla.security.acls import AclOperation, AclPermission, AclResourceType, PatternType

ENTRY = AclEntry(AclResourceType.TOPIC, "t", PatternType.LITERAL, "User:a", "*", AclOperation.READ, AclPermission.ALLOW)


def create(cluster: Cluster, *entries: AclEntry) -> list[ApiError | None]:
    outcomes: list[ApiError | None] = cluster.submit(CreateAcls(entries))
    return outcomes


def delete(cluster: Cluster, *filters: AclFilter) -> list[list[AclEntry] | ApiError]:
    outcomes: list[list[AclEntry] | ApiError] = cluster.submit(DeleteAcls(filters))
    return outcomes


def entries(cluster: Cluster) -> list[AclEntry]:
    return [AclEntry.of(record) for record in cluster.state.acls.values()]


def test_entries_are_written_once_and_told() -> None:
    cluster = Cluster()
    other = ENTRY._replace(principal="User:b")
    assert create(cluster, ENTRY, other, ENTRY) == [None, None, None]
    assert create(cluster, ENTRY) == [None]
    assert entries(cluster) == [ENTRY, other]
    first, second = cluster.state.acls.values()
    assert cluster.changes == [AclChanged(None, first), AclChanged(None, second)]
    assert first.id != second.id


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"resource_type": 1}, "Invalid resourceType ANY"),
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"pattern_type": 1}, "Invalid patternType ANY"),
        ({"pattern_type": 2}, "Invalid patternType MATCH"),
        ({"pattern_type": 9}, "Invalid patternType UNKNOWN"),
        ({"operation": 1}, "Invalid operation ANY"),
        ({"operation": 99}, "Invalid operation UNKNOWN"),
        ({"permission": 1}, "Invalid permissionType ANY"),
        ({"permission": 9}, "Invalid permissionType UNKNOWN"),
        (
            {"principal": "a"},
            "Could not parse principal from `a` (no colon is present separating the principal type from the "
            "principal name)",
        ),
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"resource_name": "", "pattern_type": PatternType.PREFIXED}, "Invalid empty resource name"),
        (
            {"resource_type": AclResourceType.CLUSTER},
            "The only valid name for the CLUSTER resource is kafka-cluster",
        ),
    ],
)
def test_what_means_nothing_is_refused_alone(wrong: dict[str, object], message: str) -> None:
    cluster = Cluster()
    refused, made = create(cluster, ENTRY._replace(**wrong), ENTRY)  # type: ignore[arg-type]
    assert verdict(refused) == ("INVALID_REQUEST", message)
    assert made is None and entries(cluster) == [ENTRY]


def test_filters_remove_what_they_match_and_tell_it() -> None:
    cluster = Cluster()
    prefix = ENTRY._replace(resource_name="top", pattern_type=PatternType.PREFIXED)
    wildcard = ENTRY._replace(resource_name="*")
    group = ENTRY._replace(resource_type=AclResourceType.GROUP)
    create(cluster, ENTRY, prefix, wildcard, group)
    ids = {AclEntry.of(record): record for record in cluster.state.acls.values()}
    cluster.changes.clear()
    matching = AclFilter(AclResourceType.TOPIC, "topic-1", PatternType.MATCH)
    assert delete(cluster, matching, AclFilter(resource_name="*"), AclFilter(principal="User:nobody")) == [
        [prefix, wildcard],
        [wildcard],
        [],
    ]
    assert cluster.changes == [AclChanged(ids[prefix], None), AclChanged(ids[wildcard], None)]
    assert entries(cluster) == [ENTRY, group]
    assert delete(cluster, AclFilter(*ENTRY)) == [[ENTRY]], "a filter that can match one entry alone"
    assert delete(cluster, AclFilter(*ENTRY)) == [[]]
    assert create(cluster, ENTRY) == [None]
    assert entries(cluster) == [group, ENTRY]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (AclFilter(resource_type=99), "Unknown patternFilter."),
        (AclFilter(pattern_type=99), "Unknown patternFilter."),
        (AclFilter(operation=99), "Unknown entryFilter."),
        (AclFilter(permission=99), "Unknown entryFilter."),
    ],
)
def test_a_filter_of_a_later_release_is_refused_alone(wrong: AclFilter, message: str) -> None:
    cluster = Cluster()
    create(cluster, ENTRY)
    refused, matched = delete(cluster, wrong, AclFilter())
    assert isinstance(refused, ApiError) and verdict(refused) == ("INVALID_REQUEST", message)
    assert matched == [ENTRY]


def test_a_request_changes_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    for module in ("create_acls", "delete_acls"):
        monkeypatch.setattr(f"ottla.cluster.commands.{module}.ACLS_PER_REQUEST_MAX", 3)
    many = [ENTRY._replace(resource_name=f"t{number}") for number in range(4)]
    with pytest.raises(ApiError) as refused:
        create(cluster, *many)
    assert refused.value.code == ErrorCode.POLICY_VIOLATION and not cluster.state.acls
    create(cluster, *many[:2])
    create(cluster, *many[2:])
    with pytest.raises(ApiError) as refused:
        delete(cluster, AclFilter())
    assert refused.value.code == ErrorCode.POLICY_VIOLATION and len(cluster.state.acls) == 4
    assert limits.ACLS_PER_REQUEST_MAX == 10_000


def test_a_snapshot_and_a_copy_keep_them() -> None:
    cluster = Cluster()
    create(cluster, ENTRY, ENTRY._replace(host="10.0.0.1"))
    again = ClusterState()
    again.apply_all(entry.record for entry in snapshot(cluster.state))
    assert again.acls == cluster.state.acls and again.acl_ids == cluster.state.acl_ids
    copy = cluster.state.copy()
    delete(cluster, AclFilter())
    assert not cluster.state.acl_ids and copy.acl_ids == again.acl_ids
