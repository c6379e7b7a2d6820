"""Whether what one content model leaves open covers what the other one describes: of properties, and of items."""

from __future__ import annotations

from ottla.schemas.json.diff.context import DiffContext, Verdict
from ottla.schemas.json.diff.unevaluated import Compare
from ottla.schemas.json.nodes import JsonNode


def is_covered(context: DiffContext, before: JsonNode, after: JsonNode, inside: Compare) -> Verdict:
    """Compare the two, and keep what was found whatever the verdict is."""
    aside = context.aside()
    yield from inside(aside, before, after)
    context.take(aside.found)
    return aside.is_compatible
