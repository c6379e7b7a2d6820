"""The profile that this run of the command uses: `--profile`, `--command-config`, or `OTTLA_PROFILE`.

Rules:
- It is read when a command needs an address or a client, not before: other commands work without it.
- An address on the command line counts first. Then that of a profile which is named on the command line, then the
  environment's, then that of the profile in `OTTLA_PROFILE`, then the default.
"""

from __future__ import annotations

from contextvars import ContextVar
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

if TYPE_CHECKING:
    from ottla.client.profiles import Profile
    from ottla.client.security.registry_settings import RegistrySecurity
    from ottla.client.security.security import Security

OPTIONS = ("--profile", "--command-config")


class _Choice(NamedTuple):
    profile: str | None = None
    config: Path | None = None
    on_command_line: bool = False


_NO_CHOICE = _Choice()
_choice: ContextVar[_Choice] = ContextVar("profile", default=_NO_CHOICE)
_warned: set[Path] = set()


def choose(profile: str | None, config: Path | None, *, on_command_line: bool) -> None:
    """Note what the user chose, for this run."""
    if profile and config:
        raise typer.BadParameter(f"give one of {' and '.join(OPTIONS)}")
    _choice.set(_Choice(profile or None, config, on_command_line))


def hoisted(arguments: list[str], context: typer.Context | None = None) -> list[str]:
    """Return the arguments with `--profile` and `--command-config` in front: they may be given behind a command. An
    empty one is refused, because a command without security would follow.
    """
    front: list[str] = []
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            rest += [word, *words]
        elif word in OPTIONS:
            front += [word, *([value] if (value := next(words, None)) is not None else [])]
        elif word.startswith(tuple(f"{option}=" for option in OPTIONS)):
            front.append(word)
        else:
            rest.append(word)
    for option in OPTIONS:
        if f"{option}=" in front or any(pair == (option, "") for pair in pairwise(front)):
            raise typer.BadParameter(f"{option} is empty", ctx=context)
    return front + rest


def chosen() -> Profile | None:
    """Read the profile that was chosen; None if there is none. Raises CommandError if it does not exist."""
    choice = _choice.get()
    if choice.profile is None and choice.config is None:
        return None
    from ottla.cli.profile.files import profile_in, read_command_config, read_profiles
    from ottla.client.profiles import profiles_path

    if choice.config is not None:
        found = read_command_config(choice.config)
        warn_if_exposed(choice.config, {found.name: found})
        return found
    path = profiles_path()
    profiles = read_profiles(path)
    assert choice.profile is not None
    found = profile_in(profiles, choice.profile, path)
    warn_if_exposed(path, profiles)
    return found


def warn_if_exposed(path: Path, profiles: dict[str, Profile]) -> None:
    """Warn once if other users can read secrets in the file."""
    from ottla.cli.terminal.plain import print_warning
    from ottla.client.profiles import is_exposed

    if path not in _warned and is_exposed(path, profiles):
        _warned.add(path)
        print_warning(f"{path} holds secrets, and other users can read it: chmod 600 {path}")


def security() -> Security | None:
    """The security of connections to the cluster."""
    profile = chosen()
    if profile is None or not profile.security:
        return None
    from ottla.client.security.security import as_security
    from ottla.operations.errors import CommandError

    try:
        return as_security(profile.security)
    except ValueError as error:
        raise CommandError(f"{profile.where}: {error}", "docs/security.md has the settings of clients") from None


def registry_access() -> RegistrySecurity:
    """The credentials and the TLS of requests to the registry."""
    from ottla.client.security.registry_settings import RegistrySecurity, registry_security

    profile = chosen()
    return RegistrySecurity() if profile is None else registry_security(profile.registry_security, profile.security)


def bootstrap_or_profile(context: typer.Context, parameter: typer.CallbackParam, given: str) -> str:
    """The callback of `--bootstrap`: the profile's address unless one was given that counts first."""
    return _first(context, parameter, given, "bootstrap") or given


def registry_or_profile(context: typer.Context, parameter: typer.CallbackParam, given: str | None) -> str | None:
    """The callback of `--registry`, likewise."""
    return _first(context, parameter, given, "registry") or given


def _first(context: typer.Context, parameter: typer.CallbackParam, given: str | None, name: str) -> str | None:
    source = context.get_parameter_source(parameter.name or "")
    kind = "DEFAULT" if source is None else source.name
    if kind == "COMMANDLINE" or (kind == "ENVIRONMENT" and not _choice.get().on_command_line):
        return given
    profile = chosen()
    return None if profile is None else profile.bootstrap if name == "bootstrap" else profile.registry
