"""Who is who among registries: the JSON that members of the election group exchange.

Metadata and assignment are spelled as Confluent's registry and Karapace spell them (group protocol type `sr`, protocol
`v0`), so that instances of all three could sit in one group.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

PROTOCOL_TYPE = "sr"
PROTOCOL = "v0"
_VERSION = 1
_NO_ERROR, _SAME_URL = 0, 1


class Identity(NamedTuple):
    """Where an instance is reached by the others."""

    host: str
    port: int
    scheme: str = "http"
    eligible: bool = True

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


class Elected(NamedTuple):
    """What the group decided: the member that writes, None if none can; or why nothing could be decided."""

    member_id: str | None
    identity: Identity | None
    failed: bool = False


def client_id_of(identity: Identity) -> str:
    """What brokers know an instance by: the one thing they tell of a member while its group has not settled."""
    return f"ottla-registry-{identity.host}:{identity.port}"


def write_identity(identity: Identity) -> bytes:
    return json.dumps(_fields(identity), separators=(",", ":")).encode()


def read_identity(blob: bytes) -> Identity | None:
    """None when it is not an identity."""
    try:
        return _identity(json.loads(blob))
    except (ValueError, KeyError, TypeError):
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
        content = json.loads(blob)
        if content.get("error", _NO_ERROR) != _NO_ERROR:
            return Elected(None, None, failed=True)
        found = content.get("master_identity")
        return Elected(content.get("master"), None if found is None else _identity(found))
    except (ValueError, KeyError, TypeError, AttributeError):
        return Elected(None, None, failed=True)


def choose(members: Mapping[str, Identity | None], present: str | None) -> Elected:
    """Who writes: the `present` writer if it is still there, else the eligible member with the smallest URL."""
    known = {member_id: each for member_id, each in members.items() if each is not None}
    urls = [each.url for each in known.values()]
    if len(urls) != len(frozenset(urls)):
        return Elected(None, None, failed=True)
    eligible = sorted((each.url, member_id) for member_id, each in known.items() if each.eligible)
    if not eligible:
        return Elected(None, None)
    chosen = next((member_id for url, member_id in eligible if url == present), eligible[0][1])
    return Elected(chosen, known[chosen])


def _fields(identity: Identity) -> dict[str, object]:
    return {
        "version": _VERSION,
        "host": identity.host,
        "port": identity.port,
        "master_eligibility": identity.eligible,
        "scheme": identity.scheme,
    }


def _identity(content: Mapping[str, object]) -> Identity:
    port = content["port"]
    if not isinstance(port, int):
        raise TypeError("the port is not a number")
    eligible = content.get("master_eligibility", content.get("leader_eligibility", True))
    return Identity(str(content["host"]), port, str(content.get("scheme") or "http"), bool(eligible))
