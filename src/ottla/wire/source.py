"""Building blocks of the two code generators: lines with indentation, names, precompiled `struct` calls."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from functools import cache

from ottla.wire.message import Field, Struct, fields
from ottla.wire.types import Fixed, Sized, WireError

NUMBERS_PER_ELEMENT_LOG2 = 2  # four numbers in a list count as one element, because they cost less
SMALL = 17  # lists of fewer numbers use a precompiled struct


class Bound(Enum):
    """How a codec treats messages of many elements."""

    NONE = "none"  # handles all elements at once
    AT_ONCE = "at once"  # raises Crowded if there are too many to handle at once
    STEPS = "steps"  # is a generator that yields after every so many elements, with the same result


@cache
def layout(codes: str) -> struct.Struct:
    return struct.Struct(">" + codes)


@cache
def small_layouts(code: str) -> tuple[struct.Struct, ...]:
    return tuple(layout(code * count) for count in range(SMALL))


class Source:
    """Python source being generated, and the names that it refers to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.scope: dict[str, object] = {}
        self._depth = 1
        self._names = 0

    def __call__(self, line: str) -> None:
        self.lines.append("    " * self._depth + line)

    @contextmanager
    def block(self, line: str) -> Iterator[None]:
        self(line)
        self._depth += 1
        yield
        self._depth -= 1

    def name(self, stem: str) -> str:
        self._names += 1
        return f"{stem}{self._names}"

    def use(self, name: str, value: object) -> str:
        self.scope[name] = value
        return name

    def function(self, head: Iterable[str], what: str, errors: str, cause: str) -> tuple[str, dict[str, object]]:
        """Return the source of a function with these lines as its body, and the names that it needs. Errors of the
        types `errors` become a WireError about `what`, raised from `cause`.
        """
        body = ["    " + line for line in self.lines] or ["        pass"]
        tail = [f"    except ({errors}) as error:", f"        raise WireError(f'{what}: {{error}}') from {cause}"]
        scope = {**self.scope, "StructError": struct.error, "WireError": WireError}
        return "\n".join([*head, "    try:", *body, *tail]) + "\n", scope


def present(cls: type[Struct], version: int) -> list[Field]:
    """Return the untagged fields of a version, in wire order."""
    return [field for field in fields(cls) if field.tag is None and version in field.versions]


def tagged(cls: type[Struct], version: int) -> list[Field]:
    """Return the tagged fields of a version, in the order of their tags."""
    found = [field for field in fields(cls) if field.tag is not None and version in field.versions]
    return sorted(found, key=lambda field: field.tag or 0)


def absent(cls: type[Struct], version: int) -> list[Field]:
    """Return the fields that a version does not have: they keep their defaults."""
    return [field for field in fields(cls) if version not in field.versions]


def is_flexible(field: Field, version: int, flexible: bool) -> bool:
    """Whether a field's own lengths are compact: as in its message, unless the field overrides that."""
    return flexible if field.flexible is None else version in field.flexible


def least_bytes(kind: Fixed | Sized | type[Struct], version: int, flexible: bool) -> int:
    """Return the fewest bytes a value can take on the wire, to check a count of elements against."""
    if isinstance(kind, Fixed):
        return kind.size_bytes
    if isinstance(kind, Sized):
        return 1 if flexible else 2 if kind.kind == "string" else 4
    total = 1 if flexible else 0
    for field in present(kind, version):
        compact = is_flexible(field, version, flexible)
        if field.is_list:
            total += 1 if compact else 4
        elif version in field.nullable:
            total += 1 if compact or isinstance(field.type, type) else least_bytes(field.type, version, compact)
        else:
            total += least_bytes(field.type, version, compact)
    return total
