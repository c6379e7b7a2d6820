"""Differences between two schemas of numbers."""

from __future__ import annotations

from fractions import Fraction

from ottla.schemas.json.diff import bounds
from ottla.schemas.json.diff.context import DiffContext
from ottla.schemas.json.nodes import Amount, NumberNode


def compare(context: DiffContext, original: NumberNode, update: NumberNode) -> None:
    bounds.compare(context, "maximum", "MAXIMUM", original.maximum, update.maximum)
    bounds.compare(context, "minimum", "MINIMUM", original.minimum, update.minimum)
    bounds.compare(
        context, "exclusiveMaximum", "EXCLUSIVE_MAXIMUM", original.exclusive_maximum, update.exclusive_maximum
    )
    bounds.compare(
        context, "exclusiveMinimum", "EXCLUSIVE_MINIMUM", original.exclusive_minimum, update.exclusive_minimum
    )
    if original.multiple_of != update.multiple_of:
        context.add(_steps(original.multiple_of, update.multiple_of), "multipleOf")
    if original.integer != update.integer:
        context.add("TYPE_EXTENDED" if original.integer else "TYPE_NARROWED")


def _steps(original: Amount | None, update: Amount | None) -> str:
    if original is None or update is None:
        return "MULTIPLE_OF_ADDED" if original is None else "MULTIPLE_OF_REMOVED"
    before, after = Fraction(original), Fraction(update)
    if after % before == 0:
        return "MULTIPLE_OF_EXPANDED"
    return "MULTIPLE_OF_REDUCED" if before % after == 0 else "MULTIPLE_OF_CHANGED"
