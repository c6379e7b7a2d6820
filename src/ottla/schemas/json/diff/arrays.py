"""Differences between two schemas of arrays; tuples have content models as objects do."""

from __future__ import annotations

from ottla.schemas.json.diff import bounds, content_model, unevaluated
from ottla.schemas.json.diff.context import DiffContext, Steps
from ottla.schemas.json.diff.unevaluated import Compare
from ottla.schemas.json.nodes import Anything, ArrayNode, JsonNode


def compare(context: DiffContext, original: ArrayNode, update: ArrayNode, inside: Compare) -> Steps:
    with context.at("items"):
        yield from inside(context, original.each, update.each)
    for index in range(max(len(original.items), len(update.items))):
        with context.at("items", str(index)):
            if index >= len(update.items):
                others = content_model.content_model(update)
                yield from content_model.removed(context, "ITEM", original.items[index], others, inside)
            elif index >= len(original.items):
                yield from _added(context, update.items[index], original, inside)
            else:
                yield from inside(context, original.items[index], update.items[index])
    with context.at("additionalItems"):
        yield from content_model.compare(context, "ADDITIONAL_ITEMS", original, update, inside)
    with context.at("unevaluatedItems"):
        yield from unevaluated.compare(context, "UNEVALUATED_ITEMS", original.unevaluated, update.unevaluated, inside)
    bounds.compare(context, "maxItems", "MAX_ITEMS", original.max_items, update.max_items)
    bounds.compare(context, "minItems", "MIN_ITEMS", original.min_items, update.min_items)
    if original.unique != update.unique:
        context.add("UNIQUE_ITEMS_REMOVED" if original.unique else "UNIQUE_ITEMS_ADDED", "uniqueItems")
    bounds.compare(context, "maxContains", "MAX_CONTAINS", original.max_contains, update.max_contains)
    bounds.compare(context, "minContains", "MIN_CONTAINS", original.min_contains, update.min_contains)


def _added(context: DiffContext, after: JsonNode, original: ArrayNode, inside: Compare) -> Steps:
    before = content_model.content_model(original)
    if before.is_open:
        what = "ITEM_WITH_EMPTY_SCHEMA" if isinstance(after, Anything) else "ITEM"
        context.add(f"{what}_ADDED_TO_OPEN_CONTENT_MODEL")
    elif before.schema is not None:
        covered = "IS" if (yield from content_model.is_covered(context, before.schema, after, inside)) else "NOT"
        context.add(f"ITEM_ADDED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL")
    else:
        context.add("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL")
