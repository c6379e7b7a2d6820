"""The audit log, as the cluster keeps it in the topic `__ottla_audit`: the last entries, newest first."""

from __future__ import annotations

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
from ottla.operations.security.audit_entries import AuditEntry, AuditTail

_PATH = "/access/audit"


def _on(entry: AuditEntry) -> str:
    return f"{entry.resource_type} {entry.resource}".strip()


def _more(entry: AuditEntry) -> str:
    return ", ".join(f"{name} {text}" for name, text in entry.more)


def _text(entry: AuditEntry) -> str:
    outcome = "allowed" if entry.is_allowed else "refused"
    return " ".join((entry.principal, entry.host, entry.action, _on(entry), outcome, _more(entry)))


_COLUMNS: tuple[Column[AuditEntry], ...] = (
    Column("Time", lambda each: time_text(each.at_ms), key=lambda each: each.at_ms),
    Column("Who", lambda each: told(each.principal), key=lambda each: each.principal),
    Column("From", lambda each: told(each.host), key=lambda each: each.host),
    Column("What", lambda each: told(each.action), key=lambda each: each.action),
    Column("On", lambda each: told(_on(each)), key=_on),
    Column("Outcome", lambda each: badge("allowed", "good") if each.is_allowed else badge("refused", "bad")),
    Column("More", lambda each: told(_more(each))),
)


@page("/access/audit")
async def audit(call: PageCall) -> Page:
    try:
        entries = await AuditTail(call.admin, limits.CONSOLE_AUDIT_ENTRIES).read()
    except ApiError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        said = "The cluster keeps no audit log in a topic that you may read."
        return of_access(_PATH, "Audit log", notice(said, "plain", "ottla.audit.to=topic on each broker turns it on"))
    table = listing(call, _COLUMNS, entries, text=_text, sort="-time", noun="event")
    return of_access(_PATH, "Audit log", card(f"The last entries of {AUDIT_TOPIC}", table))
