"""Profiles and Kafka's client properties, as commands read them: what is wrong is a command's error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ottla.client import profiles
from ottla.client.profiles import Profile, ProfileError
from ottla.operations.errors import CommandError


def read_profiles(path: Path) -> dict[str, Profile]:
    """Read all profiles; none if there is no file. Raises CommandError if it cannot be read."""
    with _told():
        return profiles.read_profiles(path)


def read_command_config(path: Path) -> Profile:
    """Read a file of properties for Kafka's clients. Raises CommandError if it cannot be used."""
    with _told():
        return profiles.read_properties(path)


def profile_in(known: dict[str, Profile], name: str, path: Path) -> Profile:
    """Return one of the profiles of a file. Raises CommandError if it is not there, is empty, or cannot be used."""
    with _told():
        return profiles.profile_in(known, name, path)


def problem_of(profile: Profile) -> str | None:
    """Say why a profile cannot be used; None if it can."""
    from ottla.client.security.security import as_security

    problem: ValueError | None = profile.problem
    if problem is None:
        try:
            as_security(profile.security)
        except ValueError as error:
            problem = error
    return None if problem is None else str(problem).removeprefix(f"{profile.where}: ")


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except ProfileError as error:
        raise CommandError(str(error), error.hint) from None
