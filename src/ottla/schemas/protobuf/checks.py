"""Checks of protoc that descriptors alone do not allow: numbers used twice or reserved, empty oneofs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NoReturn

from ottla.schemas.protobuf.elements import (
    EnumType,
    Message,
    NumberRange,
    ProtoField,
    ProtoFile,
    Reserved,
    TextPosition,
)
from ottla.schemas.protobuf.linking import walk_messages
from ottla.schemas.schema import InvalidSchema

# Numbers that Protobuf reserves for itself.
_PROTOBUFS_OWN = range(19_000, 20_000)


def check(file: ProtoFile) -> None:
    """Raise InvalidSchema if protoc would refuse the file."""
    for enum in file.enums:
        _check_enum(enum, file.is_proto3)
    for name, message in walk_messages(file):
        _check_fields(name, message)
        _check_oneofs(name, message)
        _check_entry(name, message)
        for enum in message.enums:
            _check_enum(enum, file.is_proto3)


def _fail(position: TextPosition, message: str) -> NoReturn:
    where = f"line {position.line}, column {position.column}: " if position.line else ""
    raise InvalidSchema(where + message)


def _check_fields(name: str, message: Message) -> None:
    numbers: dict[int, str] = {}
    names: set[str] = set()
    reserved = _Reserved(message.reserved)
    for each in message.fields:
        if each.number in numbers:
            _fail(each.position, f"{name}: number {each.number} is used by {numbers[each.number]} and {each.name}")
        if each.name in names:
            _fail(each.position, f"{name}: the field {each.name} is defined twice")
        numbers[each.number] = each.name
        names.add(each.name)
        _check_number(name, each)
        if reserved.has_number(each.number):
            _fail(each.position, f"{name}: the field {each.name} uses the reserved number {each.number}")
        if each.name in reserved.names:
            _fail(each.position, f"{name}: the field {each.name} uses a reserved name")


def _check_number(name: str, each: ProtoField) -> None:
    if each.number in _PROTOBUFS_OWN:
        _fail(each.position, f"{name}: the field {each.name} has a number from 19000 to 19999, which Protobuf reserves")


def _check_oneofs(name: str, message: Message) -> None:
    used = {each.oneof for each in message.fields}
    for oneof in message.oneofs:
        if oneof.name not in used:
            _fail(message.position, f"{name}: the oneof {oneof.name} has no fields")


def _check_entry(name: str, message: Message) -> None:
    """Check that a message with the option map_entry, as texts of descriptors have it, has the fields of an entry."""
    fields = [(each.name, each.number) for each in message.fields]
    if message.claims_map_entry and fields != [("key", 1), ("value", 2)]:
        _fail(message.position, f"{name} has map_entry set, but not the fields key = 1 and value = 2")


def _check_enum(enum: EnumType, is_proto3: bool) -> None:
    if not enum.values:
        _fail(enum.position, f"the enum {enum.name} has no values")
    if is_proto3 and enum.values[0].number != 0:
        _fail(enum.values[0].position, f"the first value of the enum {enum.name} must be 0 in proto3")
    may_repeat = any(option.is_plain("allow_alias") for option in enum.options)
    numbers: set[int] = set()
    names: set[str] = set()
    reserved = _Reserved(enum.reserved)
    for each in enum.values:
        if each.name in names:
            _fail(each.position, f"the enum {enum.name} has the value {each.name} twice")
        if each.number in numbers and not may_repeat:
            _fail(each.position, f"the enum {enum.name} has the number {each.number} twice (see allow_alias)")
        if each.name in reserved.names or reserved.has_number(each.number):
            _fail(each.position, f"the enum {enum.name} has the reserved value {each.name} = {each.number}")
        numbers.add(each.number)
        names.add(each.name)


class _Reserved:
    """The reserved numbers and names of a message or an enum. There may be tens of thousands of each."""

    def __init__(self, statements: Sequence[Reserved]) -> None:
        values = [value for statement in statements for value in statement.values]
        self.names = {value for value in values if isinstance(value, str)}
        self._firsts: list[int] = []
        self._lasts: list[int] = []  # the highest number of all ranges up to this one: ranges may overlap
        for first, last in sorted(_ends(value) for value in values if isinstance(value, NumberRange)):
            self._firsts.append(first)
            self._lasts.append(max(last, self._lasts[-1]) if self._lasts else last)

    def has_number(self, number: int) -> bool:
        at = bisect_right(self._firsts, number)
        return at > 0 and number <= self._lasts[at - 1]


def _ends(span: NumberRange) -> tuple[int, int]:
    return span.first, span.first if span.last is None else span.last
