"""Whether the schema for unnamed properties (or items) of one side covers a property (or item) of the other."""

from __future__ import annotations

from ottla.schemas.json.diff.context import DiffContext, Verdict
from ottla.schemas.json.diff.unevaluated import Compare
from ottla.schemas.json.nodes import JsonNode


def is_covered(context: DiffContext, before: JsonNode, after: JsonNode, inside: Compare) -> Verdict:
    """Compare the two, add the differences in any case, and return whether they are compatible."""
    aside = context.aside()
    yield from inside(aside, before, after)
    context.take(aside.found)
    return aside.is_compatible
