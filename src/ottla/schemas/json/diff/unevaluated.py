"""Differences between unevaluatedProperties or unevaluatedItems of two schemas."""

from __future__ import annotations

from collections.abc import Callable

from ottla.schemas.json.diff.context import DiffContext, Steps
from ottla.schemas.json.nodes import Anything, JsonNode, Never

Compare = Callable[[DiffContext, JsonNode | None, JsonNode | None], Steps]


def compare(
    context: DiffContext, name: str, original: JsonNode | None, update: JsonNode | None, inside: Compare
) -> Steps:
    """Compare the two; `name` is UNEVALUATED_PROPERTIES or UNEVALUATED_ITEMS."""
    if original is None and update is None:
        return
    if original is None or update is None or isinstance(original, Never) != isinstance(update, Never):
        closed_before, closed_after = isinstance(original, Never), isinstance(update, Never)
        if closed_before and not closed_after:
            context.add(f"{name}_ADDED")
        elif closed_after and not closed_before:
            context.add(f"{name}_REMOVED")
        else:
            context.add(f"{name}_NARROWED" if original is None else f"{name}_EXTENDED")
    elif isinstance(original, Anything) != isinstance(update, Anything):
        context.add(f"{name}_NARROWED" if isinstance(original, Anything) else f"{name}_EXTENDED")
    else:
        yield from inside(context, original, update)
