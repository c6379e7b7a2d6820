"""The digest that tells schemas apart: equal text, references, metadata and rules give one id and one GUID.

Confluent hashes the same parts in the same order, so GUIDs agree with those of its registry.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from ottla.schemas.schema import Reference


def digest_of(
    text: str,
    references: Iterable[Reference] = (),
    metadata: Mapping[str, Any] | None = None,
    rule_set: Mapping[str, Any] | None = None,
) -> bytes:
    parts = [text.encode()]
    for reference in references:
        parts += [reference.name.encode(), reference.subject.encode(), reference.version.to_bytes(4, "big")]
    if metadata is not None:
        parts.append(b"\x01")
        parts += _of_metadata(metadata)
    if rule_set is not None:
        parts.append(b"\x01")
        for kind in ("migrationRules", "domainRules", "encodingRules"):
            for rule in rule_set.get(kind) or ():
                parts += _of_rule(rule)
        parts.append((rule_set.get("enableAt") or "").encode())
    return hashlib.md5(b"".join(parts), usedforsecurity=False).digest()


def guid_text(digest: bytes) -> str:
    return str(UUID(bytes=digest))


def _of_metadata(metadata: Mapping[str, Any]) -> Iterable[bytes]:
    for tag, values in sorted((metadata.get("tags") or {}).items()):
        yield tag.encode()
        yield from (value.encode() for value in sorted(values))
    for name, value in sorted((metadata.get("properties") or {}).items()):
        yield name.encode()
        yield value.encode()
    yield from (name.encode() for name in sorted(metadata.get("sensitive") or ()))


def _of_rule(rule: Mapping[str, Any]) -> Iterable[bytes]:
    yield from ((rule.get(field) or "").encode() for field in ("name", "doc", "kind", "mode", "type"))
    yield from (tag.encode() for tag in sorted(rule.get("tags") or ()))
    for name, value in sorted((rule.get("params") or {}).items()):
        yield name.encode()
        yield value.encode()
    yield from ((rule.get(field) or "").encode() for field in ("expr", "onSuccess", "onFailure"))
    if rule.get("disabled"):
        yield b"\x01"
