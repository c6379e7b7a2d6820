"""Parses options: their names, and their values down to messages and lists in text format."""

from __future__ import annotations

from ottla.model.limits import PROTOBUF_DEPTH_MAX
from ottla.schemas.protobuf.elements import Aggregate, ListLiteral, Literal, LiteralKind, NamePart, ProtoOption, Value
from ottla.schemas.protobuf.tokens import TokenCursor, TokenKind

_SIGNED_WORDS = ("inf", "infinity", "nan")


def read_statement(cursor: TokenCursor) -> ProtoOption:
    """Read `option name = value;`; the word `option` was read already."""
    option = _read_option(cursor)
    cursor.expect(";")
    return option


def read_bracketed(cursor: TokenCursor) -> tuple[ProtoOption, ...]:
    """Read `[name = value, ...]`, if it is there."""
    if not cursor.accept("["):
        return ()
    options = [_read_option(cursor)]
    while cursor.accept(","):
        options.append(_read_option(cursor))
    cursor.expect("]")
    return tuple(options)


def _read_option(cursor: TokenCursor) -> ProtoOption:
    position = cursor.position
    parts = [_read_part(cursor)]
    while cursor.accept("."):
        parts.append(_read_part(cursor))
    cursor.expect("=")
    return ProtoOption(tuple(parts), _read_value(cursor, 0), position)


def _read_part(cursor: TokenCursor) -> NamePart:
    if cursor.accept("("):
        name = cursor.dotted("the name of an extension")
        cursor.expect(")")
        return NamePart(name, True)
    return NamePart(cursor.word("the name of an option"), False)


def _read_value(cursor: TokenCursor, depth: int) -> Value:
    if cursor.sees("{") or cursor.sees("<"):
        return _read_aggregate(cursor, depth + 1)
    if cursor.sees("["):
        return _read_items(cursor, depth + 1)
    if cursor.token.kind is TokenKind.STRING:
        return Literal(LiteralKind.STRING, data=cursor.string("a value"))
    sign = "-" if cursor.accept("-") else ""
    if not sign:
        cursor.accept("+")
    token = cursor.token
    if token.kind is TokenKind.NUMBER:
        return Literal(LiteralKind.NUMBER, sign + cursor.next().text)
    if token.kind is TokenKind.WORD and (not sign or token.text.lower() in _SIGNED_WORDS):
        return Literal(LiteralKind.WORD, sign + cursor.next().text)
    cursor.expected("a value")


def _check_depth(cursor: TokenCursor, depth: int) -> None:
    if depth > PROTOBUF_DEPTH_MAX:
        cursor.fail(f"values of options are nested more than {PROTOBUF_DEPTH_MAX} deep")


def _read_aggregate(cursor: TokenCursor, depth: int) -> Aggregate:
    _check_depth(cursor, depth)
    end = "}" if cursor.next().text == "{" else ">"
    entries: list[tuple[str, Value]] = []
    while not cursor.accept(end):
        key = _read_key(cursor)
        if not cursor.accept(":") and not (cursor.sees("{") or cursor.sees("<")):
            cursor.expected("':'")
        entries.append((key, _read_value(cursor, depth)))
        if not cursor.accept(","):
            cursor.accept(";")
    return Aggregate(tuple(entries))


def _read_key(cursor: TokenCursor) -> str:
    if not cursor.accept("["):
        return cursor.word("the name of a field or '}'")
    name = cursor.dotted("the name of an extension")
    while cursor.accept("/"):
        name += "/" + cursor.dotted("the name of a type")
    cursor.expect("]")
    return f"[{name}]"


def _read_items(cursor: TokenCursor, depth: int) -> ListLiteral:
    _check_depth(cursor, depth)
    cursor.expect("[")
    values: list[Value] = []
    while not cursor.accept("]"):
        values.append(_read_value(cursor, depth))
        if not cursor.accept(",") and not cursor.sees("]"):
            cursor.expected("',' or ']'")
    return ListLiteral(tuple(values))
