"""A text that two nodes share if they say the same: parts of a combination that are repeated count once."""

from __future__ import annotations

from dataclasses import fields
from hashlib import blake2b

from ottla.schemas.json.nodes import JsonNode, ReferenceNode

_BYTES = 16


def fingerprint(node: JsonNode) -> str:
    """Links are told apart by where they lead, not by what is there: that may be the node itself."""
    if isinstance(node, ReferenceNode):
        return f"Link({node.pointer!r})"
    if node.mark:
        return node.mark
    said = ", ".join(f"{field.name}={_said(getattr(node, field.name))}" for field in fields(node))
    return blake2b(f"{type(node).__name__}({said})".encode(), digest_size=_BYTES).hexdigest()


def _said(value: object) -> str:
    if isinstance(value, JsonNode):
        return fingerprint(value)
    if isinstance(value, dict):
        return "{" + ", ".join(sorted(f"{key!r}: {_said(child)}" for key, child in value.items())) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_said, value)) + "]"
    return repr(sorted(value) if isinstance(value, frozenset) else value)
