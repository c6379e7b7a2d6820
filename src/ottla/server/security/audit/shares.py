"""AuditShares: how much of the audit log one principal may fill; what is above that is counted in one line.

Otherwise a client that names very many topics, with or without rights on them, would fill the log and push out what
others did. A share is that of one principal (of an address, for clients that are not authenticated), for events of one
sort, such as refusals on topics: an event of another sort is not hidden by a flood.

- Between two writes of the log a share has a number of events.
- In a minute it has a number of bytes, so that the files keep the history of days and not of minutes.
- Clients above a bound on their number have one share together.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from ottla.model import limits
from ottla.security.acls import AclResourceType
from ottla.security.audit_event import API, LISTENER, AuditEvent
from ottla.security.principal import ANONYMOUS

_OTHERS = "others"


class _Sort(NamedTuple):
    """The events of one share."""

    principal: str
    host: str  # of clients that are not authenticated; else empty
    kind: str  # a type of resource, or an API
    allowed: bool

    @property
    def whose(self) -> str:
        return " from ".join(filter(None, (self.principal, self.host)))


class AuditShares:
    def __init__(self) -> None:
        self._noted: Counter[_Sort] = Counter()  # events since the last write
        self._left_out: Counter[_Sort] = Counter()  # since the last write
        self._bytes: Counter[_Sort] = Counter()  # in this minute
        self._minute_began_ms = 0

    def line(self, event: AuditEvent) -> str | None:
        """Return the line of an event; None if its share is used up, and it is only counted."""
        if not 0 <= event.time_ms - self._minute_began_ms < limits.AUDIT_SHARE_MS:
            self._minute_began_ms = event.time_ms
            self._bytes.clear()
        sort = self._sort(event)
        if (
            self._noted[sort] >= limits.AUDIT_SHARE_EVENTS_MAX
            or self._bytes[sort] >= limits.AUDIT_SHARE_BYTES_PER_MINUTE
        ):
            self._left_out[sort] += 1
            return None
        line = event.line()
        self._noted[sort] += 1
        self._bytes[sort] += len(line)
        return line

    def summaries(self, now_ms: int) -> list[AuditEvent]:
        """Return an event for each share of which events were only counted, and begin anew."""
        left_out, self._left_out = self._left_out, Counter()
        self._noted.clear()
        return [_summary(now_ms, sort, count) for sort, count in left_out.items()]

    def _sort(self, event: AuditEvent) -> _Sort:
        kind = event.resource if event.resource_type == API else event.resource_type
        is_known = event.principal not in ("", str(ANONYMOUS))
        sort = _Sort(event.principal, "" if is_known else event.host, kind, event.allowed)
        if sort not in self._bytes and len(self._bytes) >= limits.AUDIT_SHARES_MAX:
            return sort._replace(principal=_OTHERS, host="")
        return sort


def _summary(now_ms: int, sort: _Sort, count: int) -> AuditEvent:
    if sort.kind in AclResourceType.__members__:
        what = f"{'events' if sort.allowed else 'refusals'} by {sort.whose} on {sort.kind.lower().replace('_', ' ')}s"
    elif sort.kind == LISTENER:
        what = f"{'logins' if sort.allowed else 'failed logins'} by {sort.whose}"
    else:
        what = f"{'requests' if sort.allowed else 'refused requests'} {sort.kind} by {sort.whose}"
    return AuditEvent(now_ms, sort.principal, sort.host, f"{count} more {what}", sort.kind, "", sort.allowed)
