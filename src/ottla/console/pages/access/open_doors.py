"""What is open in the cluster: the findings of `ottla security audit`, each with why it matters and what to do."""

from __future__ import annotations

from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.html import tag
from ottla.console.pages.access.tab import of_access
from ottla.console.parts.tables import Column, plain_table
from ottla.console.parts.words import Mood, badge, card, told
from ottla.console.routing import page
from ottla.operations.security.findings import AuditFinding, AuditSeverity
from ottla.operations.security.sources import cluster_findings

_MOODS: dict[AuditSeverity, Mood] = {AuditSeverity.HIGH: "bad", AuditSeverity.MEDIUM: "fair"}
_COLUMNS: tuple[Column[AuditFinding], ...] = (
    Column("Severity", lambda each: badge(each.severity.name.lower(), _MOODS.get(each.severity, "plain"))),
    Column("What", lambda each: told(each.what)),
    Column("Why it matters", lambda each: told(each.why)),
    Column("What to do", lambda each: told(each.fix)),
)


@page("/access")
async def what_is_open(call: PageCall) -> Page:
    unchecked: list[str] = []
    found = await cluster_findings(call.admin, unchecked.append)
    table = plain_table(_COLUMNS, found, empty="nothing is open that these checks know of")
    left = card("Not checked", tag("ul", [tag("li", told(each)) for each in unchecked])) if unchecked else None
    return of_access("/access", "Access", card("What is open", table), left)
