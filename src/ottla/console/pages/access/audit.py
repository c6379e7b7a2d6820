"""The audit log, as the cluster keeps it in the topic `__ottla_audit`: the last entries, newest first."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import NamedTuple

from ottla.client.consumer.ranges import RangeReader, Span
from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.pages.access.tab import of_access
from ottla.console.parts.tables import Column, listing
from ottla.console.parts.words import badge, card, notice, told
from ottla.console.routing import page
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import AUDIT_TOPIC
from ottla.operations.formats import time_text

_PATH = "/access/audit"
_SHOWN = frozenset({"time", "principal", "host", "operation", "resource", "name", "allowed"})


class AuditRow(NamedTuple):
    """One entry of the audit log."""

    at_ms: int
    principal: str
    host: str
    operation: str
    on: str
    is_allowed: bool
    more: str

    @property
    def text(self) -> str:
        return " ".join((self.principal, self.host, self.operation, self.on, self.more, str(self.is_allowed)))


_COLUMNS: tuple[Column[AuditRow], ...] = (
    Column("Time", lambda each: time_text(each.at_ms), key=lambda each: each.at_ms),
    Column("Who", lambda each: told(each.principal), key=lambda each: each.principal),
    Column("From", lambda each: told(each.host), key=lambda each: each.host),
    Column("What", lambda each: told(each.operation), key=lambda each: each.operation),
    Column("On", lambda each: told(each.on), key=lambda each: each.on),
    Column("Outcome", lambda each: badge("allowed", "good") if each.is_allowed else badge("refused", "bad")),
    Column("More", lambda each: told(each.more)),
)


@page("/access/audit")
async def audit(call: PageCall) -> Page:
    try:
        bounds = await call.admin.topics.bounds(AUDIT_TOPIC)
    except ApiError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        said = "The cluster keeps no audit log in a topic that you may read."
        return of_access(_PATH, "Audit log", notice(said, "plain", "ottla.audit.to=topic on each broker turns it on"))
    each_max = max(1, limits.CONSOLE_AUDIT_ENTRIES // max(len(bounds), 1))
    spans = [
        Span(AUDIT_TOPIC, index, max(each.start, each.end - each_max), each.end)
        for index, each in bounds.items()
        if each.end > each.start
    ]
    rows: list[AuditRow] = []
    if spans:
        async with RangeReader(call.admin.cluster, spans) as reader, aclosing(reader.records()) as records:
            rows = [_row(record.value or b"", record.timestamp) async for record in records]
    table = listing(call, _COLUMNS, rows, text=lambda each: each.text, sort="-time", noun="event")
    return of_access(_PATH, "Audit log", card(f"The last entries of {AUDIT_TOPIC}", table))


def _row(value: bytes, timestamp_ms: int) -> AuditRow:
    try:
        entry = json.loads(value)
    except (ValueError, RecursionError):
        entry = None
    if not isinstance(entry, dict):
        return AuditRow(timestamp_ms, "", "", "not an entry", "", False, value[:200].decode("utf-8", "replace"))
    more = ", ".join(f"{name} {value}" for name, value in entry.items() if name not in _SHOWN)
    on = f"{entry.get('resource', '')} {entry.get('name', '')}".strip()
    who, host, operation = (str(entry.get(name, "")) for name in ("principal", "host", "operation"))
    return AuditRow(timestamp_ms, who, host, operation, on, entry.get("allowed") is True, more)
