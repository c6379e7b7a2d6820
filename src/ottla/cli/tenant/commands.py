"""`ottla tenant`: create, show, measure and delete tenants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Yes, with_admin
from ottla.cli.tenant import users
from ottla.cli.tenant.words import (
    Connections,
    Consume,
    Mutations,
    Name,
    Partitions,
    Produce,
    RegistryOfTenant,
    Requests,
    Storage,
)
from ottla.cli.terminal.plain import print_warning
from ottla.cli.user import PasswordFile, new_user_name
from ottla.model.setting import UNLIMITED
from ottla.operations.errors import CommandError, WrongUsage
from ottla.operations.tenants import (
    DEFAULT_QUOTAS,
    check_name,
    found_tenant,
    full_name,
    has_authorizer,
    limit_text,
    limits_of,
    quotas_of,
    quotas_of_new_user,
    rate_text,
    tenant_json,
)

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin.tenants import Tenant, TenantUsage

app = typer.Typer(
    help="Tenants: a prefix of names, with users, rights, quotas and limits of its own.", no_args_is_help=True
)
app.add_typer(users.app, name="user")


@app.command()
def create(
    name: Name,
    storage: Storage = None,
    produce: Produce = None,
    consume: Consume = None,
    partitions: Partitions = None,
    connections: Connections = None,
    request_percentage: Requests = None,
    mutations: Mutations = None,
    user: Annotated[str, typer.Option("--user", help="Its first user; the prefix is put before the name.")] = "app",
    no_user: Annotated[bool, typer.Option("--no-user", help="Create no user.")] = False,
    password_file: PasswordFile = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Create a tenant. Its topics, groups, transactional ids and users have names that begin with NAME and a dot.

    Its users have all rights on these names and none on the cluster. What has no limit is unlimited.
    """
    from ottla.cli.terminal.output import done
    from ottla.model.tenancy.tenants import TenantLimits, prefix_of

    check_name(name)
    if not user.strip():
        raise WrongUsage("the name of the user is empty", "--no-user creates no user")
    new_user_name(full_name(name, user))
    asked = quotas_of(produce, consume, request_percentage, mutations, print_warning)
    quotas = quotas_of_new_user({**DEFAULT_QUOTAS, **asked})
    wanted = TenantLimits(UNLIMITED, UNLIMITED, UNLIMITED)._replace(**limits_of(storage, partitions, connections))

    async def check(admin: Admin) -> None:
        if name in [each.name for each in await admin.tenants.all()]:
            raise CommandError(f"there is a tenant {name} already", f"`ottla tenant show {name}` shows it")
        if not await has_authorizer(admin):
            open_to_all = "the brokers have no authorizer: every client reaches the topics of every tenant"
            if not no_user:
                raise CommandError(f"{open_to_all}, and no user can get rights", "--no-user makes a tenant of limits")
            print_warning(open_to_all)

    with_admin(bootstrap, check)
    first = None if no_user else users.new_user(full_name(name, user), password_file, bootstrap)

    async def work(admin: Admin) -> None:
        await admin.tenants.create(name, wanted)
        if first is not None:
            await users.add_to(admin, name, first, quotas)

    with_admin(bootstrap, work)
    who = "no user" if first is None else f"user {first.name}"
    done(f"created tenant {name}: names that begin with {prefix_of(name)}, {who}")


@app.command("list")
def list_tenants(json: Json = False, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """List the tenants with their limits."""
    from ottla.cli.terminal.output import print_json, print_table

    found = with_admin(bootstrap, lambda admin: admin.tenants.all())
    if json:
        print_json([tenant_json(each) for each in found])
        return
    rows = [(each.name, *map(limit_text, each.limits), len(each.users)) for each in found]
    columns = ["tenant", "storage bytes", "partitions", "connections", "users"]
    print_table(columns, rows, right=columns[1:])


@app.command()
def show(name: Name, json: Json = False, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """Show a tenant: its limits, its users, and their quotas."""
    from ottla.cli.terminal.output import print_json, print_table

    tenant = with_admin(bootstrap, lambda admin: found_tenant(admin, name))
    if json:
        print_json(tenant_json(tenant))
        return
    rows: list[tuple[str, str]] = [("prefix", tenant.prefix)]
    rows += [(key.replace("_", " "), limit_text(value)) for key, value in tenant.limits._asdict().items()]
    for user, quotas in tenant.users.items():
        shown = ", ".join(f"{key}={value:.12g}" for key, value in quotas.items())
        rows.append((f"user {user}", shown or "no quotas"))
    print_table(["what", "value"], rows)


@app.command()
def usage(name: Name, json: Json = False, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """Measure what a tenant has: topics, partitions, bytes with and without replicas, and bytes per second.

    The rates are of the last eleven seconds (quota.window.num), summed over brokers.
    """
    from ottla.cli.terminal.output import note, print_json, print_table

    async def measure(admin: Admin) -> tuple[Tenant, TenantUsage]:
        return await found_tenant(admin, name), await admin.tenants.usage(name)

    tenant, used = with_admin(bootstrap, measure)
    if used.unknown_nodes:
        note(f"brokers {', '.join(map(str, used.unknown_nodes))} did not answer: their replicas are not counted")
    if used.unmeasured_nodes:
        nodes = ", ".join(map(str, used.unmeasured_nodes))
        note(f"brokers {nodes} do not tell the rates of tenants, as Kafka's do not: theirs are not counted")
    if json:
        limits = tenant_json(tenant)
        print_json(
            {
                "tenant": name,
                "topics": used.topics,
                "partitions": used.partitions,
                "partitions_max": limits["partitions"],
                "bytes": used.bytes_once,
                "bytes_max": limits["storage_bytes"],
                "bytes_on_disk": used.bytes_on_disk,
                "produced_byte_rate": used.produced_byte_rate,
                "consumed_byte_rate": used.consumed_byte_rate,
                "unknown_nodes": used.unknown_nodes,
                "unmeasured_nodes": used.unmeasured_nodes,
            }
        )
        return
    rows = [
        ("topics", used.topics, "-"),
        ("partitions", used.partitions, limit_text(tenant.limits.partitions)),
        ("bytes, each partition once", used.bytes_once, limit_text(tenant.limits.storage_bytes)),
        ("bytes of all replicas", used.bytes_on_disk, "-"),
        ("bytes per second produced", rate_text(used.produced_byte_rate), "-"),
        ("bytes per second consumed", rate_text(used.consumed_byte_rate), "-"),
    ]
    print_table(["what", "used", "limit"], rows, right=["used", "limit"])


@app.command()
def alter(
    name: Name,
    storage: Storage = None,
    produce: Produce = None,
    consume: Consume = None,
    partitions: Partitions = None,
    connections: Connections = None,
    request_percentage: Requests = None,
    mutations: Mutations = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Change limits of a tenant, and quotas of all its users; what is not given stays, `unlimited` lifts a limit."""
    from ottla.cli.terminal.output import done

    quotas = quotas_of(produce, consume, request_percentage, mutations, print_warning)
    changed = limits_of(storage, partitions, connections)
    if not quotas and not changed:
        raise typer.BadParameter("nothing to change: give a limit or a rate")

    async def work(admin: Admin) -> None:
        tenant = await found_tenant(admin, name)
        if quotas and not tenant.users:
            raise CommandError(
                f"tenant {name} has no users, and rates are those of its users: nothing was changed",
                f"`ottla tenant user add {name} USER` adds one",
            )
        if changed:
            await admin.tenants.set_limits(name, tenant.limits._replace(**changed))
        for user in tenant.users if quotas else ():
            await admin.tenants.set_quotas(user, quotas)

    with_admin(bootstrap, work)
    done(f"changed tenant {name}")


@app.command()
def delete(
    name: Name,
    with_data: Annotated[
        bool, typer.Option("--with-data", help="Delete its topics and groups, with all records and offsets, too.")
    ] = False,
    registry: RegistryOfTenant = None,
    yes: Yes = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Delete a tenant with its users, their rights and quotas. It must have no topics and groups, unless --with-data
    is given.

    Its transactional ids stay until they expire, and its subjects in a schema registry unless --registry names it.
    """
    from ottla.cli.registry.calls import RegistryCalls
    from ottla.cli.tenant.subjects import delete_subjects, subjects_of
    from ottla.cli.terminal.consent import ask
    from ottla.cli.terminal.output import done, note

    async def look(admin: Admin) -> tuple[Tenant, str]:
        return await found_tenant(admin, name), (await admin.tenants.holdings(name)).data

    if registry and not with_data:
        raise WrongUsage("--registry deletes data", "give --with-data as well")
    tenant, data = with_admin(bootstrap, look)
    if data and not with_data:
        raise CommandError(f"tenant {name} still has {data}", "--with-data deletes them, too")
    calls = RegistryCalls(registry) if registry else None
    subjects = len(subjects_of(calls, tenant.prefix)) if calls else 0
    doomed = [f"{len(tenant.users)} users", data and f"{data} with all records and offsets"]
    doomed += [f"{subjects} subjects of the registry"] if subjects else []
    ask(f"Delete tenant {name}, {', and '.join(filter(None, doomed))}?", yes=yes)
    stay = with_admin(bootstrap, lambda admin: admin.tenants.delete(name, with_data=with_data))
    if stay:
        note(f"{len(stay)} transactional ids stay until they expire (transactional.id.expiration.ms): {stay[0]}")
    if calls:
        delete_subjects(calls, tenant.prefix)
    elif with_data:
        note(f"subjects {tenant.prefix}* of a schema registry stay; --registry URL deletes them")
    done(f"deleted tenant {name}")
