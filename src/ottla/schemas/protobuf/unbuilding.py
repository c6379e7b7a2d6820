"""Makes the elements of a file from a descriptor: the inverse of `building`, for schemas that come as descriptors.

Rules: the layout is that of Confluent's registry for such schemas (full names, messages of map entries kept, synthetic
oneofs dropped). Options are read with the classes that the caller gives, which know the extensions in reach.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.message import Message as ProtoMessage
from google.protobuf.text_encoding import CUnescape

from ottla.model.limits import PROTOBUF_DEPTH_MAX
from ottla.schemas.protobuf.elements import (
    Aggregate,
    EnumType,
    EnumValue,
    Extend,
    Extensions,
    Import,
    ImportKind,
    Label,
    ListLiteral,
    Literal,
    LiteralKind,
    Message,
    NamePart,
    NumberRange,
    ProtoField,
    ProtoFile,
    ProtoOneOf,
    ProtoOption,
    ProtoService,
    Reserved,
    Rpc,
    Value,
)
from ottla.schemas.schema import InvalidSchema

T = FieldDescriptorProto
_LABELS = {T.LABEL_OPTIONAL: Label.OPTIONAL, T.LABEL_REQUIRED: Label.REQUIRED, T.LABEL_REPEATED: Label.REPEATED}
# Confluent prints options by number, except for these, which come first.
_FIRST = (
    *("java_package", "java_outer_classname", "java_multiple_files", "java_generate_equals_and_hash"),
    *("java_string_check_utf8", "ctype", "packed", "jstype"),
)

_TYPE_NAMES = ("package", "type_name", "extendee", "input_type", "output_type")
_NAME = re.compile(r"\.?[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_WORD = re.compile(r"-inf|[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)

OptionsReader = Callable[[ProtoMessage], ProtoMessage]


def unbuild(made: FileDescriptorProto, read_options: OptionsReader) -> ProtoFile:
    """Return the elements of a descriptor. Raises InvalidSchema."""
    if made.syntax not in ("", "proto2", "proto3"):
        raise InvalidSchema("editions of Protobuf are not supported: proto2 and proto3 are")
    _check_names(made)
    reader = _Reader(made.syntax == "proto3", read_options)
    imports = []
    for index, path in enumerate(made.dependency):
        is_weak = index in made.weak_dependency
        kind = ImportKind.WEAK if is_weak else ImportKind.PLAIN
        imports.append(Import(path, ImportKind.PUBLIC if index in made.public_dependency else kind))
    grouped = _groups(made.extension)
    return ProtoFile(
        made.syntax or None,
        made.package or None,
        tuple(imports),
        reader.options(made),
        tuple(reader.message(each, 1) for each in made.message_type if each.name not in grouped),
        tuple(reader.enum(each) for each in made.enum_type),
        reader.extends(made.extension, made.message_type, 0),
        tuple(reader.service(each) for each in made.service),
    )


def _check_names(message: ProtoMessage) -> None:
    """Check that names are valid identifiers: else the printed text would be parsed as something else."""
    is_file = isinstance(message, FileDescriptorProto)
    for field, value in message.ListFields():
        if field.message_type is not None and field.name != "options":
            for each in value if field.is_repeated else (value,):
                _check_names(each)
        elif field.name in (_TYPE_NAMES if is_file else ("name", *_TYPE_NAMES)) and _NAME.fullmatch(value) is None:
            raise InvalidSchema(f'"{value}" is no name')


def _groups(fields: Iterable[FieldDescriptorProto]) -> dict[str, FieldDescriptorProto]:
    return {each.type_name.rpartition(".")[2]: each for each in fields if each.type == T.TYPE_GROUP}


class _Reader:
    __slots__ = ("_is_proto3", "_read_options")

    def __init__(self, is_proto3: bool, read_options: OptionsReader) -> None:
        self._is_proto3 = is_proto3
        self._read_options = read_options

    def message(self, made: DescriptorProto, depth: int) -> Message:
        if depth > PROTOBUF_DEPTH_MAX:
            raise InvalidSchema(f"messages are nested more than {PROTOBUF_DEPTH_MAX} deep")
        synthetic = {each.oneof_index for each in made.field if each.proto3_optional}
        oneofs = [ProtoOneOf(each.name, self.options(each)) for each in made.oneof_decl]
        grouped = {**_groups(made.field), **_groups(made.extension)}
        fields = []
        for each in made.field:
            is_member = each.HasField("oneof_index") and not each.proto3_optional
            if is_member and each.oneof_index >= len(oneofs):
                raise InvalidSchema(f"the field {each.name} is in a oneof that {made.name} does not have")
            fields.append(
                self.field(each, made.nested_type, depth, oneofs[each.oneof_index].name if is_member else None)
            )
        reserved = [Reserved((_span(each.start, each.end - 1),)) for each in made.reserved_range]
        extensions = [
            Extensions((_span(each.start, each.end - 1),), self.options(each)) for each in made.extension_range
        ]
        return Message(
            made.name,
            tuple(fields),
            tuple(oneof for index, oneof in enumerate(oneofs) if index not in synthetic),
            tuple(self.message(each, depth + 1) for each in made.nested_type if each.name not in grouped),
            tuple(self.enum(each) for each in made.enum_type),
            self.extends(made.extension, made.nested_type, depth),
            tuple(extensions),
            (*reserved, *(Reserved((name,)) for name in made.reserved_name)),
            self.options(made),
        )

    def field(
        self, made: FieldDescriptorProto, around: Sequence[DescriptorProto], depth: int, oneof: str | None
    ) -> ProtoField:
        label = None if oneof is not None else self._label(made)
        special = []
        if made.HasField("default_value") and not self._is_proto3:
            special.append(_plain("default", _default(made)))
        if made.HasField("json_name"):
            special.append(_plain("json_name", Literal(LiteralKind.STRING, data=made.json_name.encode())))
        options = (*self.options(made), *special)
        if made.type == T.TYPE_GROUP:
            name = made.type_name.rpartition(".")[2]
            body = next((each for each in around if each.name == name), None)
            if body is None:
                raise InvalidSchema(f"the group {made.type_name} is not defined beside its field")
            group = self.message(body, depth + 1)
            return ProtoField(name, "group", made.number, label, group=group, oneof=oneof, options=options)
        kind = made.type_name or T.Type.Name(made.type).removeprefix("TYPE_").lower()
        return ProtoField(made.name, kind, made.number, label, oneof=oneof, options=options)

    def _label(self, made: FieldDescriptorProto) -> Label | None:
        if made.proto3_optional:
            return Label.OPTIONAL
        label = _LABELS[made.label]
        return label if label is Label.REPEATED or not self._is_proto3 else None

    def extends(
        self, made: Iterable[FieldDescriptorProto], around: Sequence[DescriptorProto], depth: int
    ) -> tuple[Extend, ...]:
        found: dict[str, list[ProtoField]] = {}
        for each in made:
            found.setdefault(each.extendee, []).append(self.field(each, around, depth, None))
        return tuple(Extend(extendee, tuple(fields)) for extendee, fields in found.items())

    def enum(self, made: EnumDescriptorProto) -> EnumType:
        ranges = [Reserved((_span(each.start, each.end),)) for each in made.reserved_range]
        return EnumType(
            made.name,
            tuple(EnumValue(each.name, each.number, self.options(each)) for each in made.value),
            self.options(made),
            (*ranges, *(Reserved((name,)) for name in made.reserved_name)),
        )

    def service(self, made: ServiceDescriptorProto) -> ProtoService:
        rpcs = tuple(
            Rpc(
                *(each.name, each.input_type, each.output_type, each.client_streaming, each.server_streaming),
                self.options(each),
                each.HasField("options"),
            )
            for each in made.method
        )
        return ProtoService(made.name, rpcs, self.options(made))

    def options(self, owner: Any) -> tuple[ProtoOption, ...]:
        if not owner.HasField("options"):
            return ()
        found = self._read_options(owner.options).ListFields()
        options = []
        for field, value in sorted(found, key=lambda pair: _precedence(pair[0])):
            name = (NamePart(field.full_name if field.is_extension else field.name, field.is_extension),)
            options += [ProtoOption(name, each) for each in _values(field, value)]
        return tuple(options)


def _precedence(field: FieldDescriptor) -> tuple[bool, int, int]:
    rank = _FIRST.index(field.name) if field.name in _FIRST and not field.is_extension else len(_FIRST)
    return field.is_extension, rank, field.number


def _values(field: FieldDescriptor, value: Any) -> list[Value]:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        key, inner = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        items = sorted(value.items())
        return [Aggregate((("key", _value(key, each)), ("value", _value(inner, got)))) for each, got in items]
    return [_value(field, each) for each in (value if field.is_repeated else (value,))]


def _value(field: FieldDescriptor, value: Any) -> Value:
    if field.message_type is not None:
        entries: list[tuple[str, Value]] = []
        for each, got in value.ListFields():
            values = _values(each, got)
            # In text format a group has the name of its type.
            name = each.message_type.name if each.type == each.TYPE_GROUP else each.name
            key = f"[{each.full_name}]" if each.is_extension else name
            entries.append((key, ListLiteral(tuple(values)) if each.is_repeated else values[0]))
        return Aggregate(tuple(entries))
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return Literal(LiteralKind.WORD, known.name) if known is not None else Literal(LiteralKind.NUMBER, str(value))
    if isinstance(value, bool):
        return Literal(LiteralKind.WORD, "true" if value else "false")
    if isinstance(value, str | bytes):
        return Literal(LiteralKind.STRING, data=value.encode() if isinstance(value, str) else value)
    text = repr(value)
    return Literal(LiteralKind.WORD if text.lstrip("-") in ("inf", "nan") else LiteralKind.NUMBER, text)


def _default(made: FieldDescriptorProto) -> Literal:
    text = made.default_value
    if made.type == T.TYPE_STRING:
        return Literal(LiteralKind.STRING, data=text.encode())
    if made.type == T.TYPE_BYTES:
        return Literal(LiteralKind.STRING, data=CUnescape(text))
    is_word = made.type in (T.TYPE_ENUM, T.TYPE_BOOL) or text in ("inf", "-inf", "nan")
    if (_WORD if is_word else _NUMBER).fullmatch(text) is None:
        raise InvalidSchema(f'"{text}" is no default value')
    return Literal(LiteralKind.WORD if is_word else LiteralKind.NUMBER, text)


def _plain(name: str, value: Value) -> ProtoOption:
    return ProtoOption((NamePart(name, False),), value)


def _span(first: int, last: int) -> NumberRange:
    return NumberRange(first) if first == last else NumberRange(first, last)
