"""Who changed what lately, from the audit log. That a change was allowed is known, and not that it succeeded."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable

from ottla.console.html import Content, Markup, tag
from ottla.console.parts.times import clock
from ottla.console.parts.words import link, told
from ottla.model import limits
from ottla.operations.formats import time_text
from ottla.operations.security.audit_entries import AuditEntry

_DAY_MS = 86_400_000
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


def audited_changes(newest: Iterable[AuditEntry]) -> Content:
    """A line for each change, and the way to the whole log."""
    now_ms = time.time() * 1000
    rows = [tag("li", _line(each, now_ms)) for each in newest]
    nothing = tag("p", "The end of the audit log has no changes.", class_="empty")
    listed = tag("ul", rows, class_="plain-list") if rows else nothing
    return [listed, tag("p", "Requests that were allowed. ", link("The audit log", "/access/audit"), class_="hint")]


def _line(entry: AuditEntry, now_ms: float) -> list[Content]:
    when = clock(entry.at_ms) if now_ms - entry.at_ms < _DAY_MS else time_text(entry.at_ms)
    return [tag("span", when, class_="count"), " ", tag("b", _cut(entry.principal)), " ", _what(entry)]


def _what(entry: AuditEntry) -> list[Content]:
    """`create topics: orders; payments`."""
    words = _WORD.sub(" ", entry.resource[: limits.CONSOLE_CELL_CHARS]).lower()
    return [told(words), ": " if entry.named else None, _cut(entry.named) if entry.named else None]


def _cut(text: str) -> Markup:
    most = limits.CONSOLE_CELL_CHARS
    return told(text if len(text) <= most else text[: most - 1] + "…")
