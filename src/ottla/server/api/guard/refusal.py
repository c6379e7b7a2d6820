"""Refusals of the guard: responses, and parts of them, that say what a client may not do.

They are built from the declarations of the messages: a field that is not given has the value that a new message of
Kafka has, so no API needs code of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from ottla.model.errors import ApiError
from ottla.model.ids import NO_ID
from ottla.wire.message import REQUIRED, Field, Response, Struct, fields
from ottla.wire.types import Fixed, Sized

# The fields by which an answer repeats what it is about.
_NAMING = frozenset(
    {
        "name",
        "topic",
        "topic_name",
        "topic_id",
        "partition",
        "partition_index",
        "index",
        "group_id",
        "resource_type",
        "resource_name",
        "producer_id",
    }
)

StructT = TypeVar("StructT", bound=Struct)
ResponseT = TypeVar("ResponseT", bound=Response)


class Paths(NamedTuple):
    """The lists of a request with the items that an error is for, the lists of their answers, and the field in which an
    answer repeats an item that is a plain value.
    """

    of: list[str]
    into: list[str]
    value: str

    @classmethod
    def between(cls, of: str, into: str) -> Paths:
        into, _, value = into.partition(":")
        return cls(of.split("."), into.split("."), value)


def blank(cls: type[StructT], version: int, given: Mapping[str, object]) -> StructT:
    """Return a message with these values; those that are not fields of it are left out."""
    values = {}
    for field in fields(cls):
        if field.name in given:
            value = given[field.name]
            values[field.name] = "" if value is None and version not in field.nullable else value
        elif field.default is REQUIRED:
            values[field.name] = _nothing(field, version)
    return cls(**values)


def _nothing(field: Field, version: int) -> object:
    kind = field.type
    if field.is_list:
        return []
    if isinstance(kind, Sized):
        return "" if kind.kind == "string" else b""
    if isinstance(kind, Fixed):
        return NO_ID if kind.code == "16s" else 0
    return blank(kind, version, {})


def mirrored(
    items: Iterable[object], paths: Paths, answer: type[StructT], version: int, given: Mapping[str, object]
) -> list[StructT]:
    """Return the answers, of the class `answer`, for items of a request: each repeats the names of its item, and the
    innermost ones have the given values, such as an error code.
    """
    of, into, value = paths
    names = [field.name for field in fields(answer) if field.name in _NAMING]
    found = []
    for item in items:
        values = (
            {name: getattr(item, name) for name in names if hasattr(item, name)}
            if isinstance(item, Struct)
            else {value: item}
        )
        if len(into) > 1:
            inner = Paths(of[1:], into[1:], value)
            values[into[1]] = mirrored(getattr(item, of[1]) or (), inner, struct_of(answer, into[1]), version, given)
        else:
            values.update(given)
        found.append(blank(answer, version, values))
    return found


def refusal(
    request: Struct, response: type[ResponseT], version: int, error: ApiError, mirror: Paths | None, **given: object
) -> ResponseT:
    """Return the response that refuses a whole request."""
    values = {**given, "error_code": error.code}
    if mirror is None:
        return blank(response, version, values)
    items = getattr(request, mirror.of[0]) or ()
    answer = struct_of(response, mirror.into[0])
    return blank(response, version, {mirror.into[0]: mirrored(items, mirror, answer, version, values)})


def struct_of(cls: type[Struct], name: str) -> type[Struct]:
    """Return the class of the structs in a list of a message."""
    (found,) = (field.type for field in fields(cls) if field.name == name)
    assert isinstance(found, type), "it is a list of structs"
    return found
