"""The audit log as the cluster keeps it in the topic `__ottla_audit`: its newest entries, if a user may read them.

Anybody who may write to the topic can write what is no entry, so entries may be anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, NamedTuple

from ottla.client.consumer.ranges import RangeReader, Span
from ottla.model.names import AUDIT_TOPIC
from ottla.security.audit_event import CHANGE

if TYPE_CHECKING:
    from ottla.client.admin import Admin

_FIELDS = frozenset({"time", "principal", "host", "action", "resource_type", "resource", "outcome"})
_SHOWN_BYTES = 200


class AuditEntry(NamedTuple):
    """One entry: who did what on what, from where, and whether it was allowed; `more` are further fields."""

    at_ms: int
    principal: str
    host: str
    action: str
    resource_type: str
    resource: str
    is_allowed: bool
    more: tuple[tuple[str, str], ...] = ()

    @property
    def is_change(self) -> bool:
        """Whether it is a request that changed something, and was allowed to."""
        return self.action == CHANGE and self.is_allowed

    @property
    def named(self) -> str:
        """What the request named."""
        return dict(self.more).get("named", "")


def entry_of(value: bytes, at_ms: int) -> AuditEntry:
    """The entry in a record."""
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, Mapping):
        text = value[:_SHOWN_BYTES].decode("utf-8", "replace")
        return AuditEntry(at_ms, "", "", "not an entry", "", "", False, (("text", text),))
    texts = {str(name): each if isinstance(each, str) else json.dumps(each) for name, each in found.items()}
    return AuditEntry(
        at_ms,
        texts.get("principal", ""),
        texts.get("host", ""),
        texts.get("action", ""),
        texts.get("resource_type", ""),
        texts.get("resource", ""),
        texts.get("outcome") == "allowed",
        tuple((name, text) for name, text in texts.items() if name not in _FIELDS),
    )


class AuditTail:
    """Reads the end of the topic: at first its last `count` entries, then those that came since, as many at most."""

    def __init__(self, admin: Admin, count: int) -> None:
        self._admin = admin
        self._count = count
        self._next: dict[int, int] = {}  # the first offset that was not read, by partition

    async def read(self) -> list[AuditEntry]:
        """The entries in the order of their partitions. Raises ApiError where there is no such topic for this user."""
        bounds = await self._admin.topics.bounds(AUDIT_TOPIC)
        most = max(1, self._count // max(len(bounds), 1))
        spans = [
            Span(AUDIT_TOPIC, index, start, each.end)
            for index, each in bounds.items()
            if (start := max(each.start, each.end - most, self._next.get(index, 0))) < each.end
        ]
        found: list[AuditEntry] = []
        if spans:
            async with RangeReader(self._admin.cluster, spans) as reader, aclosing(reader.records()) as records:
                found = [entry_of(each.value or b"", each.timestamp) async for each in records]
        self._next = {index: each.end for index, each in bounds.items()}
        return found
