"""Profiles: how to reach a cluster and its registry, by name.

    profile = Profile.named("prod")
    producer, registry = Producer(profile.client_options()), SchemaRegistry(profile.registry_options())

`~/.config/ottla/profiles.toml` has a table for each profile: `bootstrap`, `registry`, and the security settings with
Kafka's names, quoted or not. A file of properties for Kafka's own clients has the same settings.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ottla.client.options import ClientOptions
    from ottla.client.registry import RegistryOptions

log = logging.getLogger(__name__)

_BOOTSTRAP: Final = ("bootstrap", "bootstrap.servers")
_REGISTRY: Final = ("registry", "schema.registry.url")
_REFERENCES: Final = ("env:", "file:")
_PEM: Final = "-----BEGIN "
_CREDENTIALS: Final = re.compile(r"//([^/]*)@")  # of a URL: all that stands before the last @ of its address
_HINT: Final = "docs/security.md shows such a file, and `ottla up --secure` writes one"
_PROFILE_HINT: Final = "docs/client.md shows such a file, and `ottla up --secure --save-profile NAME` adds to it"
_PATH_HINT: Final = "is the path right? It is read from the directory that the command runs in"
_PEM_HINT: Final = "a file with security.protocol=SSL and ssl.truststore.location or ssl.keystore.location names it"
# Settings of Kafka's clients that this client does not read, and that look like mistyped names of those that it does.
_OTHERS: Final = ("bootstrap.controllers",)
_NEAR: Final = 0.85  # how much of a name must agree with a known one, so that it counts as mistyped


class ProfileError(ValueError):
    """A profile, or a file of profiles, cannot be used; `hint` says what helps."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Profile:
    """How to reach a cluster and its registry. The settings may hold secrets, which its text does not show."""

    name: str
    bootstrap: str | None = None
    registry: str | None = field(default=None, repr=False)  # a URL may have a password in it
    security: Mapping[str, str] = field(default_factory=dict, repr=False)  # Kafka's settings
    registry_security: Mapping[str, str] = field(default_factory=dict, repr=False)  # Confluent's settings
    where: str = ""  # the file and the profile, for errors
    problem: ProfileError | None = field(default=None, repr=False, compare=False)  # why it cannot be used

    @classmethod
    def named(cls, name: str, path: str | Path | None = None) -> Profile:
        """Read a profile of this user, or of another file of profiles. Raises ValueError if there is none, or if it
        cannot be used; warns if other users can read the secrets in the file.
        """
        place = profiles_path() if path is None else Path(path)
        profiles = read_profiles(place)
        found = profile_in(profiles, name, place)
        if is_exposed(place, profiles):
            log.warning("%s holds secrets, and other users can read it: chmod 600 %s", place, place)
        return found

    @classmethod
    def of_properties(cls, path: str | Path) -> Profile:
        """Read a file of properties for Kafka's clients, as `--command-config` does. Raises ValueError."""
        return read_properties(Path(path))

    @property
    def settings(self) -> dict[str, str]:
        """All settings of security by name."""
        return {**self.security, **self.registry_security}

    def client_options(self, client_id: str = "ottla") -> ClientOptions:
        """The options of clients of the cluster: its addresses and its security."""
        from ottla.client.options import ClientOptions, parse_bootstrap

        if self.problem is not None:
            raise self.problem
        if self.bootstrap is None:
            raise ProfileError(f"{self.where} has no bootstrap", _PROFILE_HINT)
        return ClientOptions(parse_bootstrap(self.bootstrap), client_id, security=self.security or None)

    def registry_options(self) -> RegistryOptions:
        """The options of clients of the registry, likewise."""
        from ottla.client.registry import RegistryOptions
        from ottla.client.security.registry_settings import registry_security

        if self.problem is not None:
            raise self.problem
        if self.registry is None:
            raise ProfileError(f"{self.where} has no registry", _PROFILE_HINT)
        return RegistryOptions.of(self.registry, registry_security(self.registry_security, self.security))


def profiles_path() -> Path:
    """The file of profiles of this user."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "ottla" / "profiles.toml"


def read_profiles(path: Path) -> dict[str, Profile]:
    """Read all profiles; none if there is no file. Raises ProfileError if it cannot be read. What is wrong with one
    profile is its `problem`: the others can be used.
    """
    import tomllib

    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ProfileError(f"{path} cannot be read: {error.strerror}", _PROFILE_HINT) from None
    except UnicodeDecodeError as error:
        raise ProfileError(f"{path} is not TOML: {_wrong_byte(error)}", _PROFILE_HINT) from None
    except tomllib.TOMLDecodeError as error:
        raise ProfileError(f"{path} is not TOML: {error}", _PROFILE_HINT) from None
    return {name: _of_table(name, table, path) for name, table in tables.items()}


def _of_table(name: str, table: object, path: Path) -> Profile:
    where = f"{path}: profile {name}"
    if not isinstance(table, dict):
        problem = ProfileError(f"{path}: {name} is no table; a profile begins with [{name}]", _PROFILE_HINT)
        return Profile(name, where=where, problem=problem)
    settings = _flat(table)
    try:
        _check_texts(table, where)
        return _profile(name, settings, where, strict=True)
    except ProfileError as problem:
        return Profile(
            name,
            bootstrap=_first_of(_BOOTSTRAP, settings),
            registry=_first_of(_REGISTRY, settings),
            security=settings,  # so that a secret among them is known to be in the file
            where=where,
            problem=problem,
        )


def read_properties(path: Path) -> Profile:
    """Read a file of properties for Kafka's clients. What is neither security nor an address has no effect here, unless
    its name is so near to one of these that it is mistyped.
    """
    from ottla.model.properties import PropertiesError, parse_entries

    try:
        text = path.read_text(encoding="utf-8")
        entries = list(parse_entries(text))
    except OSError as error:
        raise ProfileError(f"{path} cannot be read: {error.strerror}", _PATH_HINT) from None
    except UnicodeDecodeError as error:
        raise ProfileError(f"{path} is no file of properties: {_wrong_byte(error)}", _HINT) from None
    except PropertiesError as error:
        raise ProfileError(f"{path} is no file of properties: {error}", _HINT) from None
    if _PEM in text.partition("=")[0]:
        raise ProfileError(f"{path} holds certificates or keys, and no properties", _PEM_HINT)
    if not any(each.separator or each.value for each in entries):
        raise ProfileError(f"{path} is no file of properties: no line of it is name=value", _HINT)
    return _profile(path.name, {each.name: each.value for each in entries}, str(path), strict=False)


def profile_in(profiles: Mapping[str, Profile], name: str, path: Path) -> Profile:
    """Return one of the profiles of a file. Raises ProfileError if it is not there, is empty, or cannot be used."""
    if name not in profiles:
        known = f"it has {', '.join(profiles)}" if profiles else "`ottla profile --help` shows how to make one"
        raise ProfileError(f"there is no profile {name} in {path}", known)
    found = profiles[name]
    if found.problem is not None:
        raise found.problem
    if not (found.bootstrap or found.registry or found.settings):
        raise ProfileError(f"{found.where} is empty", "`ottla profile --help` says what is in one: bootstrap, and more")
    return found


def is_exposed(path: Path, profiles: Mapping[str, Profile]) -> bool:
    """Return whether other users can read the file, and it holds a secret itself."""
    from ottla.client.security.names import is_secret_name

    try:
        is_readable = bool(path.stat().st_mode & 0o044)
    except OSError:
        return False
    return is_readable and any(
        _has_credentials(profile.registry)
        or any(is_secret_name(name) and not value.startswith(_REFERENCES) for name, value in profile.settings.items())
        for profile in profiles.values()
    )


def _has_credentials(url: str | None) -> bool:
    """Return whether a password stands in one of the URLs: behind a colon in what `shown_url` leaves out."""
    return url is not None and any(found.partition(":")[2] for found in _CREDENTIALS.findall(url))


def shown_url(url: str | None) -> str | None:
    """Return URLs without the user and the password that may be in them: nothing that stands before the last @ of an
    address is shown. A password may have an @ or a comma in it, although both should be percent-encoded.
    """
    return None if url is None else _CREDENTIALS.sub("//", url)


def _wrong_byte(error: UnicodeDecodeError) -> str:
    return f"byte {error.start} is 0x{error.object[error.start]:02x}, which is not UTF-8"


def _flat(table: Mapping[str, object], prefix: str = "") -> dict[str, str]:
    """Return the values by dotted name: TOML takes an unquoted `sasl.mechanism` for a table in a table."""
    found: dict[str, str] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            found[prefix + name] = ",".join(str(each) for each in value)
        else:
            found[prefix + name] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def _check_texts(table: Mapping[str, object], where: str, prefix: str = "") -> None:
    """Raise ProfileError for a value that has to be a text, and is a number."""
    for name, value in table.items():
        if isinstance(value, dict):
            _check_texts(value, where, f"{prefix}{name}.")
        elif not isinstance(value, str | list) and _is_text(prefix + name):
            raise ProfileError(f"{where}: {prefix}{name} is a text: write it in quotes", _PROFILE_HINT)


def _first_of(names: tuple[str, ...], settings: Mapping[str, str]) -> str | None:
    return next((settings[each] for each in names if each in settings), None)


def _is_text(name: str) -> bool:
    """Whether a number of TOML cannot be meant: 0x10 would be another password than it looks."""
    from ottla.client.security.names import is_secret_name

    return name in (*_BOOTSTRAP, *_REGISTRY, "sasl.username") or is_secret_name(name)


def _mistyped(unknown: list[str]) -> str | None:
    """Say which known name an unknown one was meant to be; None if none of them is near to one."""
    from difflib import get_close_matches

    from ottla.client.security.names import KNOWN
    from ottla.client.security.registry_settings import REGISTRY_NAMES

    known = sorted({*_BOOTSTRAP, *_REGISTRY, *KNOWN, *REGISTRY_NAMES})
    for name in unknown:
        if name in _OTHERS or any(name.endswith(f".{each}") for each in known):
            continue  # of another client; Kafka Connect and others put a prefix before a known name
        close = get_close_matches(name, known, n=1, cutoff=_NEAR)
        if close:
            return f"{name}: there is no such setting; did you mean {close[0]}?"
    return None


def _profile(name: str, settings: Mapping[str, str], where: str, *, strict: bool) -> Profile:
    from ottla.client.security.names import check_names, is_security_name
    from ottla.client.security.registry_settings import is_registry_name, registry_security

    addresses = {each: value for each, value in settings.items() if each in _BOOTSTRAP + _REGISTRY}
    kafka = {each: value for each, value in settings.items() if is_security_name(each)}
    registry = {
        each: value for each, value in settings.items() if is_registry_name(each) and each not in addresses | kafka
    }
    unknown = [each for each in settings if each not in addresses | kafka | registry]
    try:
        if strict and unknown:
            raise ValueError(f"{', '.join(unknown)}: there is no such setting of a profile")
        if (mistyped := _mistyped(unknown)) is not None:
            raise ValueError(mistyped)
        check_names(kafka)
        registry_security(registry, kafka)
    except ValueError as error:
        raise ProfileError(f"{where}: {error}", _PROFILE_HINT if strict else _HINT) from None
    return Profile(
        name,
        bootstrap=_first_of(_BOOTSTRAP, addresses),
        registry=_first_of(_REGISTRY, addresses),
        security=kafka,
        registry_security=registry,
        where=where,
    )
