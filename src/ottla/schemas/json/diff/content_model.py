"""ContentModel: how a schema of objects or arrays treats a property (or item) that it does not name.

It is open (all are allowed), closed (none), or partially open (those of a schema). The effect of adding or removing a
property depends on the content model of the other side.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.schemas.json.diff.context import DiffContext, Steps, Verdict
from ottla.schemas.json.diff.unevaluated import Compare
from ottla.schemas.json.nodes import Anything, ArrayNode, JsonNode, Never, ObjectNode

Container = ObjectNode | ArrayNode


class ContentModel(NamedTuple):
    """If it is not open, a property needs to have this schema; without a schema it is closed."""

    is_open: bool
    schema: JsonNode | None


def content_model(node: Container) -> ContentModel:
    """Return how a schema treats what it does not name; the patterns of an object are not looked at."""
    if node.others is not None:
        return ContentModel(is_open=False, schema=node.others)
    if not node.open:
        return ContentModel(is_open=False, schema=None)
    if node.unevaluated is None or isinstance(node.unevaluated, Anything):
        return ContentModel(is_open=True, schema=None)
    return ContentModel(is_open=False, schema=None if isinstance(node.unevaluated, Never) else node.unevaluated)


def removed(context: DiffContext, what: str, before: JsonNode, after: ContentModel, inside: Compare) -> Steps:
    """Add the differences of a property that the other side does not name; `what` is PROPERTY or ITEM."""
    if after.is_open:
        context.add(f"{what}_REMOVED_FROM_OPEN_CONTENT_MODEL")
    elif after.schema is not None:
        covered = "IS" if (yield from is_covered(context, before, after.schema, inside)) else "NOT"
        context.add(f"{what}_REMOVED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL")
    elif isinstance(before, Never):
        context.add(f"{what}_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL")
    else:
        context.add(f"{what}_REMOVED_FROM_CLOSED_CONTENT_MODEL")


def is_covered(context: DiffContext, before: JsonNode, after: JsonNode, inside: Compare) -> Verdict:
    """Compare a property with the schema for unnamed ones of the other side, add the differences in any case, and
    return whether they are compatible.
    """
    aside = context.aside()
    yield from inside(aside, before, after)
    context.take(aside.found)
    return aside.is_compatible


def compare(context: DiffContext, name: str, original: Container, update: Container, inside: Compare) -> Steps:
    """Compare what the two allow besides what they name; `name` is ADDITIONAL_PROPERTIES or ADDITIONAL_ITEMS."""
    if original.open != update.open:
        context.add(f"{name}_REMOVED" if original.open else f"{name}_ADDED")
    elif (original.others is None) != (update.others is None):
        context.add(f"{name}_NARROWED" if original.others is None else f"{name}_EXTENDED")
    else:
        yield from inside(context, original.others, update.others)
