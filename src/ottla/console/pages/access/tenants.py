"""Tenants: their limits, users and usage; making and deleting one."""

from __future__ import annotations

from ottla.client.admin.tenants import Tenant, TenantUsage
from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.failures import REFUSALS
from ottla.console.html import Content, Markup, path_to, tag
from ottla.console.pages.access.tab import again, below_access, of_access
from ottla.console.parts.forms import check_box, field, form
from ottla.console.parts.tables import Column, listing, plain_table
from ottla.console.parts.typed import TypedForm
from ottla.console.parts.words import card, facts, link, notice, told
from ottla.console.refusals import WrongInput, typed_in
from ottla.console.routing import action, page
from ottla.model.setting import UNLIMITED
from ottla.model.tenancy.tenants import TenantLimits
from ottla.operations.formats import size_text
from ottla.operations.tenants import check_name, found_tenant, full_name, limit_text, limits_of

_PATH = "/access/tenants"
_NO_LIMIT = "unlimited"
_LIMITS = ("storage", "partitions", "connections")


def _at(tenant: str, *rest: str) -> str:
    return path_to("access", "tenants", tenant, *rest)


_COLUMNS: tuple[Column[Tenant], ...] = (
    Column("Tenant", lambda each: link(told(each.name), _at(each.name)), key=lambda each: each.name),
    Column("Storage", lambda each: _storage(each), key=lambda each: each.limits.storage_bytes, is_number=True),
    Column("Partitions", lambda each: limit_text(each.limits.partitions), is_number=True),
    Column("Connections", lambda each: limit_text(each.limits.connections), is_number=True),
    Column("Users", lambda each: len(each.users), key=lambda each: len(each.users), is_number=True),
)


@page("/access/tenants")
async def tenants(call: PageCall) -> Page:
    if not await call.access.is_ottla():
        return of_access(_PATH, "Tenants", notice("Tenants need Ottla: these brokers are not Ottla's."))
    rows = await call.admin.tenants.all()
    table = listing(call, _COLUMNS, rows, text=lambda each: each.name, sort="tenant", noun="tenant")
    said = "A tenant is a prefix of names, such as acme. for topics, groups and users, with limits of its own."
    making = card("Make a tenant", tag("p", said), _making(call, TypedForm(call)))
    return of_access(_PATH, "Tenants", card("Tenants", table), making)


@action("/access/tenants/add")
async def add_tenant(call: PageCall) -> Answer:
    try:
        name = call.text("tenant")
        with typed_in("tenant"):
            check_name(name)
        await call.admin.tenants.create(name, _limits(call, TenantLimits(UNLIMITED, UNLIMITED, UNLIMITED)))
    except REFUSALS as error:
        typed = TypedForm(call, error)
        return again(_PATH, "Make a tenant", typed, _making(call, typed))
    return Redirect(_at(name), done=f"Tenant {name} was made")


@page("/access/tenants/{tenant}")
async def tenant_page(call: PageCall) -> Page:
    tenant = await found_tenant(call.admin, call.params["tenant"])
    usage = await call.admin.tenants.usage(tenant.name)
    users = [
        (name, ", ".join(f"{key} {value:g}" for key, value in quotas.items())) for name, quotas in tenant.users.items()
    ]
    columns: tuple[Column[tuple[str, str]], ...] = (
        Column("User", lambda each: link(told(each[0]), path_to("access", "users", "change", user=each[0]))),
        Column("Quotas", lambda each: told(each[1] or "none")),
    )
    return below_access(
        _PATH,
        f"Tenant {tenant.name}",
        card("Usage", _usage(tenant, usage)),
        card("Users", plain_table(columns, users, empty="no users"), _joining(call, tenant, TypedForm(call))),
        card("Limits", _changing(call, tenant, TypedForm(call))),
        tag("p", link("Delete the tenant", _at(tenant.name, "delete"))) if call.may_change else None,
    )


@action("/access/tenants/{tenant}/limits")
async def change_limits(call: PageCall) -> Answer:
    tenant = await found_tenant(call.admin, call.params["tenant"])
    try:
        await call.admin.tenants.set_limits(tenant.name, _limits(call, tenant.limits))
    except REFUSALS as error:
        typed = TypedForm(call, error)
        return again(_PATH, f"Limits of tenant {tenant.name}", typed, _changing(call, tenant, typed))
    return Redirect(_at(tenant.name), done=f"The limits of tenant {tenant.name} were changed")


@action("/access/tenants/{tenant}/users")
async def add_tenant_user(call: PageCall) -> Answer:
    tenant = await found_tenant(call.admin, call.params["tenant"])
    try:
        user = full_name(tenant.name, call.text("user"))
        with typed_in("user"):
            await call.admin.tenants.add_user(tenant.name, user, {})
    except REFUSALS as error:
        typed = TypedForm(call, error)
        return again(_PATH, f"A user of tenant {tenant.name}", typed, _joining(call, tenant, typed))
    return Redirect(_at(tenant.name), done=f"User {user} has the rights of tenant {tenant.name}")


@page("/access/tenants/{tenant}/delete")
async def tenant_deletion(call: PageCall) -> Page:
    return await _deletion(call, TypedForm(call))


async def _deletion(call: PageCall, typed: TypedForm) -> Page:
    tenant = await found_tenant(call.admin, call.params["tenant"])
    held = (await call.admin.tenants.holdings(tenant.name)).data
    deletion = form(
        call,
        _at(tenant.name, "delete"),
        check_box("with_data", "with its topics and groups", typed=typed) if held else None,
        field("name", "Type the name of the tenant", required=True, typed=typed),
        submit="Delete the tenant",
        is_dangerous=True,
    )
    said = f"It still has {held}." if held else "It has no topics and no groups."
    users = f"{len(tenant.users)} users lose their rights, quotas and passwords."
    goes = card("What goes", tag("p", said), tag("p", users), deletion)
    return below_access(_PATH, f"Delete tenant {tenant.name}", typed.said, goes, status=typed.status)


@action("/access/tenants/{tenant}/delete")
async def delete_tenant(call: PageCall) -> Answer:
    name = call.params["tenant"]
    try:
        if call.form.get("name", "") != name:
            raise WrongInput("the typed name is not that of the tenant", "nothing was deleted", field="name")
        await call.admin.tenants.delete(name, with_data="with_data" in call.form)
    except REFUSALS as error:
        return await _deletion(call, TypedForm(call, error))
    return Redirect(_PATH, done=f"Tenant {name} was deleted")


def _limits(call: PageCall, now: TenantLimits) -> TenantLimits:
    found: dict[str, int] = {}
    for position, name in enumerate(_LIMITS):
        given: list[str | None] = [None] * len(_LIMITS)
        given[position] = call.form.get(name, "").strip() or None
        with typed_in(name):
            found |= limits_of(*given)
    return now._replace(**found)


def _making(call: PageCall, typed: TypedForm) -> Markup:
    name = field("tenant", "Name", required=True, typed=typed)
    return form(call, "/access/tenants/add", name, *_limit_fields(None, typed), submit="Make tenant")


def _changing(call: PageCall, tenant: Tenant, typed: TypedForm) -> Markup:
    return form(call, _at(tenant.name, "limits"), *_limit_fields(tenant.limits, typed), submit="Change limits")


def _joining(call: PageCall, tenant: Tenant, typed: TypedForm) -> Markup:
    hint = f"the name gets {tenant.prefix} in front; the password is set on the page of users"
    user = field("user", "User", hint=hint, typed=typed)
    return form(call, _at(tenant.name, "users"), user, submit="Give a user the rights of the tenant")


def _limit_fields(now: TenantLimits | None, typed: TypedForm) -> list[Content]:
    storage, partitions, connections = (_NO_LIMIT,) * 3 if now is None else map(limit_text, now)
    return [
        field("storage", "Storage", storage, hint="50GB, or unlimited", typed=typed),
        field("partitions", "Partitions", partitions, typed=typed),
        field("connections", "Connections", connections, typed=typed),
    ]


def _storage(tenant: Tenant) -> str:
    size_bytes = tenant.limits.storage_bytes
    return _NO_LIMIT if size_bytes == UNLIMITED else size_text(size_bytes)


def _usage(tenant: Tenant, usage: TenantUsage) -> Content:
    def rate(value: float | None) -> str:
        return "not known" if value is None else f"{size_text(round(value))}/s"

    unknown = f"nodes {', '.join(map(str, usage.unknown_nodes))} did not answer" if usage.unknown_nodes else None
    return facts(
        [
            ("Prefix", told(tenant.prefix)),
            ("Topics", usage.topics),
            ("Partitions", f"{usage.partitions} of {limit_text(tenant.limits.partitions)}"),
            ("Stored", f"{size_text(usage.bytes_once)} of {_storage(tenant)}"),
            ("On disks, with replicas", size_text(usage.bytes_on_disk)),
            ("Written now", rate(usage.produced_byte_rate)),
            ("Read now", rate(usage.consumed_byte_rate)),
            *([("Unknown", unknown)] if unknown else []),
        ]
    )
