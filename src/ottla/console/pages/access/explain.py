"""Explain: may a principal do something, and which rule decides?"""

from __future__ import annotations

from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.html import Content, tag
from ottla.console.pages.access.rule_words import OPERATIONS, RESOURCES, principal_field, resource_of
from ottla.console.pages.access.tab import below_access
from ottla.console.parts.forms import choice, field, query_form
from ottla.console.parts.words import card, notice, told
from ottla.console.refusals import WrongInput
from ottla.console.routing import page
from ottla.operations.access.asked import check_hosts, operation_of
from ottla.operations.access.effect import check_effect, effective_principal
from ottla.operations.access.entry_words import explained
from ottla.operations.access.super_users import unseen_settings
from ottla.security.access_rules import AccessRules
from ottla.security.acl_entry import AclFilter
from ottla.security.acls import PatternType
from ottla.security.principal import parse_principal

_LOCAL = "127.0.0.1"


@page("/access/explain")
async def explain(call: PageCall) -> Page:
    asking = query_form(
        "/access/explain",
        principal_field(call),
        choice("operation", "Operation", OPERATIONS, call.query.get("operation", "read")),
        choice("resource", "Resource", RESOURCES, call.query.get("resource", "topic")),
        field("name", "Name", call.query.get("name", "")),
        field("host", "Host", call.query.get("host", _LOCAL), hint="the address that the client connects from"),
        submit="Explain",
    )
    answer = await _answer(call) if call.query.get("principal") else None
    return below_access("/access/rules", "Explain a right", answer, card("May somebody do something?", asking))


async def _answer(call: PageCall) -> Content:
    try:
        resource = resource_of(call)
        operation = operation_of(call.text("operation"))
        host = call.text("host", _LOCAL)
        check_hosts([host])
        check_effect([resource], [operation])
        who = effective_principal(call.text("principal"))
    except ValueError as error:
        raise WrongInput(str(error)) from None
    rules = AccessRules((), allow_everyone_if_no_acl_found=False)
    for number, entry in enumerate(await call.admin.acls.describe(AclFilter(*resource, PatternType.MATCH))):
        rules.add(entry.as_record(number.to_bytes(16, "big")))
    why = rules.explain(parse_principal(who), host, operation, *resource)
    unseen = [] if why.allowed else sorted(await unseen_settings(call.admin))
    hint = f"brokers hide {' and '.join(unseen)}, which may allow more" if unseen else ""
    said = notice(explained((who, host, operation), resource, why), "good" if why.allowed else "bad", hint)
    return tag("div", said, tag("p", "Asked about ", told(resource[1]), ".") if resource[1] else None)
