"""Explain: may a principal do something, and which rule decides?"""

from __future__ import annotations

from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.failures import REFUSALS
from ottla.console.html import Content, tag
from ottla.console.pages.access.rule_words import OPERATIONS, RESOURCES, principal_field, right_of
from ottla.console.pages.access.tab import below_access
from ottla.console.parts.forms import choice, field, query_form
from ottla.console.parts.typed import TypedForm
from ottla.console.parts.words import card, notice, told
from ottla.console.routing import page
from ottla.operations.access.entry_words import explained
from ottla.operations.access.super_users import unseen_settings
from ottla.security.access_rules import AccessRules
from ottla.security.acl_entry import AclFilter
from ottla.security.acls import PatternType
from ottla.security.principal import parse_principal

_LOCAL = "127.0.0.1"


@page("/access/explain")
async def explain(call: PageCall) -> Page:
    typed, answer = TypedForm(call, given=call.query), None
    if call.query.get("principal"):
        try:
            answer = await _answer(call)
        except REFUSALS as error:
            typed = TypedForm(call, error, given=call.query)
    asking = query_form(
        "/access/explain",
        principal_field(call, typed),
        choice("operation", "Operation", OPERATIONS, "read", typed=typed),
        choice("resource", "Resource", RESOURCES, "topic", typed=typed),
        field("name", "Name", typed=typed),
        field("host", "Host", _LOCAL, hint="the address that the client connects from", typed=typed),
        submit="Explain",
    )
    asked = card("May somebody do something?", asking)
    return below_access("/access/rules", "Explain a right", typed.said, answer, asked, status=typed.status)


async def _answer(call: PageCall) -> Content:
    right = right_of(call, host=_LOCAL)
    rules = AccessRules((), allow_everyone_if_no_acl_found=False)
    kept = await call.admin.acls.describe(AclFilter(*right.resource, PatternType.MATCH))
    for number, entry in enumerate(kept):
        rules.add(entry.as_record(number.to_bytes(16, "big")))
    client = (right.principal, right.host, right.operation)
    why = rules.explain(parse_principal(right.principal), right.host, right.operation, *right.resource)
    unseen = [] if why.allowed else sorted(await unseen_settings(call.admin))
    hint = f"brokers hide {' and '.join(unseen)}, which may allow more" if unseen else ""
    said = notice(explained(client, right.resource, why), "good" if why.allowed else "bad", hint)
    name = right.resource[1]
    return tag("div", said, tag("p", "Asked about ", told(name), ".") if name else None)
