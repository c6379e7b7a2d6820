"""Differences between two schemas of strings."""

from __future__ import annotations

from ottla.schemas.json.diff import bounds
from ottla.schemas.json.diff.context import DiffContext
from ottla.schemas.json.nodes import TextNode


def compare(context: DiffContext, original: TextNode, update: TextNode) -> None:
    bounds.compare(context, "maxLength", "MAX_LENGTH", original.max_length, update.max_length)
    bounds.compare(context, "minLength", "MIN_LENGTH", original.min_length, update.min_length)
    if original.pattern == update.pattern:
        return
    if original.pattern is None:
        context.add("PATTERN_ADDED", "pattern")
    elif update.pattern is None:
        context.add("PATTERN_REMOVED", "pattern")
    else:
        context.add("PATTERN_CHANGED", "pattern")
