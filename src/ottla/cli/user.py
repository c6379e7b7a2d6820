"""`ottla user`: users that log in with SCRAM."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Yes, not_empty, one_of, with_admin
from ottla.cli.terminal.plain import print_warning
from ottla.model.limits import SCRAM_ITERATIONS_MAX, SCRAM_ITERATIONS_MIN
from ottla.operations.broker_settings import settings_of_a_broker
from ottla.operations.errors import CommandError

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin.users import ScramInfo
    from ottla.security.sasl.scram.credentials import ScramMechanism

app = typer.Typer(help="Add, list and remove users that log in with SCRAM.", no_args_is_help=True)


def new_user_name(name: str) -> str:
    """The callback of an argument that names a user who is to be made."""
    from ottla.client.admin.new_users import checked_user

    try:
        return checked_user(name)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")

User = Annotated[str, typer.Argument(help="The user.", callback=not_empty("user"))]
NewUser = Annotated[str, typer.Argument(help="The user.", callback=new_user_name)]
Mechanism = Annotated[
    str | None,
    typer.Option(
        "--mechanism",
        "-m",
        callback=one_of(*_MECHANISMS),
        help="SCRAM-SHA-256 or SCRAM-SHA-512; both unless given.",
    ),
]
Iterations = Annotated[
    int,
    typer.Option(
        "--iterations",
        min=SCRAM_ITERATIONS_MIN,
        max=SCRAM_ITERATIONS_MAX,
        help="Iterations of the password's hash: with more, guessing takes longer.",
    ),
]
PasswordFile = Annotated[
    Path | None,
    typer.Option(
        "--password-file",
        help="File with the password as its only line; - is standard input. Without it, OTTLA_USER_PASSWORD is the "
        "password; without that, the command asks for it.",
    ),
]


@app.command()
def add(
    user: NewUser,
    mechanism: Mechanism = None,
    iterations: Iterations = SCRAM_ITERATIONS_MAX,
    password_file: PasswordFile = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Add a user. The password is asked for; the cluster stores keys that follow from it, not the password."""
    from ottla.cli.terminal.output import done
    from ottla.cli.terminal.passwords import new_password

    async def check(admin: Admin) -> None:
        if await _mechanisms_of(admin, user):
            raise CommandError(f"there is a user {user} already", "`ottla user passwd` changes the password")

    with_admin(bootstrap, check)
    password = new_password(user, password_file)
    with_admin(bootstrap, lambda admin: _set(admin, user, password, _wanted(mechanism), iterations))
    done(f"added user {user}")


@app.command()
def passwd(
    user: User,
    mechanism: Mechanism = None,
    iterations: Iterations = SCRAM_ITERATIONS_MAX,
    password_file: PasswordFile = None,
    force: Annotated[bool, typer.Option("--force", help="Change also the user that the brokers log in as.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Change a user's password: for all mechanisms of the user, or for the given one.

    With --mechanism, the others keep the old password, and a warning says so.
    Connections that are open stay open, with the rights of that user.
    """
    from ottla.cli.terminal.output import done
    from ottla.cli.terminal.passwords import new_password

    known = [each.mechanism for each in with_admin(bootstrap, lambda admin: _mechanisms_of(admin, user))]
    if not known:
        raise _unknown(user)
    mechanisms = known if mechanism is None else _wanted(mechanism)
    names = [each.sasl_name for each in mechanisms]
    if not force and with_admin(bootstrap, lambda admin: _may_be_of_brokers(admin, user, names)):
        raise CommandError(
            f"the brokers of `ottla up --secure` log in to each other as user {user}, with the password in their "
            "property files, and could not any more: nothing was done",
            f"--force changes it all the same: write the new one into secure/{user}.password, and into each "
            "node-N.properties and schema-registry.properties, and start them again at once",
        )
    own = _own_login(user)
    password = new_password(user, password_file)
    with_admin(bootstrap, lambda admin: _set(admin, user, password, mechanisms, iterations))
    done(f"changed the password of user {user} ({_names(mechanisms)})")
    kept = [each for each in known if each not in mechanisms]
    if kept:
        print_warning(f"{_names(kept)} of user {user} keeps the old password: without --mechanism, all are changed")
    if own in names:
        print_warning(_with_former_password(user))


@app.command("list")
def list_users(as_json: Json = False, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """List the users that have a SCRAM password, and their mechanisms."""
    from ottla.cli.terminal.output import print_json, print_table

    found = with_admin(bootstrap, lambda admin: admin.users.all())
    if as_json:
        print_json(
            [
                {"user": user, "mechanisms": {each.mechanism.sasl_name: each.iterations for each in infos}}
                for user, infos in found.items()
            ]
        )
        return
    rows = [(user, info.mechanism.sasl_name, info.iterations) for user, infos in found.items() for info in infos]
    print_table(["user", "mechanism", "iterations"], rows, right=["iterations"])


@app.command()
def remove(
    user: User,
    mechanism: Mechanism = None,
    yes: Yes = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Remove also a user that this command or the brokers log in as; do not ask."),
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Remove a user, or only the password for one mechanism. Access rules and quotas of the user stay."""
    from ottla.cli.terminal.consent import ask
    from ottla.cli.terminal.output import done

    known = with_admin(bootstrap, lambda admin: _mechanisms_of(admin, user))
    wanted = _wanted(mechanism)
    doomed = [each.mechanism for each in known if each.mechanism in wanted]
    if not doomed:
        raise _unknown(user, mechanism)
    names = [each.sasl_name for each in doomed]
    if not force and _own_login(user) in names:
        raise CommandError(
            f"this command is logged in as user {user}, who could not log in any more: nothing was done",
            "remove it as another user, or give --force",
        )
    if not force and with_admin(bootstrap, lambda admin: _may_be_of_brokers(admin, user, names)):
        raise CommandError(
            f"the brokers of `ottla up --secure` log in to each other as user {user}, and could not any more: nothing "
            "was done",
            "--force removes the user all the same",
        )
    ask(f"Remove user {user} ({', '.join(names)})?", yes=yes or force)

    async def work(admin: Admin) -> None:
        for each in doomed:
            await admin.users.remove(user, each)

    with_admin(bootstrap, work)
    done(f"removed user {user}" if len(doomed) == len(known) else f"removed {mechanism} of user {user}")


async def _mechanisms_of(admin: Admin, user: str) -> tuple[ScramInfo, ...]:
    from ottla.model.errors import ApiError, ErrorCode

    try:
        return await admin.users.describe(user)
    except ApiError as error:
        if error.code == ErrorCode.RESOURCE_NOT_FOUND:
            return ()
        raise


async def _set(admin: Admin, user: str, password: str, mechanisms: list[ScramMechanism], iterations: int) -> None:
    for each in mechanisms:
        await admin.users.set_password(user, password, mechanism=each, iterations=iterations)


def _wanted(mechanism: str | None) -> list[ScramMechanism]:
    from ottla.security.sasl.scram.credentials import SCRAM_MECHANISMS

    return list(SCRAM_MECHANISMS.values()) if mechanism is None else [SCRAM_MECHANISMS[mechanism]]


def _names(mechanisms: list[ScramMechanism]) -> str:
    return " and ".join(each.sasl_name for each in mechanisms)


def _own_login(user: str) -> str | None:
    """The SASL mechanism with which this command logs in as `user`; None if it does not."""
    from ottla.cli.profile.chosen import security

    known = security()
    sasl = None if known is None else known.sasl
    return None if sasl is None or sasl.username != user or sasl.is_token else sasl.mechanism


def _with_former_password(user: str) -> str:
    """The warning that the settings of this command do not log in any more."""
    from ottla.cli.nodes.secure_files import renewal_of
    from ottla.cli.profile.chosen import chosen
    from ottla.security.development import ADMIN

    profile = chosen()
    where = "this command" if profile is None else profile.where
    told = f"{where} logs in as user {user} with the former password: give it the new one"
    folder = None if profile is None else Path(profile.where).parent
    if user == ADMIN and folder is not None and (folder / f"{ADMIN}.password").exists():
        told += f". {folder} is of `ottla up --secure`: {renewal_of(folder)}"
    return told


async def _may_be_of_brokers(admin: Admin, user: str, mechanisms: list[str]) -> bool:
    """Whether brokers log in as this user. They hide their JAAS lines, so it counts by its name, as `ottla up --secure`
    chooses it, and by the mechanism with which they log in.
    """
    from ottla.model.settings.sasl import SASL_MECHANISM_INTER_BROKER_PROTOCOL
    from ottla.security.development import NODE

    if user != NODE:
        return False
    entries = await settings_of_a_broker(admin)
    if entries is None:
        return True
    return any(each.name == SASL_MECHANISM_INTER_BROKER_PROTOCOL.name and each.value in mechanisms for each in entries)


def _unknown(user: str, mechanism: str | None = None) -> CommandError:
    what = f"user {user} has no password for {mechanism}" if mechanism else f"there is no user {user}"
    return CommandError(what, "`ottla user list` shows the users")
