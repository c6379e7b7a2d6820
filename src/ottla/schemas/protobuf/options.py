"""Interprets options: turns `(my.ext).field = 1` into the fields and extensions of the options messages.

Rules: standard options must exist and have the right type. A custom option (in parentheses) whose extension is not
defined stays in the text but not in the descriptor, as with Confluent's registry: files are often registered without
the imports that only their options need.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message as ProtoMessage
from google.protobuf.message_factory import GetMessageClass

from ottla.schemas.protobuf.building import UninterpretedOptions
from ottla.schemas.protobuf.elements import Aggregate, ListLiteral, Literal, LiteralKind, ProtoOption, Value
from ottla.schemas.protobuf.linking import NameKind, Names
from ottla.schemas.protobuf.scalars import WrongValue, scalar
from ottla.schemas.protobuf.tokens import whole_number
from ottla.schemas.schema import InvalidSchema


def interpret(pending: Sequence[UninterpretedOptions], pool: DescriptorPool, names: Names) -> None:
    """Set the options of all owners. `pool` contains the file itself and all its imports. Raises InvalidSchema."""
    for owner, options, scope in pending:
        kind = owner.DESCRIPTOR.fields_by_name["options"].message_type.full_name
        made = GetMessageClass(pool.FindMessageTypeByName(kind))()
        reader = _Reader(pool, names, scope)
        for option in options:
            reader.set(made, option)
        if not made.ListFields():
            continue
        owner.options.MergeFromString(made.SerializeToString(deterministic=True))


class _Unknown(Exception):
    """The extension of an option is not known."""


class _Reader:
    __slots__ = ("_names", "_pool", "_scope")

    def __init__(self, pool: DescriptorPool, names: Names, scope: str) -> None:
        self._pool = pool
        self._names = names
        self._scope = scope

    def set(self, made: ProtoMessage, option: ProtoOption) -> None:
        name = ".".join(f"({part.name})" if part.is_extension else part.name for part in option.name)
        try:
            *outer, last = option.name
            target = made
            for part in outer:
                field = self._field(target, part.name, part.is_extension)
                if field.message_type is None or field.is_repeated:
                    raise WrongValue(f"has no field: {part.name} is not a message")
                target = _get(target, field)
            field = self._field(target, last.name, last.is_extension)
            if not field.is_repeated and _has(target, field):
                raise WrongValue("is set twice")
            self._assign(target, field, option.value)
        except _Unknown:
            return
        except WrongValue as wrong:
            line, column = option.position
            where = f"line {line}, column {column}: " if line else ""
            raise InvalidSchema(f'{where}option "{name}" {wrong}') from None

    def _field(self, message: ProtoMessage, name: str, is_extension: bool) -> FieldDescriptor:
        if not is_extension:
            found = message.DESCRIPTOR.fields_by_name.get(name)
            if found is None:
                raise WrongValue(f"is unknown: {message.DESCRIPTOR.full_name} has no field {name}")
            return found
        full = self._names.find(name, self._scope, NameKind.EXTENSION)
        if full is None:
            raise _Unknown
        extension = self._pool.FindExtensionByName(full)
        if extension.containing_type.full_name != message.DESCRIPTOR.full_name:
            raise WrongValue(f"extends {extension.containing_type.full_name}, not {message.DESCRIPTOR.full_name}")
        return extension

    def _assign(self, message: ProtoMessage, field: FieldDescriptor, value: Value) -> None:
        if isinstance(value, ListLiteral):
            if not field.is_repeated:
                raise WrongValue("is no list")
            for each in value.values:
                self._assign(message, field, each)
        elif field.message_type is not None and field.message_type.GetOptions().map_entry:
            self._put(_get(message, field), field, value)
        elif field.message_type is not None:
            target = _get(message, field)
            self._fill(target.add() if field.is_repeated else target, value)
        else:
            found = self._single(field, value)
            if field.is_repeated:
                _get(message, field).append(found)
            elif field.is_extension:
                message.Extensions[field] = found
            else:
                setattr(message, field.name, found)

    def _single(self, field: FieldDescriptor, value: Value) -> Any:
        if field.enum_type is None:
            return scalar(field.type, value)
        if isinstance(value, Literal) and value.kind is LiteralKind.WORD:
            member = field.enum_type.values_by_name.get(value.text)
            if member is not None:
                return member.number
        elif isinstance(value, Literal) and value.kind is LiteralKind.NUMBER:
            number = whole_number(value.text)
            if number is not None and number in field.enum_type.values_by_number:
                return number
        raise WrongValue(f"must be a value of {field.enum_type.full_name}")

    def _fill(self, message: ProtoMessage, value: Value) -> None:
        if not isinstance(value, Aggregate):
            raise WrongValue(f"must be a message ({message.DESCRIPTOR.full_name}) in braces")
        message.SetInParent()
        for key, each in value.entries:
            if "/" in key:
                self._fill_any(message, key[1:-1], each)
            elif key.startswith("["):
                self._assign(message, self._field(message, key[1:-1], True), each)
            else:
                self._assign(message, self._named(message, key), each)

    def _named(self, message: ProtoMessage, name: str) -> FieldDescriptor:
        # In text format a group has the name of its type.
        found = message.DESCRIPTOR.fields_by_name.get(name.lower())
        if found is not None and found.type == FieldDescriptor.TYPE_GROUP and found.message_type.name == name:
            return found
        return self._field(message, name, False)

    def _fill_any(self, message: ProtoMessage, url: str, value: Value) -> None:
        if message.DESCRIPTOR.full_name != "google.protobuf.Any":
            raise WrongValue(f"has {url} in a message that is no google.protobuf.Any")
        try:
            inner = GetMessageClass(self._pool.FindMessageTypeByName(url.rpartition("/")[2]))()
        except KeyError:
            raise WrongValue(f"has the unknown type {url}") from None
        self._fill(inner, value)
        message.type_url = url
        message.value = inner.SerializeToString(deterministic=True)

    def _put(self, target: Any, field: FieldDescriptor, value: Value) -> None:
        """Add an entry to a map."""
        if not isinstance(value, Aggregate):
            raise WrongValue("must be an entry of a map: a key and a value in braces")
        parts = dict(value.entries)
        key_field, value_field = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        if set(parts) - {"key", "value"}:
            raise WrongValue("is a map: its entries have a key and a value only")
        key = self._single(key_field, parts["key"]) if "key" in parts else key_field.default_value
        if value_field.message_type is not None:
            self._fill(target[key], parts.get("value", Aggregate()))
        else:
            target[key] = self._single(value_field, parts["value"]) if "value" in parts else value_field.default_value


def _get(message: ProtoMessage, field: FieldDescriptor) -> Any:
    return message.Extensions[field] if field.is_extension else getattr(message, field.name)


def _has(message: ProtoMessage, field: FieldDescriptor) -> bool:
    if field.is_extension:
        return bool(message.HasExtension(field))
    return bool(field.has_presence and message.HasField(field.name))
