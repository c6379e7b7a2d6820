"""Differences between what two schemas say of properties, or items, that no other keyword has looked at."""

from __future__ import annotations

from collections.abc import Callable

from ottla.schemas.json.diff.context import Context, Steps
from ottla.schemas.json.nodes import Anything, Never, Node

Compare = Callable[[Context, Node | None, Node | None], Steps]


def compare(context: Context, name: str, original: Node | None, update: Node | None, inside: Compare) -> Steps:
    """`name` is UNEVALUATED_PROPERTIES or UNEVALUATED_ITEMS."""
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
