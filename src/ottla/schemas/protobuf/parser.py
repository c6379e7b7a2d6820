"""Parses the text of a .proto file (proto2 and proto3) by recursive descent.

Rules: the depth is bounded, so no input exhausts the stack; a violation of the grammar is an `InvalidSchema` with line
and column. Checks that need other files (types, options) are left to `linking` and `options`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ottla.model.limits import INT32_MAX, PROTOBUF_DEPTH_MAX, PROTOBUF_FIELD_NUMBER_MAX, PROTOBUF_TEXT_CHARS_MAX
from ottla.schemas.protobuf.elements import (
    EnumType,
    EnumValue,
    Extend,
    Extensions,
    Import,
    ImportKind,
    Label,
    Message,
    NumberRange,
    ProtoField,
    ProtoFile,
    ProtoOneOf,
    ProtoOption,
    ProtoService,
    Reserved,
    Rpc,
    TextPosition,
)
from ottla.schemas.protobuf.linking import SCALARS
from ottla.schemas.protobuf.tokens import TokenCursor, TokenKind
from ottla.schemas.protobuf.values import read_bracketed, read_statement
from ottla.schemas.schema import InvalidSchema

_INT32_MIN = -INT32_MAX - 1
_LABELS = {label.value: label for label in Label}
_KEYS = [name for name in SCALARS if name not in ("double", "float", "bytes")]
_IMPORTS = {"public": ImportKind.PUBLIC, "weak": ImportKind.WEAK}


def parse_file(text: str) -> ProtoFile:
    """Parse a text. Raises InvalidSchema."""
    if len(text) > PROTOBUF_TEXT_CHARS_MAX:
        raise InvalidSchema(f"the schema has {len(text)} characters, more than {PROTOBUF_TEXT_CHARS_MAX}")
    return _Parser(text).file()


@dataclass(slots=True)
class _Body:
    """The parsed parts of a message body."""

    fields: list[ProtoField] = field(default_factory=list)
    oneofs: list[ProtoOneOf] = field(default_factory=list)
    nested: list[Message] = field(default_factory=list)
    enums: list[EnumType] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)
    extensions: list[Extensions] = field(default_factory=list)
    reserved: list[Reserved] = field(default_factory=list)
    options: list[ProtoOption] = field(default_factory=list)

    def message(self, name: str, position: TextPosition) -> Message:
        return Message(
            *(name, tuple(self.fields), tuple(self.oneofs), tuple(self.nested), tuple(self.enums)),
            *(tuple(self.extends), tuple(self.extensions), tuple(self.reserved), tuple(self.options), position),
        )


class _Parser:
    __slots__ = ("_cursor", "_depth", "_is_proto3")

    def __init__(self, text: str) -> None:
        self._cursor = TokenCursor(text)
        self._depth = 0
        self._is_proto3 = False

    def file(self) -> ProtoFile:
        cursor = self._cursor
        syntax = self._syntax()
        package: str | None = None
        imports: list[Import] = []
        options: list[ProtoOption] = []
        messages: list[Message] = []
        enums: list[EnumType] = []
        extends: list[Extend] = []
        services: list[ProtoService] = []
        while not cursor.at_end:
            if cursor.accept(";"):
                continue
            if cursor.accept("package"):
                if package is not None:
                    cursor.fail("a file has one package only")
                package = cursor.dotted("the name of the package")
                cursor.expect(";")
            elif cursor.accept("import"):
                imports.append(self._import())
            elif cursor.accept("option"):
                options.append(read_statement(cursor))
            elif cursor.accept("message"):
                messages.append(self._message())
            elif cursor.accept("enum"):
                enums.append(self._enum())
            elif cursor.accept("extend"):
                extends.append(self._extend())
            elif cursor.accept("service"):
                services.append(self._service())
            else:
                cursor.expected("package, import, option, message, enum, extend or service")
        return ProtoFile(
            *(syntax, package, tuple(imports), tuple(options)),
            *(tuple(messages), tuple(enums), tuple(extends), tuple(services)),
        )

    def _syntax(self) -> str | None:
        cursor = self._cursor
        if cursor.sees("edition"):
            cursor.fail("editions of Protobuf are not supported: proto2 and proto3 are")
        if not cursor.accept("syntax"):
            return None
        cursor.expect("=")
        if cursor.token.text[1:-1] not in ("proto2", "proto3"):
            cursor.expected('"proto2" or "proto3"')
        syntax = cursor.string_text("the syntax")
        cursor.expect(";")
        self._is_proto3 = syntax == "proto3"
        return syntax

    def _import(self) -> Import:
        cursor = self._cursor
        position = cursor.position
        kind = ImportKind.PLAIN
        if cursor.token.kind is TokenKind.WORD and cursor.token.text in _IMPORTS:
            kind = _IMPORTS[cursor.next().text]
        path = cursor.string_text("the path of a file")
        cursor.expect(";")
        return Import(path, kind, position)

    # --- messages ---

    def _message(self) -> Message:
        position = self._cursor.position
        name = self._cursor.word("the name of a message")
        return self._message_body(name, position)

    def _message_body(self, name: str, position: TextPosition) -> Message:
        cursor = self._cursor
        self._depth += 1
        if self._depth > PROTOBUF_DEPTH_MAX:
            cursor.fail(f"messages are nested more than {PROTOBUF_DEPTH_MAX} deep")
        cursor.expect("{")
        body = _Body()
        while not cursor.accept("}"):
            self._message_member(body)
        self._depth -= 1
        return body.message(name, position)

    def _message_member(self, body: _Body) -> None:
        cursor = self._cursor
        if cursor.accept(";"):
            return
        read = self._declarations(body).get(cursor.token.text)
        if read is not None:
            cursor.next()
            read()
        elif cursor.at_end:
            cursor.expected("'}'")
        else:
            body.fields.append(self._field(cursor.position))

    def _declarations(self, body: _Body) -> dict[str, Callable[[], None]]:
        return {
            "message": lambda: body.nested.append(self._message()),
            "enum": lambda: body.enums.append(self._enum()),
            "extend": lambda: body.extends.append(self._extend()),
            "extensions": lambda: body.extensions.append(self._extensions()),
            "reserved": lambda: body.reserved.append(self._reserved(1, PROTOBUF_FIELD_NUMBER_MAX)),
            "option": lambda: body.options.append(read_statement(self._cursor)),
            "oneof": lambda: self._oneof(body),
        }

    def _oneof(self, body: _Body) -> None:
        cursor = self._cursor
        name = cursor.word("the name of a oneof")
        cursor.expect("{")
        options = []
        while not cursor.accept("}"):
            if cursor.accept(";"):
                continue
            if cursor.accept("option"):
                options.append(read_statement(cursor))
                continue
            if cursor.token.text in _LABELS and cursor.following().kind is TokenKind.WORD:
                cursor.fail("fields of a oneof have no label")
            if cursor.sees("map") and cursor.following().text == "<":
                cursor.fail("a oneof cannot hold maps")
            body.fields.append(replace(self._field_after_label(cursor.position, None), oneof=name))
        body.oneofs.append(ProtoOneOf(name, tuple(options)))

    def _field(self, position: TextPosition) -> ProtoField:
        cursor = self._cursor
        label = _LABELS.get(cursor.token.text) if cursor.token.kind is TokenKind.WORD else None
        if label is not None:
            if label is Label.REQUIRED and self._is_proto3:
                cursor.fail("proto3 has no required fields")
            cursor.next()
        if cursor.sees("map") and cursor.following().text == "<":
            if label is not None:
                cursor.fail("a map has no label")
            return self._map(position)
        if label is None and not self._is_proto3:
            if cursor.token.kind is TokenKind.WORD or cursor.sees("."):
                cursor.fail("in proto2 a field begins with optional, required or repeated")
            cursor.expected("a field or '}'")
        return self._field_after_label(position, label)

    def _field_after_label(self, position: TextPosition, label: Label | None) -> ProtoField:
        cursor = self._cursor
        if cursor.sees("group") and cursor.following().kind is TokenKind.WORD:
            return self._group(position, label)
        kind = cursor.dotted("the type of a field")
        name = cursor.word("the name of a field")
        number = self._number()
        options = self._field_options()
        cursor.expect(";")
        return ProtoField(name, kind, number, label, options=options, position=position)

    def _group(self, position: TextPosition, label: Label | None) -> ProtoField:
        cursor = self._cursor
        if self._is_proto3:
            cursor.fail("proto3 has no groups")
        cursor.expect("group")
        if not cursor.token.text[:1].isupper():
            cursor.fail("the name of a group begins with a capital letter")
        name = cursor.word("the name of a group")
        number = self._number()
        options = self._field_options()
        body = self._message_body(name, position)
        return ProtoField(name, "group", number, label, group=body, options=options, position=position)

    def _map(self, position: TextPosition) -> ProtoField:
        cursor = self._cursor
        cursor.expect("map")
        cursor.expect("<")
        if cursor.token.text not in _KEYS:
            cursor.expected("the type of a map's keys (an integer, bool or string)")
        key = cursor.word("the type of a map's keys")
        cursor.expect(",")
        value = cursor.dotted("the type of a map's values")
        cursor.expect(">")
        name = cursor.word("the name of a field")
        number = self._number()
        options = self._field_options()
        cursor.expect(";")
        return ProtoField(name, value, number, key=key, options=options, position=position)

    def _field_options(self) -> tuple[ProtoOption, ...]:
        """Return the options in their order; `default` and `json_name`, which are no real options, come last as with
        Confluent.
        """
        options = read_bracketed(self._cursor)
        named = {name: [option for option in options if option.is_plain(name)] for name in ("default", "json_name")}
        others = (option for option in options if not any(map(option.is_plain, named)))
        return (*others, *named["default"], *named["json_name"])

    def _number(self) -> int:
        self._cursor.expect("=")
        return self._cursor.integer("the number of a field", 1, PROTOBUF_FIELD_NUMBER_MAX)

    def _extend(self) -> Extend:
        cursor = self._cursor
        position = cursor.position
        extendee = cursor.dotted("the name of a message")
        cursor.expect("{")
        fields = []
        while not cursor.accept("}"):
            if cursor.accept(";"):
                continue
            if cursor.sees("map") and cursor.following().text == "<":
                cursor.fail("an extension cannot be a map")
            fields.append(self._field(cursor.position))
        return Extend(extendee, tuple(fields), position)

    def _extensions(self) -> Extensions:
        if self._is_proto3:
            self._cursor.fail("proto3 has no extension ranges")
        spans = [self._span(1, PROTOBUF_FIELD_NUMBER_MAX)]
        while self._cursor.accept(","):
            spans.append(self._span(1, PROTOBUF_FIELD_NUMBER_MAX))
        options = read_bracketed(self._cursor)
        self._cursor.expect(";")
        return Extensions(tuple(spans), options)

    def _reserved(self, low: int, high: int) -> Reserved:
        cursor = self._cursor
        values: list[NumberRange | str] = []
        while True:
            if cursor.token.kind is TokenKind.STRING:
                values.append(cursor.string_text("a reserved name"))
            else:
                values.append(self._span(low, high))
            if not cursor.accept(","):
                break
        cursor.expect(";")
        return Reserved(tuple(values))

    def _span(self, low: int, high: int) -> NumberRange:
        cursor = self._cursor
        first = cursor.integer("a number", low, high)
        if not cursor.accept("to"):
            return NumberRange(first)
        if cursor.accept("max"):
            return NumberRange(first, high)
        return NumberRange(first, cursor.integer("the end of a range", first, high))

    # --- enums and services ---

    def _enum(self) -> EnumType:
        cursor = self._cursor
        position = cursor.position
        name = cursor.word("the name of an enum")
        cursor.expect("{")
        values: list[EnumValue] = []
        options: list[ProtoOption] = []
        reserved: list[Reserved] = []
        while not cursor.accept("}"):
            if cursor.accept(";"):
                continue
            is_value = cursor.following().text == "="
            if cursor.sees("option") and not is_value:
                cursor.next()
                options.append(read_statement(cursor))
            elif cursor.sees("reserved") and not is_value:
                cursor.next()
                reserved.append(self._reserved(_INT32_MIN, INT32_MAX))
            else:
                values.append(self._enum_value())
        return EnumType(name, tuple(values), tuple(options), tuple(reserved), position)

    def _enum_value(self) -> EnumValue:
        cursor = self._cursor
        position = cursor.position
        name = cursor.word("the name of an enum's value or '}'")
        cursor.expect("=")
        number = cursor.integer("the number of an enum's value", _INT32_MIN, INT32_MAX)
        options = read_bracketed(cursor)
        cursor.expect(";")
        return EnumValue(name, number, options, position)

    def _service(self) -> ProtoService:
        cursor = self._cursor
        position = cursor.position
        name = cursor.word("the name of a service")
        cursor.expect("{")
        rpcs: list[Rpc] = []
        options: list[ProtoOption] = []
        while not cursor.accept("}"):
            if cursor.accept(";"):
                continue
            if cursor.accept("option"):
                options.append(read_statement(cursor))
            else:
                rpcs.append(self._rpc())
        return ProtoService(name, tuple(rpcs), tuple(options), position)

    def _rpc(self) -> Rpc:
        cursor = self._cursor
        position = cursor.position
        if not cursor.accept("rpc"):
            cursor.expected("rpc, option or '}'")
        name = cursor.word("the name of a method")
        request, is_request_stream = self._rpc_type()
        cursor.expect("returns")
        response, is_response_stream = self._rpc_type()
        options: list[ProtoOption] = []
        has_body = cursor.accept("{")
        if has_body:
            while not cursor.accept("}"):
                if not cursor.accept(";"):
                    cursor.expect("option")
                    options.append(read_statement(cursor))
        else:
            cursor.expect(";")
        return Rpc(name, request, response, is_request_stream, is_response_stream, tuple(options), has_body, position)

    def _rpc_type(self) -> tuple[str, bool]:
        cursor = self._cursor
        cursor.expect("(")
        is_stream = cursor.sees("stream") and cursor.following().text != ")"
        if is_stream:
            cursor.next()
        name = cursor.dotted("the name of a message")
        cursor.expect(")")
        return name, is_stream
