"""DeleteAcls: remove the access control entries that match filters; each filter succeeds or fails by itself."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.cluster.decision import Deciding
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.state import ClusterState
from ottla.cluster.view import MetadataView
from ottla.machine.kit import Result
from ottla.machine.stepped import Steps
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.limits import ACL_MATCHES_PER_REQUEST_MAX, ACLS_PER_REQUEST_MAX, ACLS_PER_SLICE
from ottla.security.acl_entry import AclEntry, AclFilter
from ottla.security.acls import AclOperation, AclPermission, AclResourceType, PatternType, is_known
from ottla.wire.journal import cluster_metadata as journal


@dataclass(frozen=True, slots=True)
class DeleteAcls:
    """Replies with the entries that matched, or an error, for each filter in order."""

    filters: tuple[AclFilter, ...]

    def decide(self, view: MetadataView, now_ms: int) -> Deciding[list[list[AclEntry] | ApiError]]:
        doomed: dict[bytes, None] = {}
        outcomes: list[list[AclEntry] | ApiError] = []
        matches = 0
        for filter in self.filters:
            try:
                check_filter(filter)
            except ApiError as error:
                outcomes.append(error)
                continue
            found = yield from _matching(view.state, filter)
            doomed.update(dict.fromkeys(found))
            matches += len(found)  # an entry that several filters match is listed for each
            if len(doomed) > ACLS_PER_REQUEST_MAX or matches > ACL_MATCHES_PER_REQUEST_MAX:
                raise ApiError(
                    ErrorCode.POLICY_VIOLATION,
                    f"Cannot remove more than {ACLS_PER_REQUEST_MAX} acls in a single delete operation.",
                )
            outcomes.append(list(found.values()))
        return Result([MetadataEntry(journal.RemoveAccessControlEntryRecord(id=id)) for id in doomed], outcomes)


def check_filter(filter: AclFilter) -> None:
    """Refuse a filter with numbers that have no meaning in this release, in Kafka's words."""
    if not (is_known(AclResourceType, filter.resource_type) and is_known(PatternType, filter.pattern_type)):
        raise ApiError(ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
    if not (is_known(AclOperation, filter.operation) and is_known(AclPermission, filter.permission)):
        raise ApiError(ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")


def _matching(state: ClusterState, filter: AclFilter) -> Steps[dict[bytes, AclEntry]]:
    """Return the entries that a filter matches, by their ids."""
    only = filter.only
    if only is not None:
        id = state.acl_ids.get(only)
        return {} if id is None else {id: only}
    found: dict[bytes, AclEntry] = {}
    for number, (id, record) in enumerate(state.acls.items(), start=1):
        entry = AclEntry.of(record)
        if filter.matches(entry):
            found[id] = entry
        if number % ACLS_PER_SLICE == 0:
            yield
    yield  # there may be very many filters
    return found
