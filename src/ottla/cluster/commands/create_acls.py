"""CreateAcls: add access control entries; each succeeds or fails by itself. One that exists already stays as it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from ottla.cluster.decision import Deciding
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.view import MetadataView
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import random_uuid
from ottla.model.limits import ACLS_PER_REQUEST_MAX, METADATA_RECORDS_PER_SLICE
from ottla.security.acl_entry import AclEntry
from ottla.security.acls import ANY, CLUSTER_NAME, AclOperation, AclPermission, AclResourceType, PatternType, is_known


@dataclass(frozen=True, slots=True)
class CreateAcls:
    """Replies with None or an error for each entry, in order."""

    entries: tuple[AclEntry, ...]

    def decide(self, view: MetadataView, now_ms: int) -> Deciding[list[ApiError | None]]:
        records: list[MetadataEntry] = []
        outcomes: list[ApiError | None] = []
        new: set[AclEntry] = set()
        for number, entry in enumerate(self.entries, start=1):
            try:
                check_entry(entry)
            except ApiError as error:
                outcomes.append(error)
                continue
            if entry not in view.state.acl_ids and entry not in new:
                if len(records) == ACLS_PER_REQUEST_MAX:
                    raise ApiError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
                new.add(entry)
                records.append(MetadataEntry(entry.as_record(random_uuid(view.rng))))
            outcomes.append(None)
            if number % METADATA_RECORDS_PER_SLICE == 0:
                yield
        return Result(records, outcomes)


def check_entry(entry: AclEntry) -> None:
    """Refuse an entry that means nothing, in Kafka's words."""
    if entry.resource_type == AclResourceType.CLUSTER and entry.resource_name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not entry.resource_name:
        raise _invalid("Invalid empty resource name")
    _check(AclResourceType, entry.resource_type, "resourceType")
    _check(PatternType, entry.pattern_type, "patternType", PatternType.MATCH)
    _check(AclOperation, entry.operation, "operation")
    _check(AclPermission, entry.permission, "permissionType")
    if ":" not in entry.principal:
        raise _invalid(
            f"Could not parse principal from `{entry.principal}` (no colon is present separating the principal type "
            "from the principal name)"
        )


def _check(kind: type[IntEnum], code: int, field: str, *refused: int) -> None:
    """Refuse a number that has no meaning in this release, or that only filters may have."""
    if not is_known(kind, code):
        raise _invalid(f"Invalid {field} UNKNOWN")
    if code == ANY or code in refused:
        raise _invalid(f"Invalid {field} {kind(code).name}")


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
