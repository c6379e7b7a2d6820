"""Makes the descriptor of a linked file, as protoc does, but without the options: those are collected for `options`.

Rules: elements that protoc adds are added (messages of map entries at their places, oneofs of proto3's optional
fields), JSON names only where the text has them (`fill_json_names` adds the others).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.message import Message as ProtoMessage

from ottla.schemas.protobuf.elements import (
    EnumType,
    Extend,
    ImportKind,
    Label,
    Literal,
    LiteralKind,
    Message,
    NumberRange,
    ProtoField,
    ProtoFile,
    ProtoOption,
    ProtoService,
)
from ottla.schemas.protobuf.linking import SCALARS, NameKind, Names, join
from ottla.schemas.protobuf.scalars import default_text
from ottla.schemas.schema import InvalidSchema

_LABELS = {
    Label.OPTIONAL: FieldDescriptorProto.LABEL_OPTIONAL,
    Label.REQUIRED: FieldDescriptorProto.LABEL_REQUIRED,
    Label.REPEATED: FieldDescriptorProto.LABEL_REPEATED,
}
SCALAR_TYPES = {name: FieldDescriptorProto.Type.Value(f"TYPE_{name.upper()}") for name in SCALARS}


class UninterpretedOptions(NamedTuple):
    """Options to interpret: their owner (the descriptor with a field `options`), and the scope of names in them."""

    owner: ProtoMessage
    options: Sequence[ProtoOption]
    scope: str


class BuiltFile(NamedTuple):
    descriptor: FileDescriptorProto
    pending: list[UninterpretedOptions]


def build(file: ProtoFile, path: str, names: Names) -> BuiltFile:
    """Return the descriptor of a linked file. Raises InvalidSchema."""
    builder = _Builder(file.is_proto3, names)
    made = FileDescriptorProto(name=path)
    if file.package is not None:
        made.package = file.package
    if file.is_proto3:
        made.syntax = "proto3"
    for each in file.imports:
        if each.path in names.missing:
            continue
        if each.kind is ImportKind.PUBLIC:
            made.public_dependency.append(len(made.dependency))
        elif each.kind is ImportKind.WEAK:
            made.weak_dependency.append(len(made.dependency))
        made.dependency.append(each.path)
    scope = file.package or ""
    builder.later(made, file.options, scope)
    grouped = [each.group for extend in file.extends for each in extend.fields if each.group is not None]
    for message in sorted([*grouped, *file.messages], key=lambda each: each.position):
        builder.message(made.message_type.add(), message, scope)
    for enum in file.enums:
        builder.enum(made.enum_type.add(), enum, scope)
    builder.extensions(made.extension, file.extends, scope)
    for service in file.services:
        builder.service(made.service.add(), service, scope)
    return BuiltFile(made, builder.pending)


def fill_json_names(file: FileDescriptorProto) -> None:
    """Set the JSON name of every field, as protoc does."""
    stack: list[DescriptorProto | FileDescriptorProto] = [file]
    while stack:
        scope = stack.pop()
        own = () if isinstance(scope, FileDescriptorProto) else scope.field
        for each in (*own, *scope.extension):
            if not each.HasField("json_name"):
                each.json_name = json_name(each.name)
        stack += scope.message_type if isinstance(scope, FileDescriptorProto) else scope.nested_type


def json_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def map_entry_name(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Entry"


class _Builder:
    __slots__ = ("_is_proto3", "_names", "pending")

    def __init__(self, is_proto3: bool, names: Names) -> None:
        self._is_proto3 = is_proto3
        self._names = names
        self.pending: list[UninterpretedOptions] = []

    def later(self, owner: ProtoMessage, options: Sequence[ProtoOption], scope: str) -> None:
        if options:
            self.pending.append(UninterpretedOptions(owner, options, scope))

    def message(self, made: DescriptorProto, message: Message, outer: str) -> None:
        scope = join(outer, message.name)
        made.name = message.name
        # protoc has `map_entry` only where it made the message itself; the registry's texts of descriptors have it too.
        self.later(made, message.options, scope)
        oneofs = {oneof.name: index for index, oneof in enumerate(message.oneofs)}
        for oneof in message.oneofs:
            declared = made.oneof_decl.add(name=oneof.name)
            self.later(declared, oneof.options, scope)
        for each in message.fields:
            field = made.field.add()
            self.field(field, each, scope)
            if each.oneof is not None:
                field.oneof_index = oneofs[each.oneof]
        self._nested(made, message, scope)
        for enum in message.enums:
            self.enum(made.enum_type.add(), enum, scope)
        self.extensions(made.extension, message.extends, scope)
        for statement in message.extensions:
            for span in statement.spans:
                first, last = _both(span)
                declared_range = made.extension_range.add(start=first, end=last + 1)
                self.later(declared_range, statement.options, scope)
        for reserved in message.reserved:
            for value in reserved.values:
                if isinstance(value, str):
                    made.reserved_name.append(value)
                else:
                    made.reserved_range.add(start=value.first, end=_both(value)[1] + 1)
        _add_synthetic_oneofs(made)

    def _nested(self, made: DescriptorProto, message: Message, scope: str) -> None:
        """Add nested messages, including those of map entries and groups, in the order of the text."""
        extended = [each for extend in message.extends for each in extend.fields]
        fields = [each for each in (*message.fields, *extended) if each.key is not None or each.group is not None]
        elements: list[ProtoField | Message] = [*fields, *message.nested]
        for element in sorted(elements, key=lambda each: each.position):
            if isinstance(element, Message):
                self.message(made.nested_type.add(), element, scope)
            elif element.group is not None:
                self.message(made.nested_type.add(), element.group, scope)
            else:
                self._map_entry(made.nested_type.add(), element)

    def _map_entry(self, made: DescriptorProto, each: ProtoField) -> None:
        made.name = map_entry_name(each.name)
        key = made.field.add(name="key", number=1, label=FieldDescriptorProto.LABEL_OPTIONAL)
        key.type = SCALAR_TYPES.get(each.key or "", FieldDescriptorProto.TYPE_GROUP)
        value = made.field.add(name="value", number=2, label=FieldDescriptorProto.LABEL_OPTIONAL)
        self._set_type(value, each.type)
        made.options.map_entry = True

    def field(self, made: FieldDescriptorProto, each: ProtoField, scope: str) -> None:
        made.name = each.name if each.group is None else each.name.lower()
        made.number = each.number
        made.label = _LABELS[each.label or Label.OPTIONAL]
        if each.key is not None:
            made.label = FieldDescriptorProto.LABEL_REPEATED
            made.type = FieldDescriptorProto.TYPE_MESSAGE
            made.type_name = f".{join(scope, map_entry_name(each.name))}"
        elif each.group is not None:
            made.type = FieldDescriptorProto.TYPE_GROUP
            made.type_name = f".{join(scope, each.name)}"
        else:
            self._set_type(made, each.type)
        if self._is_proto3 and each.label is Label.OPTIONAL:
            made.proto3_optional = True
        self.later(made, self._special_options(made, each), scope)

    def _special_options(self, made: FieldDescriptorProto, each: ProtoField) -> Sequence[ProtoOption]:
        """Set `default` and `json_name`, which look like options but are none; return the other options."""
        others = []
        for option in each.options:
            if option.is_plain("default"):
                if self._is_proto3:
                    raise InvalidSchema(_at(option, "proto3 has no default values"))
                made.default_value = default_text(made, option)
            elif option.is_plain("json_name"):
                value = option.value
                if not isinstance(value, Literal) or value.kind is not LiteralKind.STRING:
                    raise InvalidSchema(_at(option, "json_name must be a string"))
                made.json_name = value.data.decode("utf-8", "replace")
            else:
                others.append(option)
        return others

    def _set_type(self, made: FieldDescriptorProto, name: str) -> None:
        if name in SCALAR_TYPES:
            made.type = SCALAR_TYPES[name]
            return
        is_enum = self._names.known.get(name[1:]) is NameKind.ENUM
        made.type = FieldDescriptorProto.TYPE_ENUM if is_enum else FieldDescriptorProto.TYPE_MESSAGE
        made.type_name = name

    def extensions(self, made: Iterable[FieldDescriptorProto], extends: Iterable[Extend], scope: str) -> None:
        for extend in extends:
            for each in extend.fields:
                field = made.add()  # type: ignore[attr-defined]
                self.field(field, each, scope)
                field.extendee = extend.extendee

    def enum(self, made: EnumDescriptorProto, enum: EnumType, scope: str) -> None:
        made.name = enum.name
        self.later(made, enum.options, scope)
        for each in enum.values:
            value = made.value.add(name=each.name, number=each.number)
            self.later(value, each.options, scope)
        for reserved in enum.reserved:
            for item in reserved.values:
                if isinstance(item, str):
                    made.reserved_name.append(item)
                else:
                    first, last = _both(item)
                    made.reserved_range.add(start=first, end=last)

    def service(self, made: ServiceDescriptorProto, service: ProtoService, package: str) -> None:
        scope = join(package, service.name)
        made.name = service.name
        self.later(made, service.options, scope)
        for rpc in service.rpcs:
            method = made.method.add(name=rpc.name, input_type=rpc.request, output_type=rpc.response)
            if rpc.is_request_stream:
                method.client_streaming = True
            if rpc.is_response_stream:
                method.server_streaming = True
            if rpc.has_body:
                method.options.SetInParent()
            self.later(method, rpc.options, scope)


def _both(span: NumberRange) -> tuple[int, int]:
    return span.first, span.first if span.last is None else span.last


def _add_synthetic_oneofs(made: DescriptorProto) -> None:
    taken = {each.name for each in made.field} | {each.name for each in made.oneof_decl}
    for each in made.field:
        if not each.proto3_optional:
            continue
        name = each.name if each.name.startswith("_") else "_" + each.name
        while name in taken:
            name = "X" + name
        taken.add(name)
        each.oneof_index = len(made.oneof_decl)
        made.oneof_decl.add(name=name)


def _at(option: ProtoOption, message: str) -> str:
    line, column = option.position
    return f"line {line}, column {column}: {message}" if line else message
