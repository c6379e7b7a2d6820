"""Compares two JSON schemas: the differences that Confluent's registry finds from `original` to `update`."""

from __future__ import annotations

from functools import partial

from ottla.schemas.json.diff import arrays, combined, numbers, objects, strings, values
from ottla.schemas.json.diff.context import Budget, DiffContext, JsonDifference, Pair, Pairs, Steps, Verdict
from ottla.schemas.json.nodes import (
    Anything,
    ArrayNode,
    Combined,
    Constant,
    EnumNode,
    JsonNode,
    Never,
    Not,
    NumberNode,
    ObjectNode,
    ReferenceNode,
    TextNode,
)
from ottla.schemas.steps import run


def differences(original: JsonNode, update: JsonNode) -> list[JsonDifference]:
    """Return all differences, compatible ones too. Raises TooComplex."""
    incompatible: dict[Pair, tuple[JsonDifference, ...]] = {}
    budget = Budget()
    while True:
        pairs = Pairs(incompatible, budget)
        look = partial(pairs.look, comparison=_compare)
        found = run(look, (_followed(original), _followed(update)))
        known = pairs.incompatible()
        if not pairs.has_assumed or known.keys() == incompatible.keys():
            return list(found)
        incompatible = known


def compare(context: DiffContext, original: JsonNode | None, update: JsonNode | None) -> Steps:
    if original is None or update is None:
        if original is not update:
            context.add("SCHEMA_ADDED" if original is None else "SCHEMA_REMOVED")
        return
    yield from context.compare(_followed(original), _followed(update))


def _followed(node: JsonNode) -> JsonNode:
    if isinstance(node, ReferenceNode):
        assert node.target is not None
        return node.target
    return node


def _compare(context: DiffContext, original: JsonNode, update: JsonNode) -> Steps:
    if isinstance(update, Combined) and not isinstance(original, Combined):
        if (yield from _joins(context, original, update)):
            return
    elif (
        isinstance(original, Combined)
        and not isinstance(update, Combined)
        and (yield from _leaves(context, original, update))
    ):
        return
    if type(original) is not type(update):
        if isinstance(original, Never) or isinstance(update, Anything):
            return
        if original.connect_type == update.connect_type == "bytes":
            return  # two of Kafka Connect's spellings of a decimal
        context.add("TYPE_CHANGED")
        return
    _compare_remarks(context, original, update)
    if isinstance(original, TextNode) and isinstance(update, TextNode):
        strings.compare(context, original, update)
    elif isinstance(original, NumberNode) and isinstance(update, NumberNode):
        numbers.compare(context, original, update)
    elif isinstance(original, Constant) and isinstance(update, Constant):
        values.compare_constants(context, original, update)
    elif isinstance(original, EnumNode) and isinstance(update, EnumNode):
        values.compare_choices(context, original, update)
    elif isinstance(original, Combined) and isinstance(update, Combined):
        yield from combined.compare(context, original, update, compare)
    elif isinstance(original, Not) and isinstance(update, Not):
        yield from combined.compare_negations(context, original, update, compare)
    elif isinstance(original, ObjectNode) and isinstance(update, ObjectNode):
        yield from objects.compare(context, original, update, compare)
    elif isinstance(original, ArrayNode) and isinstance(update, ArrayNode):
        yield from arrays.compare(context, original, update, compare)


def _joins(context: DiffContext, original: JsonNode, update: Combined) -> Verdict:
    """Return whether a schema became one of several that are allowed, or the only part of a combination."""
    alone = len(update.parts) == 1
    if not alone and update.criterion == "allOf":
        return False
    pairs = [(original, part) for part in update.parts]
    return (yield from _is_any_compatible(context, pairs, None if alone else "SUM_TYPE_EXTENDED"))


def _leaves(context: DiffContext, original: Combined, update: JsonNode) -> Verdict:
    """Return whether only one of several schemas that all had to hold is left, or the only part of a combination."""
    alone = len(original.parts) == 1
    if not alone and original.criterion != "allOf":
        return False
    pairs = [(part, update) for part in original.parts]
    return (yield from _is_any_compatible(context, pairs, None if alone else "PRODUCT_TYPE_NARROWED"))


def _is_any_compatible(context: DiffContext, pairs: list[tuple[JsonNode, JsonNode]], remark: str | None) -> Verdict:
    """Return whether one of the pairs is compatible; add the differences of the first that is, and the remark."""
    for original, update in pairs:
        aside = context.aside()
        yield from compare(aside, original, update)
        if aside.is_compatible:
            context.take(aside.found)
            if remark is not None:
                context.add(remark)
            return True
    return False


def _compare_remarks(context: DiffContext, original: JsonNode, update: JsonNode) -> None:
    if original.id != update.id:
        context.add("ID_CHANGED")
    if original.title != update.title:
        context.add("TITLE_CHANGED")
    if original.description != update.description:
        context.add("DESCRIPTION_CHANGED")
    if (original.has_default, original.default) != (update.has_default, update.default):
        context.add("DEFAULT_CHANGED")
