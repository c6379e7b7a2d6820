"""Access rules (ACLs): listing, adding and removing entries."""

from __future__ import annotations

from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.failures import REFUSALS
from ottla.console.html import Content, Markup, path_to, tag
from ottla.console.pages.access.rule_words import (
    OPERATIONS,
    PREFIX_LABEL,
    RESOURCES,
    entry_of,
    entry_words,
    principal_field,
    right_of,
)
from ottla.console.pages.access.tab import again, below_access, of_access
from ottla.console.parts.forms import check_box, choice, field, form, hidden
from ottla.console.parts.tables import Column, listing
from ottla.console.parts.typed import TypedForm
from ottla.console.parts.words import badge, card, link, notice, told
from ottla.console.refusals import WrongInput
from ottla.console.routing import action, page
from ottla.model.errors import ApiError, ErrorCode
from ottla.operations.access.asked import place_of
from ottla.operations.access.entry_words import row_of, sentence
from ottla.security.acl_entry import AclEntry, AclFilter
from ottla.security.acls import AclPermission

_PATH = "/access/rules"
_PERMISSIONS = {"allow": AclPermission.ALLOW, "deny": AclPermission.DENY}


def _cell(name: str) -> Column[AclEntry]:
    return Column(name.capitalize(), lambda each: told(row_of(each)[name]), key=lambda each: row_of(each)[name])


_COLUMNS: tuple[Column[AclEntry], ...] = (
    _cell("principal"),
    Column("Permission", lambda each: _permission(each), key=lambda each: each.permission),
    _cell("operation"),
    _cell("resource"),
    _cell("name"),
    _cell("pattern"),
    _cell("host"),
    Column("", lambda each: link("Remove", path_to("access", "rules", "remove", **entry_words(each)))),
)


@page("/access/rules")
async def rules(call: PageCall) -> Page:
    try:
        entries = sorted(await call.admin.acls.describe())
    except ApiError as error:
        if error.code is not ErrorCode.SECURITY_DISABLED:
            raise
        said = "The brokers keep no rules: they have no authorizer, so everybody may do everything."
        return of_access(_PATH, "Rules", notice(said, "bad", "authorizer.class.name turns it on; see docs/security.md"))
    table = listing(call, _COLUMNS, entries, text=_text, sort="principal", noun="rule")
    asking = link("Explain: may somebody do something?", "/access/explain")
    return of_access(
        _PATH, "Rules", tag("p", asking), card("Rules", table), card("Add a rule", _adding(call, TypedForm(call)))
    )


@action("/access/rules/add")
async def add_rule(call: PageCall) -> Answer:
    try:
        entry = _asked(call)
        await call.admin.acls.create([entry])
    except REFUSALS as error:
        typed = TypedForm(call, error)
        return again(_PATH, "Add a rule", typed, _adding(call, typed))
    return Redirect(_PATH, done=f"Added: {sentence(entry)}")


def _asked(call: PageCall) -> AclEntry:
    is_prefix = "prefix" in call.form
    right = right_of(call, host="*", is_prefix=is_prefix)
    permission = _PERMISSIONS.get(call.text("permission"))
    if permission is None:
        given = call.text("permission")[:40]
        raise WrongInput(f"the permission is one of {', '.join(_PERMISSIONS)}, not {given!r}", field="permission")
    place = place_of(*right.resource, prefix=is_prefix)
    return AclEntry(*place, right.principal, right.host, right.operation, permission)


@page("/access/rules/remove")
async def removal(call: PageCall) -> Page:
    entry = entry_of(call.query)
    fields = [hidden(name, value) for name, value in entry_words(entry).items()]
    asked = form(call, "/access/rules/remove", *fields, submit="Remove the rule", is_dangerous=True)
    return below_access(_PATH, "Remove a rule", card("This rule", tag("p", told(sentence(entry))), asked))


@action("/access/rules/remove")
async def remove_rule(call: PageCall) -> Answer:
    entry = entry_of(call.form)
    if not await call.admin.acls.delete([AclFilter(*entry)]):
        raise WrongInput("there is no such rule any more")
    return Redirect(_PATH, done=f"Removed: {sentence(entry)}")


def _adding(call: PageCall, typed: TypedForm) -> Markup:
    return form(
        call,
        "/access/rules/add",
        principal_field(call, typed),
        choice("permission", "Permission", [*_PERMISSIONS], hint="a denial outweighs permissions", typed=typed),
        choice("operation", "Operation", OPERATIONS, "read", typed=typed),
        choice("resource", "Resource", RESOURCES, "topic", typed=typed),
        field("name", "Name", hint="of the resource; * stands for all; a cluster needs none", typed=typed),
        check_box("prefix", PREFIX_LABEL, typed=typed),
        field("host", "Host", "*", hint="the address that the client connects from; * is everywhere", typed=typed),
        submit="Add rule",
    )


def _permission(entry: AclEntry) -> Content:
    word = row_of(entry)["permission"]
    return badge(word, "good" if word == "allow" else "bad")


def _text(entry: AclEntry) -> str:
    return " ".join(row_of(entry).values())
