"""Differences between two schemas of arrays; tuples have content models as objects do."""

from __future__ import annotations

from ottla.schemas.json.diff import bounds, unevaluated
from ottla.schemas.json.diff.context import DiffContext, Steps
from ottla.schemas.json.diff.covering import is_covered
from ottla.schemas.json.diff.unevaluated import Compare
from ottla.schemas.json.nodes import Anything, ArrayNode, JsonNode, Never


def compare(context: DiffContext, original: ArrayNode, update: ArrayNode, inside: Compare) -> Steps:
    with context.at("items"):
        yield from inside(context, original.each, update.each)
    for index in range(max(len(original.items), len(update.items))):
        with context.at("items", str(index)):
            if index >= len(update.items):
                yield from _removed(context, original.items[index], update, inside)
            elif index >= len(original.items):
                yield from _added(context, update.items[index], original, inside)
            else:
                yield from inside(context, original.items[index], update.items[index])
    with context.at("additionalItems"):
        yield from _compare_others(context, original, update, inside)
    with context.at("unevaluatedItems"):
        yield from unevaluated.compare(context, "UNEVALUATED_ITEMS", original.unevaluated, update.unevaluated, inside)
    bounds.compare(context, "maxItems", "MAX_ITEMS", original.max_items, update.max_items)
    bounds.compare(context, "minItems", "MIN_ITEMS", original.min_items, update.min_items)
    if original.unique != update.unique:
        context.add("UNIQUE_ITEMS_REMOVED" if original.unique else "UNIQUE_ITEMS_ADDED", "uniqueItems")
    bounds.compare(context, "maxContains", "MAX_CONTAINS", original.max_contains, update.max_contains)
    bounds.compare(context, "minContains", "MIN_CONTAINS", original.min_contains, update.min_contains)


def _removed(context: DiffContext, before: JsonNode, update: ArrayNode, inside: Compare) -> Steps:
    if _is_open(update):
        context.add("ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL")
        return
    partial = _schema_of_others(update)
    if partial is not None:
        covered = "IS" if (yield from is_covered(context, before, partial, inside)) else "NOT"
        context.add(f"ITEM_REMOVED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL")
    elif isinstance(before, Never):
        context.add("ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL")
    else:
        context.add("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL")


def _added(context: DiffContext, after: JsonNode, original: ArrayNode, inside: Compare) -> Steps:
    if _is_open(original):
        what = "ITEM_WITH_EMPTY_SCHEMA" if isinstance(after, Anything) else "ITEM"
        context.add(f"{what}_ADDED_TO_OPEN_CONTENT_MODEL")
        return
    partial = _schema_of_others(original)
    if partial is not None:
        covered = "IS" if (yield from is_covered(context, partial, after, inside)) else "NOT"
        context.add(f"ITEM_ADDED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL")
    else:
        context.add("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL")


def _is_open(sequence: ArrayNode) -> bool:
    if not sequence.open or sequence.others is not None:
        return False
    return sequence.unevaluated is None or isinstance(sequence.unevaluated, Anything)


def _schema_of_others(sequence: ArrayNode) -> JsonNode | None:
    if sequence.others is not None:
        return sequence.others
    if sequence.open and not isinstance(sequence.unevaluated, Never | Anything):
        return sequence.unevaluated
    return None


def _compare_others(context: DiffContext, original: ArrayNode, update: ArrayNode, inside: Compare) -> Steps:
    if original.open != update.open:
        context.add("ADDITIONAL_ITEMS_REMOVED" if original.open else "ADDITIONAL_ITEMS_ADDED")
    elif (original.others is None) != (update.others is None):
        narrowed = original.others is None
        context.add("ADDITIONAL_ITEMS_NARROWED" if narrowed else "ADDITIONAL_ITEMS_EXTENDED")
    else:
        yield from inside(context, original.others, update.others)
