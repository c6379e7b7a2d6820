"""Which type of a reader's schema matches which of the writer's: as Java's Avro resolves them, by name and by branch.

Rules:
- Enums and fixeds with another name do not match; namespaces are ignored, except in unions, where the full names have
  to be equal. A reader's aliases are names of its own. Records are compared by their fields alone.
- Two unions of the same types in the same order are the same union: branch by branch, whatever the namespaces.
"""

from __future__ import annotations

from ottla.columns.avro.nodes import AvroNode
from ottla.columns.avro.types import is_nullable, without_null

PROMOTIONS = {
    "int": ("int", "long", "float", "double"),
    "long": ("long", "float", "double"),
    "float": ("float", "double"),
    "string": ("string", "bytes"),
    "bytes": ("bytes", "string"),
}


def is_named_alike(writer: AvroNode, reader: AvroNode) -> bool:
    """Whether two named types have the same name, namespaces aside."""
    return writer.short_name == reader.short_name or writer.name in reader.aliases


def branch_for(writer: AvroNode, branches: tuple[AvroNode, ...]) -> int | None:
    """Return the branch of a reader's union that a value goes to: one of the same type and full name, else a record
    that matches (of the same short name, else the first), else the first type that it can be promoted to.
    """
    alike = None
    for index, branch in enumerate(branches):
        if branch.kind != writer.kind:
            continue
        if not writer.name or writer.name in (branch.name, *branch.aliases):
            return index
        if writer.kind == "record" and not _clashes(writer, branch):
            alike = index if alike is None or writer.short_name == branch.short_name else alike
    if alike is not None:
        return alike
    promoted = (index for index, branch in enumerate(branches) if branch.kind in PROMOTIONS.get(writer.kind, ()))
    return next(promoted, None)


def targets_of(writer: AvroNode, reader: AvroNode) -> dict[str, int]:
    """Return the index of the reader's field for each of the writer's: by name, else by an alias of the reader's.

    Field aliases apply to a record of the same full name only.
    """
    names = {field.name for field in writer.fields}
    is_it = writer.name in (reader.name, *reader.aliases)
    targets: dict[str, int] = {}
    for index, field in enumerate(reader.fields):
        for name in (field.name, *(field.aliases if is_it else ())):
            if name in names and name not in targets:
                targets[name] = index
                break
    return targets


def are_equal(one: AvroNode, other: AvroNode) -> bool:
    """Return whether two types consist of the same types in the same order."""
    if one.kind != other.kind or (one.name and not is_named_alike(one, other)):
        return False
    if one.kind in ("array", "map"):
        return are_equal(one.item, other.item)
    if one.kind == "union":
        return len(one.branches) == len(other.branches) and all(map(are_equal, one.branches, other.branches))
    if one.kind == "record":
        pairs = list(zip(one.fields, other.fields, strict=False))
        same = len(one.fields) == len(other.fields) and all(a.name == b.name for a, b in pairs)
        return same and all(are_equal(a.node, b.node) for a, b in pairs)
    return one.size == other.size and one.symbols == other.symbols


def _clashes(writer: AvroNode, reader: AvroNode) -> bool:
    """Return whether no value of one type matches the other, as far as Java checks: a record's fields, but not inside
    them.
    """
    if writer.kind == "union":
        return False
    if reader.kind == "union":
        return not (writer.kind == "null" and is_nullable(reader)) and branch_for(writer, without_null(reader)) is None
    if writer.kind != reader.kind:
        return reader.kind not in PROMOTIONS.get(writer.kind, ())
    if writer.kind == "record":
        targets = targets_of(writer, reader)
        missing = (field for index, field in enumerate(reader.fields) if index not in targets.values())
        types = {field.name: field.node for field in writer.fields}
        pairs = ((types[name], reader.fields[index].node) for name, index in targets.items())
        return any(not field.has_default for field in missing) or any(_clashes(*pair) for pair in pairs)
    return writer.kind in ("enum", "fixed") and (not is_named_alike(writer, reader) or writer.size != reader.size)
