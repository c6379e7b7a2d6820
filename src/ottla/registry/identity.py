"""The JSON that members of the election group exchange: their addresses, and the elected leader.

Metadata and assignment are spelled as Confluent's registry and Karapace spell them (group protocol type `sr`, protocol
`v0`), so that instances of all three could be in one group. Any client may join a group, so the contents are validated:
anything that is not a valid address is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from ottla.model.hosts import is_host
from ottla.model.limits import REGISTRY_IDENTITY_BYTES_MAX

PROTOCOL_TYPE = "sr"
PROTOCOL = "v0"
_VERSION = 1
_NO_ERROR, _SAME_URL = 0, 1
_SCHEMES = ("http", "https")


class RegistryIdentity(NamedTuple):
    """The address at which other instances reach an instance."""

    host: str
    port: int
    scheme: str = "http"
    eligible: bool = True

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


class Elected(NamedTuple):
    """The result of an election: the member that writes, None if there is none; or that it failed."""

    member_id: str | None
    identity: RegistryIdentity | None
    failed: bool = False


def client_id_of(identity: RegistryIdentity) -> str:
    """Return the client id of an instance: the only thing that DescribeGroups returns of a member while its group
    rebalances.
    """
    return f"ottla-registry-{identity.host}:{identity.port}"


def write_identity(identity: RegistryIdentity) -> bytes:
    return json.dumps(_fields(identity), separators=(",", ":")).encode()


def read_identity(blob: bytes) -> RegistryIdentity | None:
    """Read an identity; None if it is invalid."""
    try:
        return _identity(_content(blob))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def write_elected(elected: Elected) -> bytes:
    identity = elected.identity
    content = {
        "version": _VERSION,
        "error": _SAME_URL if elected.failed else _NO_ERROR,
        "master": elected.member_id,
        "master_identity": None if identity is None else _fields(identity),
    }
    return json.dumps(content, separators=(",", ":")).encode()


def read_elected(blob: bytes) -> Elected:
    try:
        content = _content(blob)
        if content.get("error", _NO_ERROR) != _NO_ERROR:
            return Elected(None, None, failed=True)
        found = content.get("master_identity")
        return Elected(content.get("master"), None if found is None else _identity(found))
    except (ValueError, KeyError, TypeError, AttributeError):
        return Elected(None, None, failed=True)


def choose(members: Mapping[str, RegistryIdentity | None], present: str | None) -> Elected:
    """Choose the writer: the `present` one if it is still a member, else the eligible member with the smallest URL."""
    known = {member_id: each for member_id, each in members.items() if each is not None}
    urls = [each.url for each in known.values()]
    if len(urls) != len(frozenset(urls)):
        return Elected(None, None, failed=True)
    eligible = sorted((each.url, member_id) for member_id, each in known.items() if each.eligible)
    if not eligible:
        return Elected(None, None)
    chosen = next((member_id for url, member_id in eligible if url == present), eligible[0][1])
    return Elected(chosen, known[chosen])


def _fields(identity: RegistryIdentity) -> dict[str, object]:
    return {
        "version": _VERSION,
        "host": identity.host,
        "port": identity.port,
        "master_eligibility": identity.eligible,
        "scheme": identity.scheme,
    }


def _content(blob: bytes) -> Any:
    if len(blob) > REGISTRY_IDENTITY_BYTES_MAX:
        raise ValueError("it is too long")
    try:
        return json.loads(blob)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def _identity(content: Mapping[str, object]) -> RegistryIdentity:
    host, port, scheme = content["host"], content["port"], content.get("scheme") or "http"
    if not isinstance(port, int) or not 0 <= port < 2**16:
        raise ValueError("the port is none")
    if not isinstance(host, str) or not host.isascii() or not is_host(host):
        raise ValueError("the host is none")
    if scheme not in _SCHEMES:
        raise ValueError("the scheme is neither http nor https")
    eligible = content.get("master_eligibility", content.get("leader_eligibility", True))
    return RegistryIdentity(host, port, str(scheme), bool(eligible))
