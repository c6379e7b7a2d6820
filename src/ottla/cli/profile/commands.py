"""`ottla profile`: the profiles of this user, without their secrets."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.options import Json
from ottla.operations.errors import CommandError

app = typer.Typer(
    help="Show the profiles in ~/.config/ottla/profiles.toml: how commands reach a cluster, by name.\n\n"
    "A profile is a table of that file with `bootstrap`, `registry` and Kafka's security settings "
    "(`security.protocol`, `sasl.*`, `ssl.*`). A secret may be `env:NAME` or `file:PATH`. "
    "`--profile NAME` (or OTTLA_PROFILE) uses it.",
    no_args_is_help=True,
)


@app.command("list")
def list_profiles(as_json: Json = False) -> None:
    """List the profiles with their addresses, and what is wrong with those that cannot be used."""
    from ottla.cli.profile.chosen import warn_if_exposed
    from ottla.cli.profile.files import problem_of, read_profiles
    from ottla.cli.terminal.output import print_rows
    from ottla.client.profiles import profiles_path, shown_url

    path = profiles_path()
    profiles = read_profiles(path)
    warn_if_exposed(path, profiles)
    rows = [
        {
            "profile": each.name,
            "bootstrap": each.bootstrap,
            "registry": shown_url(each.registry),
            "security": each.security.get("security.protocol", "PLAINTEXT"),
            "problem": problem_of(each),
        }
        for each in profiles.values()
    ]
    columns = ["profile", "bootstrap", "registry", "security"]
    print_rows(rows, [*columns, *(["problem"] if any(each["problem"] for each in rows) else [])], as_json=as_json)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="The profile.")],
    as_json: Json = False,
) -> None:
    """Show the settings of one profile; secrets are hidden."""
    from ottla.cli.profile.chosen import warn_if_exposed
    from ottla.cli.profile.files import read_profiles
    from ottla.cli.terminal.output import print_json, print_rows
    from ottla.client.profiles import profiles_path, shown_url
    from ottla.client.security.names import hidden

    path = profiles_path()
    profiles = read_profiles(path)
    if name not in profiles:
        raise CommandError(f"there is no profile {name} in {path}", "`ottla profile list` shows those there are")
    warn_if_exposed(path, profiles)
    profile = profiles[name]
    if profile.problem is not None:
        raise CommandError(str(profile.problem), profile.problem.hint)
    addresses = {"bootstrap": profile.bootstrap, "registry": shown_url(profile.registry)}
    settings = {key: value for key, value in addresses.items() if value is not None} | hidden(profile.settings)
    if as_json:
        print_json(settings)
    else:
        rows = [{"setting": key, "value": value} for key, value in settings.items()]
        print_rows(rows, ["setting", "value"], as_json=False)
