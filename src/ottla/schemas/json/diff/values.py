"""Differences between lists of allowed values, and between constants."""

from __future__ import annotations

from ottla.schemas.json.diff.context import DiffContext
from ottla.schemas.json.nodes import Constant, EnumNode


def compare_choices(context: DiffContext, original: EnumNode, update: EnumNode) -> None:
    if original.values == update.values:
        return
    if original.values < update.values:
        context.add("ENUM_ARRAY_EXTENDED", "enum")
    elif original.values > update.values:
        context.add("ENUM_ARRAY_NARROWED", "enum")
    else:
        context.add("ENUM_ARRAY_CHANGED", "enum")


def compare_constants(context: DiffContext, original: Constant, update: Constant) -> None:
    if original.value != update.value:
        context.add("ENUM_ARRAY_CHANGED", "const")
