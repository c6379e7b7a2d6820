"""Reading `listeners`, `advertised.listeners` and `listener.security.protocol.map`: names, addresses, protocols."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ottla.model.config import Config
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.setting import Setting
from ottla.model.settings.controller import CONTROLLER_LISTENER_NAMES
from ottla.model.settings.network import ADVERTISED_LISTENERS, LISTENER_SECURITY_PROTOCOL_MAP, LISTENERS

_ENTRY = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)://(?P<host>\[[0-9a-fA-F:.%]*\]|[^:/\[\]]*):(?P<port>-?\d+)")
# The default listener, reachable from this machine only.
DEFAULT_LISTENERS = ("PLAINTEXT://127.0.0.1:9092",)
EVERY_INTERFACE = "0.0.0.0"


class ListenerAddress(NamedTuple):
    """One entry of `listeners`: a name and the address to bind."""

    name: str
    host: str
    port: int


def parse_listeners(entries: Sequence[str], setting: str = LISTENERS.name) -> list[ListenerAddress]:
    """Parse entries of the form `PLAINTEXT://host:port`. As with Kafka, an empty host means every interface."""
    found: list[ListenerAddress] = []
    for entry in entries:
        match = _ENTRY.fullmatch(entry)
        if match is None or not 0 <= int(match["port"]) <= 65535:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"{setting}: {entry!r} is not of the form NAME://HOST:PORT")
        endpoint = ListenerAddress(
            match["name"].upper(), match["host"].strip("[]") or EVERY_INTERFACE, int(match["port"])
        )
        if any(other.name == endpoint.name for other in found):
            raise _same_name(setting, ",".join(entries))
        found.append(endpoint)
    return found


def listened(settings: Config) -> list[ListenerAddress]:
    """Return the addresses on which the node listens."""
    return parse_listeners(_entries(settings, LISTENERS) if settings.is_set(LISTENERS) else DEFAULT_LISTENERS)


def advertised(settings: Config) -> list[ListenerAddress]:
    """Return the advertised listeners; empty if the operator set none."""
    entries = _entries(settings, ADVERTISED_LISTENERS)
    found = parse_listeners(entries, ADVERTISED_LISTENERS.name)
    if any(f"://{EVERY_INTERFACE}:" in entry for entry in entries):
        problem = f"advertised.listeners cannot use the nonroutable meta-address {EVERY_INTERFACE}"
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{problem}. Use a routable IP address.")
    return found


def _entries(settings: Config, setting: Setting[tuple[str, ...] | None]) -> Sequence[str]:
    """Return the items of a list setting; raise if the same listener was listed twice, which the list counts once."""
    found = settings[setting] or ()
    text = settings.texts.get(setting.name, "").strip()
    if text and text.count(",") >= len(found):
        raise _same_name(setting.name, text)
    return found


def _same_name(setting: str, text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_CONFIG, f"Each listener must have a different name, {setting}: {text}")


def security_protocols(settings: Config) -> dict[str, str]:
    """Return the security protocol of each listener name."""
    setting = LISTENER_SECURITY_PROTOCOL_MAP
    found = {}
    for entry in settings[setting].split(","):
        name, colon, protocol = entry.strip().upper().partition(":")
        if not (name and colon and protocol):
            raise ApiError(ErrorCode.INVALID_CONFIG, f"{setting.name}: {entry!r} is not of the form NAME:PROTOCOL")
        found[name] = protocol
    if not settings.is_set(setting) and settings.is_set(CONTROLLER_LISTENER_NAMES):
        # As with Kafka, controller listeners need no entry in the map while the map has its default value.
        for name in settings[CONTROLLER_LISTENER_NAMES]:
            found.setdefault(name.upper(), "PLAINTEXT")
    return found
