"""Prints a file in the layout of Confluent's registry: the text that is stored, compared and returned.

Elements come by kind in a fixed order (messages before enums; fields, oneofs, groups, extension ranges, extensions,
nested types), without comments, indented by two spaces; a single option is on the line of its element, several are on
lines of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ottla.model.limits import INT32_MAX, PROTOBUF_FIELD_NUMBER_MAX
from ottla.schemas.protobuf.elements import (
    Aggregate,
    EnumType,
    Extend,
    Extensions,
    ImportKind,
    ListLiteral,
    Literal,
    LiteralKind,
    Message,
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

_ESCAPES = {
    **{0x07: "\\a", 0x08: "\\b", 0x0C: "\\f", 0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t", 0x0B: "\\v"},
    **{0x5C: "\\\\", 0x27: "\\'", 0x22: '\\"'},
}


def print_file(file: ProtoFile) -> str:
    out = []
    if file.syntax is not None:
        out.append(f'syntax = "{file.syntax}";\n')
    if file.package is not None:
        out.append(f"package {file.package};\n")
    imports = []
    for kind, word in ((ImportKind.PLAIN, ""), (ImportKind.PUBLIC, "public "), (ImportKind.WEAK, "weak ")):
        imports += [f"import {word}{quoted(each.path.encode())};\n" for each in file.imports if each.kind is kind]
    blocks = [
        imports,
        _statements(file.options),
        [*map(_message, file.messages), *map(_enum, file.enums)],
        [_extend(extend) for extend in file.extends],
        [_service(service) for service in file.services],
    ]
    return "".join(out) + "".join("\n" + "".join(block) for block in blocks if block)


def quoted(data: bytes) -> str:
    """Return a string as a literal. Bytes that are not UTF-8 and control characters are written in octal."""
    out = []
    for char in data.decode("utf-8", "surrogateescape"):
        code = ord(char)
        if code in _ESCAPES:
            out.append(_ESCAPES[code])
        elif 0xDC80 <= code <= 0xDCFF:
            out.append(f"\\{code - 0xDC00:03o}")
        elif code < 0x20 or code == 0x7F:
            out.append(f"\\{code:03o}")
        else:
            out.append(char)
    return '"' + "".join(out) + '"'


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.removesuffix("\n").split("\n"))


def _block(head: str, groups: Iterable[Sequence[str]]) -> str:
    """Return a body in braces, with an empty line between groups of statements (after the head: only a line break)."""
    body = "".join("\n" + "".join(map(_indented, group)) for group in groups if group)
    return f"{head} {{{body}}}\n"


# --- options ---


def _statements(options: Iterable[ProtoOption]) -> list[str]:
    return [f"option {_option(option)};\n" for option in options]


def _option(option: ProtoOption) -> str:
    name = ".".join(f"({part.name})" if part.is_extension else part.name for part in option.name)
    value = option.value
    text = _list([_value(each) for each in value.values]) if isinstance(value, ListLiteral) else _value(value)
    return f"{name} = {text}"


def _bracketed(options: Sequence[ProtoOption]) -> str:
    return " " + _list([_option(option) for option in options]) if options else ""


def _list(items: list[str]) -> str:
    return f"[{items[0]}]" if len(items) == 1 else f"[\n{_lines(items)}]"


def _lines(items: list[str]) -> str:
    last = len(items) - 1
    return "".join(_indented(item + ("," if index < last else "")) for index, item in enumerate(items))


def _value(value: Value) -> str:
    if isinstance(value, Literal):
        return quoted(value.data) if value.kind is LiteralKind.STRING else value.text
    if isinstance(value, ListLiteral):
        return f"[\n{_lines([_value(each) for each in value.values])}]"
    return f"{{\n{_lines([f'{key}: {_value(each)}' for key, each in merged(value).entries])}}}"


def merged(value: Aggregate) -> Aggregate:
    """Return the message with every key once: repeated values of a key become a list."""
    found: dict[str, list[Value]] = {}
    for key, each in value.entries:
        found.setdefault(key, []).append(each)
    if len(found) == len(value.entries):
        return value
    entries = []
    for key, values in found.items():
        flat = [one for each in values for one in (each.values if isinstance(each, ListLiteral) else (each,))]
        entries.append((key, values[0] if len(values) == 1 else ListLiteral(tuple(flat))))
    return Aggregate(tuple(entries))


# --- types ---


def _message(message: Message) -> str:
    return _block(f"message {message.name}", _body(message))


def _body(message: Message) -> list[list[str]]:
    members: dict[str | None, list[ProtoField]] = {}
    for each in message.fields:
        members.setdefault(each.oneof, []).append(each)
    alone = members.get(None, [])
    return [
        [_reserved(each, PROTOBUF_FIELD_NUMBER_MAX) for each in message.reserved],
        _statements(message.options),
        [_field(each) for each in alone if each.group is None],
        [_oneof(oneof, members.get(oneof.name, [])) for oneof in message.oneofs],
        [_field(each) for each in alone if each.group is not None],
        [_extensions(each) for each in message.extensions],
        [_extend(each) for each in message.extends],
        [*map(_message, message.nested), *map(_enum, message.enums)],
    ]


def _oneof(oneof: ProtoOneOf, members: Sequence[ProtoField]) -> str:
    plain = [_field(each) for each in members if each.group is None]
    groups = [_field(each) for each in members if each.group is not None]
    return _block(f"oneof {oneof.name}", [_statements(oneof.options), plain, groups])


def _field(each: ProtoField) -> str:
    label = f"{each.label.value} " if each.label is not None else ""
    kind = each.type if each.key is None else f"map<{each.key}, {each.type}>"
    head = f"{label}{kind} {each.name} = {each.number}{_bracketed(each.options)}"
    return f"{head};\n" if each.group is None else _block(head, _body(each.group))


def _extend(extend: Extend) -> str:
    return _block(f"extend {extend.extendee}", [[_field(each) for each in extend.fields]])


def _enum(enum: EnumType) -> str:
    values = [f"{each.name} = {each.number}{_bracketed(each.options)};\n" for each in enum.values]
    reserved = [_reserved(each, INT32_MAX) for each in enum.reserved]
    # Confluent puts no empty line after reserved numbers.
    return _block(f"enum {enum.name}", [[*reserved, *_statements(enum.options), *values]])


def _span(span: NumberRange, highest: int) -> str:
    if span.last is None:
        return str(span.first)
    return f"{span.first} to {'max' if span.last >= highest else span.last}"


def _reserved(reserved: Reserved, highest: int) -> str:
    values = (quoted(value.encode()) if isinstance(value, str) else _span(value, highest) for value in reserved.values)
    return f"reserved {', '.join(values)};\n"


def _extensions(extensions: Extensions) -> str:
    spans = ", ".join(_span(span, PROTOBUF_FIELD_NUMBER_MAX) for span in extensions.spans)
    return f"extensions {spans}{_bracketed(extensions.options)};\n"


def _service(service: ProtoService) -> str:
    return _block(f"service {service.name}", [_statements(service.options), [_rpc(rpc) for rpc in service.rpcs]])


def _rpc(rpc: Rpc) -> str:
    request = ("stream " if rpc.is_request_stream else "") + rpc.request
    response = ("stream " if rpc.is_response_stream else "") + rpc.response
    head = f"rpc {rpc.name} ({request}) returns ({response})"
    if not rpc.options:
        return f"{head};\n"
    return f"{head} {{\n{''.join(map(_indented, _statements(rpc.options)))}}};\n"
