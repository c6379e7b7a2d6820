"""Differences between combinations (allOf, anyOf, oneOf), and between negations.

The parts of a combination have no order: as many pairs as possible of an old and a compatible new part are matched.
"""

from __future__ import annotations

from ottla.schemas.json.diff.context import DiffContext, JsonDifference, Steps
from ottla.schemas.json.diff.matching import most_pairs
from ottla.schemas.json.diff.unevaluated import Compare
from ottla.schemas.json.fingerprint import fingerprint
from ottla.schemas.json.nodes import Combined, JsonNode, Not


def compare(context: DiffContext, original: Combined, update: Combined, inside: Compare) -> Steps:
    if not _compare_criteria(context, original, update):
        return
    before, after = _distinct(original.parts), _distinct(update.parts)
    if len(before) < len(after):
        context.add("PRODUCT_TYPE_EXTENDED" if update.criterion == "allOf" else "SUM_TYPE_EXTENDED")
    elif len(before) > len(after):
        context.add("PRODUCT_TYPE_NARROWED" if original.criterion == "allOf" else "SUM_TYPE_NARROWED")
    edges: dict[int, dict[int, list[JsonDifference]]] = {}
    for index, old in enumerate(before):
        with context.at(original.criterion, str(index)):
            edges[index] = {}
            for place, new in enumerate(after):
                aside = context.aside()
                yield from inside(aside, old, new)
                if aside.is_compatible:
                    edges[index][place] = aside.found
    pairs = most_pairs({index: list(found) for index, found in edges.items()})
    for index, place in sorted(pairs.items()):
        context.take(edges[index][place])
    if len(pairs) < min(len(before), len(after)):
        context.add("COMBINED_TYPE_SUBSCHEMAS_CHANGED")


def _compare_criteria(context: DiffContext, original: Combined, update: Combined) -> bool:
    """Compare the criteria; return whether the parts have to be compared."""
    if original.criterion == update.criterion:
        return True
    alone_before, alone_after = len(original.parts) == 1, len(update.parts) == 1
    is_extended = (
        update.criterion == "anyOf"
        or (alone_before and (alone_after or update.criterion == "oneOf"))
        or (alone_after and original.criterion == "allOf")
    )
    context.add("COMBINED_TYPE_EXTENDED" if is_extended else "COMBINED_TYPE_CHANGED")
    return is_extended


def _distinct(parts: list[JsonNode]) -> list[JsonNode]:
    distinct: dict[str, JsonNode] = {}
    for part in parts:
        distinct.setdefault(fingerprint(part), part)
    return list(distinct.values())


def compare_negations(context: DiffContext, original: Not, update: Not, inside: Compare) -> Steps:
    with context.at("not"):
        aside = context.aside()
        yield from inside(aside, update.node, original.node)
        context.add("NOT_TYPE_NARROWED" if aside.is_compatible else "NOT_TYPE_EXTENDED")
