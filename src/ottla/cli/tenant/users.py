"""`ottla tenant user`: the users of a tenant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, Yes, with_admin
from ottla.cli.tenant.words import Consume, Mutations, Name, Produce, Requests, User
from ottla.cli.user import PasswordFile, new_user_name
from ottla.model.limits import SCRAM_ITERATIONS_MAX
from ottla.operations.errors import CommandError
from ottla.operations.tenants import DEFAULT_QUOTAS, found_tenant, full_name, quotas_of, quotas_of_new_user

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.client.admin import Admin

app = typer.Typer(help="Add and remove users of a tenant.", no_args_is_help=True)


class NewUser(NamedTuple):
    name: str
    password: str


@app.command()
def add(
    name: Name,
    user: User,
    produce: Produce = None,
    consume: Consume = None,
    request_percentage: Requests = None,
    mutations: Mutations = None,
    password_file: PasswordFile = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Add a user to a tenant. Without quotas of its own, the user gets those of the tenant's first user."""
    from ottla.cli.terminal.output import done
    from ottla.cli.terminal.plain import print_warning

    given = quotas_of(produce, consume, request_percentage, mutations, print_warning)
    tenant = with_admin(bootstrap, lambda admin: found_tenant(admin, name))
    inherited = next(iter(tenant.users.values()), DEFAULT_QUOTAS)
    added = new_user(full_name(name, user), password_file, bootstrap)
    with_admin(bootstrap, lambda admin: add_to(admin, name, added, quotas_of_new_user({**inherited, **given})))
    done(f"added user {added.name} to tenant {name}")


@app.command()
def remove(name: Name, user: User, yes: Yes = False, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """Remove a user of a tenant with its password, rights and quotas. Open connections stay, without rights."""
    from ottla.cli.terminal.consent import ask
    from ottla.cli.terminal.output import done

    doomed = full_name(name, user)
    tenant = with_admin(bootstrap, lambda admin: found_tenant(admin, name))
    if doomed not in tenant.users:
        raise CommandError(f"tenant {name} has no user {doomed}", f"`ottla tenant show {name}` shows its users")
    ask(f"Remove user {doomed} of tenant {name}?", yes=yes)
    with_admin(bootstrap, lambda admin: admin.tenants.remove_user(doomed))
    done(f"removed user {doomed}")


def new_user(user: str, password_file: Path | None, bootstrap: str) -> NewUser:
    """Ask for the password of a user that does not exist yet."""
    from ottla.cli.terminal.passwords import new_password

    new_user_name(user)
    if user in with_admin(bootstrap, lambda admin: admin.users.all()):
        raise CommandError(f"there is a user {user} already", "`ottla user passwd` changes the password")
    return NewUser(user, new_password(user, password_file))


async def add_to(admin: Admin, tenant: str, user: NewUser, quotas: Mapping[str, float]) -> None:
    """Give a user the rights of a tenant, and then a password."""
    from ottla.security.sasl.scram.credentials import ScramMechanism

    await admin.tenants.add_user(tenant, user.name, quotas)
    for each in ScramMechanism:
        await admin.users.set_password(user.name, user.password, mechanism=each, iterations=SCRAM_ITERATIONS_MAX)
