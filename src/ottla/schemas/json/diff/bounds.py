"""A limit that a keyword sets: added, removed, increased or decreased."""

from __future__ import annotations

from ottla.schemas.json.diff.context import DiffContext
from ottla.schemas.json.nodes import Amount


def compare(context: DiffContext, keyword: str, name: str, original: Amount | None, update: Amount | None) -> None:
    if original is None or update is None:
        if original is not update:
            context.add(f"{name}_ADDED" if original is None else f"{name}_REMOVED", keyword)
    elif original < update:
        context.add(f"{name}_INCREASED", keyword)
    elif original > update:
        context.add(f"{name}_DECREASED", keyword)
