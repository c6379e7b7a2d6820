"""Whether a reader's schema can read payloads of a writer's: the resolution rules of the Avro specification, with the
names, places and sentences of errors in Java's Avro.

Pairs of types are remembered by identity. A pair that occurs again while it is being compared (a type that contains
itself) is assumed to be compatible: the comparison in progress finds whatever is wrong with it.
"""

from __future__ import annotations

from collections.abc import Generator

from ottla.model import limits
from ottla.schemas.avro.types import (
    Array,
    AvroField,
    AvroRecord,
    AvroType,
    Enum,
    Fixed,
    Map,
    Named,
    Primitive,
    Union,
    alias_names,
    kind,
)
from ottla.schemas.avro.write import to_text
from ottla.schemas.jackson import java_order
from ottla.schemas.schema import Incompatibility
from ottla.schemas.steps import run

# The writer's primitives that a reader's primitive can read, besides its own.
_PROMOTIONS = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}

Place = tuple[str, ...]
Found = tuple[Incompatibility, ...]
Asked = tuple[AvroType, AvroType, Place]
Steps = Generator[Asked, Found, Found]


class _Unreadable(Exception):
    """The comparison itself failed; the message says why."""


def incompatibilities(reader: AvroType, writer: AvroType) -> Found:
    """Return why `reader` cannot read payloads of `writer`; empty if it can. A failed comparison has an empty kind."""
    try:
        asked: Asked = (reader, writer, ())
        return run(_Comparison().look, asked)
    except _Unreadable as error:
        return (Incompatibility("", "/", f"Unexpected exception during compatibility check: {error}"),)


class _Comparison:
    """Compares types; each step asks for the pairs inside it with `yield` (schemas.steps)."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, int], Found] = {}

    def look(self, asked: Asked) -> Steps:
        reader, writer, place = asked
        key = (id(reader), id(writer))
        found = self._seen.get(key)
        if found is None:
            if len(self._seen) > limits.SCHEMA_PAIRS_MAX:
                raise _Unreadable("the schemas are too large to be compared")
            self._seen[key] = ()
            found = self._seen[key] = yield from self._compare(reader, writer, place)
        return found

    def _compare(self, reader: AvroType, writer: AvroType, place: Place) -> Steps:
        if isinstance(writer, Union):
            compared = self._unions if isinstance(reader, Union) else self._writer_union
            return (yield from compared(reader, writer, place))
        if isinstance(reader, Union):
            return (yield from self._reader_union(reader, writer, place))
        if isinstance(reader, Array) and isinstance(writer, Array):
            return (yield reader.items, writer.items, (*place, "items"))
        if isinstance(reader, Map) and isinstance(writer, Map):
            return (yield reader.values, writer.values, (*place, "values"))
        if isinstance(reader, Fixed) and isinstance(writer, Fixed):
            return (*_names(reader, writer, place), *_sizes(reader, writer, place))
        if isinstance(reader, Enum) and isinstance(writer, Enum):
            return (*_names(reader, writer, place), *_symbols(reader, writer, place))
        if isinstance(reader, AvroRecord) and isinstance(writer, AvroRecord):
            return (yield from self._records(reader, writer, place))
        if isinstance(reader, Primitive) and isinstance(writer, Primitive) and _readable(reader.type, writer.type):
            return ()
        sentence = f"reader type: {kind(reader).upper()} not compatible with writer type: {kind(writer).upper()}"
        return (_incompatibility("TYPE_MISMATCH", place, sentence),)

    def _writer_union(self, reader: AvroType, writer: Union, place: Place) -> Steps:
        found: list[Incompatibility] = []
        for index, branch in enumerate(writer.branches):
            _take(found, (yield reader, branch, (*place, str(index))))
        return tuple(found)

    def _reader_union(self, reader: Union, writer: AvroType, place: Place) -> Steps:
        for branch in reader.branches:
            # Places inside a branch start anew, as in Java: they are not shown unless the same pair occurs elsewhere.
            if not (yield branch, writer, ()):
                return ()
        return (_no_branch(writer, place),)

    def _unions(self, reader: AvroType, writer: Union, place: Place) -> Steps:
        found: list[Incompatibility] = []
        for index, branch in enumerate(writer.branches):
            if (yield reader, branch, ()):
                _take(found, (_no_branch(branch, (*place, str(index))),))
        return tuple(found)

    def _records(self, reader: AvroRecord, writer: AvroRecord, place: Place) -> Steps:
        found = list(_names(reader, writer, place))
        for index, field in enumerate(reader.fields):
            here = (*place, "fields", str(index))
            written = _writer_field(reader, field, writer)
            if written is not None:
                _take(found, (yield field.type, written.type, (*here, "type")))
            elif field.has_default:
                continue
            elif isinstance(field.type, Enum) and field.type.default is not None:
                _take(found, (yield field.type, writer, (*here, "type")))
            else:
                _take(found, (_incompatibility("READER_FIELD_MISSING_DEFAULT_VALUE", here, field.name),))
        return tuple(found)


def _readable(reader: str, writer: str) -> bool:
    return reader == writer or writer in _PROMOTIONS.get(reader, ())


def _take(found: list[Incompatibility], more: Found) -> None:
    """Add incompatibilities up to a bound: nested types that are each used twice double their number at each level."""
    found += more[: limits.SCHEMA_DIFFERENCES_MAX - len(found)]


def _writer_field(reader: AvroRecord, field: AvroField, writer: AvroRecord) -> AvroField | None:
    """Return the writer's field that a reader's field is read from. An alias equal to the field's own name counts as a
    second match, as in Java.
    """
    matches = [writer.by_name[name] for name in (field.name, *field.aliases) if name in writer.by_name]
    if len(matches) > 1:
        shown = f"{field.name} type:{kind(field.type).upper()} pos:{reader.fields.index(field)}"
        raise _Unreadable(
            f"Reader record field {shown} matches multiple fields in writer record schema {to_text(writer)}"
        )
    return matches[0] if matches else None


def _names(reader: Named, writer: Named, place: Place) -> Found:
    if reader.name.simple == writer.name.simple or writer.name.full in alias_names(reader):
        return ()
    return (_incompatibility("NAME_MISMATCH", (*place, "name"), f"expected: {writer.name.full}"),)


def _sizes(reader: Fixed, writer: Fixed, place: Place) -> Found:
    if reader.size == writer.size:
        return ()
    sentence = f"expected: {writer.size}, found: {reader.size}"
    return (_incompatibility("FIXED_SIZE_MISMATCH", (*place, "size"), sentence),)


def _symbols(reader: Enum, writer: Enum, place: Place) -> Found:
    known = set(reader.symbols)
    missing = sorted((symbol for symbol in writer.symbols if symbol not in known), key=java_order)
    if not missing or reader.default is not None:
        return ()
    return (_incompatibility("MISSING_ENUM_SYMBOLS", (*place, "symbols"), f"[{', '.join(missing)}]"),)


def _no_branch(writer: AvroType, place: Place) -> Incompatibility:
    sentence = f"reader union lacking writer type: {kind(writer).upper()}"
    return _incompatibility("MISSING_UNION_BRANCH", place, sentence)


def _incompatibility(name: str, place: Place, sentence: str) -> Incompatibility:
    pointer = "/".join(token.replace("~", "~0").replace("/", "~1") for token in place)
    return Incompatibility(name, f"/{pointer}", sentence)
