"""A text that is equal for equal nodes: repeated parts of a combination count once."""

from __future__ import annotations

from dataclasses import fields
from hashlib import blake2b

from ottla.schemas.json.nodes import JsonNode, ReferenceNode

_BYTES = 16


def fingerprint(node: JsonNode) -> str:
    """Return the fingerprint of a node. Links are compared by their targets' places, not contents: a target may be the
    node itself.
    """
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
