"""The settings of a registry, from a file of properties: checked, and split into its own and its connections'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from ottla.client.security.names import is_security_name
from ottla.client.security.secret import Secret
from ottla.model import limits
from ottla.model.config import Config, unknown
from ottla.model.errors import ApiError
from ottla.model.hosts import is_host
from ottla.model.settings.authorizer import ALLOW_EVERYONE_IF_NO_ACL_FOUND, SUPER_USERS
from ottla.model.settings.own import OTTLA_AUDIT_EVENTS, OTTLA_AUDIT_FILE, OTTLA_AUDIT_TO
from ottla.model.settings.registry import (
    AUTHENTICATION_METHOD,
    INTER_INSTANCE_SECRET,
    REGISTRY_LISTENERS,
    registry,
)
from ottla.model.settings.security import security as tls_of_listeners

STORE_PREFIX: Final = "kafkastore."
_OF_BROKERS: Final = {
    each.name: each
    for each in (*tls_of_listeners.settings.values(), SUPER_USERS, ALLOW_EVERYONE_IF_NO_ACL_FOUND)
    if each.name.startswith("ssl.") or each in (SUPER_USERS, ALLOW_EVERYONE_IF_NO_ACL_FOUND)
} | {each.name: each for each in (OTTLA_AUDIT_TO, OTTLA_AUDIT_FILE, OTTLA_AUDIT_EVENTS)}
REGISTRY_SETTINGS: Final = {**registry.settings, **_OF_BROKERS}
# Other names of settings: those of Confluent where they differ from Kafka's.
_OTHER_NAMES: Final = {"ssl.client.authentication": "ssl.client.auth"}
_NONE: Final = "none"


class InvalidRegistrySettings(ValueError):
    """A setting is unknown or wrong; the text says which one and why."""


class RegistrySettings(NamedTuple):
    """`store` are the settings of the connections to the cluster, without their prefix."""

    config: Config
    store: Mapping[str, str]


class RegistryListener(NamedTuple):
    scheme: str
    host: str
    port: int


def is_of_registry(values: Mapping[str, str]) -> bool:
    """Return whether one of the names is a setting of a registry, or is meant to be one: else the file is another's."""
    found = dict(unknown(values, REGISTRY_SETTINGS))
    return any(
        name not in found or found[name] or name in _OTHER_NAMES or is_security_name(name.removeprefix(STORE_PREFIX))
        for name in values
    )


def registry_settings(values: Mapping[str, str]) -> RegistrySettings:
    """Check settings by name. Raises InvalidRegistrySettings."""
    own: dict[str, str] = {}
    store: dict[str, str] = {}
    for name, value in values.items():
        short = name.removeprefix(STORE_PREFIX)
        if name in _OTHER_NAMES:
            own[_OTHER_NAMES[name]] = value.lower()
        elif short != name and is_security_name(short):
            store[short] = value
        else:
            own[name] = value
    for name, nearest in unknown(own, REGISTRY_SETTINGS):
        if is_security_name(name):
            raise InvalidRegistrySettings(
                f"{name}: the connections to the cluster have the setting {STORE_PREFIX}{name}"
            )
        hint = f"; did you mean {nearest}?" if nearest else ""
        raise InvalidRegistrySettings(f"{name}: there is no such setting of a registry{hint}")
    try:
        return RegistrySettings(Config(own, REGISTRY_SETTINGS), store)
    except ApiError as error:
        raise InvalidRegistrySettings(error.text) from None


def listener_of(config: Config) -> RegistryListener:
    """Return the address to listen on. Raises InvalidRegistrySettings."""
    given = config[REGISTRY_LISTENERS]
    if len(given) != 1:
        raise InvalidRegistrySettings(f"listeners: a registry has one listener, not {len(given)}")
    try:
        parts = urlsplit(given[0])
        port = parts.port
        is_valid = parts.scheme in ("http", "https") and not parts.path.strip("/") and port is not None
        is_valid = is_valid and (not parts.hostname or is_host(parts.hostname))
    except ValueError:
        is_valid = False
    if not is_valid or port is None:
        raise InvalidRegistrySettings(f"listeners: {given[0]!r} is not http://host:port or https://host:port")
    return RegistryListener(parts.scheme, parts.hostname or "", port)


def methods_of(config: Config) -> frozenset[str]:
    """Return the ways of authentication, without `none`. Raises InvalidRegistrySettings."""
    methods = frozenset(each.lower() for each in config[AUTHENTICATION_METHOD])
    if _NONE in methods and len(methods) > 1:
        raise InvalidRegistrySettings(f"{AUTHENTICATION_METHOD.name}: none stands alone")
    return methods - {_NONE}


def secret_of(config: Config) -> str | None:
    """Return the secret that instances share. Raises InvalidRegistrySettings."""
    given = config[INTER_INSTANCE_SECRET]
    if not given:
        return None
    try:
        secret = Secret(given).reveal()
    except ValueError as error:
        raise InvalidRegistrySettings(f"{INTER_INSTANCE_SECRET.name}: {error}") from None
    if len(secret) < limits.INTER_INSTANCE_SECRET_CHARS_MIN:
        raise InvalidRegistrySettings(
            f"{INTER_INSTANCE_SECRET.name} has fewer than {limits.INTER_INSTANCE_SECRET_CHARS_MIN} characters"
        )
    return secret
