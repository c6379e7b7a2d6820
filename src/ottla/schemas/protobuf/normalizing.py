"""The normal form that all spellings of a file share: `normalize=true` stores and compares it.

Full names, imports and options sorted, fields and values by number, statements of ranges split, extensions of one
message together, messages of map entries as maps, dotted options as messages, numbers in decimal. The order of messages
stays: message indexes in records depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal

from ottla.model.limits import INT32_MAX
from ottla.schemas.protobuf.elements import (
    Aggregate,
    EnumType,
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
    ProtoOption,
    ProtoService,
    Reserved,
    Rpc,
    Value,
)
from ottla.schemas.protobuf.linking import SCALARS, NameKind, Names, join, walk_messages
from ottla.schemas.protobuf.printer import merged
from ottla.schemas.protobuf.tokens import whole_number

# Larger than any exponent of a double: a number with a larger one is left as it was written.
_EXPONENT_MAX = 400


def normalize(file: ProtoFile, names: Names, reachable: Iterable[ProtoFile]) -> ProtoFile:
    """Return the normal form of a linked file; `reachable` are the linked files that its options may use."""
    return _Normalizer(names, [*reachable, file]).file(file)


class _Normalizer:
    __slots__ = ("_extensions", "_messages", "_names")

    def __init__(self, names: Names, files: Sequence[ProtoFile]) -> None:
        self._names = names
        self._messages: dict[str, Message] = {}
        self._extensions: dict[str, ProtoField] = {}
        for file in files:
            self._add_extensions(file.package or "", file.extends)
            for name, message in walk_messages(file):
                self._messages[name] = message
                self._add_extensions(name, message.extends)

    def _add_extensions(self, scope: str, extends: Iterable[Extend]) -> None:
        for extend in extends:
            self._extensions |= {join(scope, each.name): each for each in extend.fields}

    def file(self, file: ProtoFile) -> ProtoFile:
        scope = file.package or ""
        imports = []
        for kind in ImportKind:
            imports += [
                Import(path, kind) for path in sorted({each.path for each in file.imports if each.kind is kind})
            ]
        return replace(
            file,
            syntax=file.syntax if file.is_proto3 else None,
            imports=tuple(imports),
            options=self._options(file.options, scope),
            messages=tuple(self._message(each, scope) for each in file.messages if not each.is_map_entry),
            enums=tuple(self._enum(each, scope) for each in file.enums),
            extends=self._extends(file.extends, scope),
            services=tuple(self._service(each, scope) for each in file.services),
        )

    def _message(self, message: Message, outer: str) -> Message:
        scope = join(outer, message.name)
        fields = sorted((self._field(each, scope) for each in message.fields), key=lambda each: each.number)
        first: dict[str | None, int] = {}
        for each in fields:
            first.setdefault(each.oneof, each.number)
        used = [each for each in message.oneofs if each.name in first]
        oneofs = [replace(each, options=self._options(each.options, scope)) for each in used]
        return replace(
            message,
            fields=tuple(fields),
            oneofs=tuple(sorted(oneofs, key=lambda oneof: first[oneof.name])),
            nested=tuple(self._message(each, scope) for each in message.nested if not each.is_map_entry),
            enums=tuple(self._enum(each, scope) for each in message.enums),
            extends=self._extends(message.extends, scope),
            extensions=self._ranges(message.extensions, scope),
            reserved=_reserved(message.reserved),
            options=self._options(message.options, scope),
        )

    def _field(self, each: ProtoField, scope: str) -> ProtoField:
        normal = replace(each, options=self._options(each.options, scope))
        if each.group is not None:
            return replace(normal, group=self._message(each.group, scope))
        entry = self._messages.get(each.type[1:]) if each.type not in SCALARS else None
        if entry is not None and entry.is_map_entry:
            kinds = {member.name: member.type for member in entry.fields}
            return replace(normal, label=None, key=kinds["key"], type=kinds["value"])
        return normal

    def _extends(self, extends: Iterable[Extend], scope: str) -> tuple[Extend, ...]:
        found: dict[str, list[ProtoField]] = {}
        for extend in extends:
            found.setdefault(extend.extendee, []).extend(self._field(each, scope) for each in extend.fields)
        return tuple(
            Extend(extendee, tuple(sorted(fields, key=lambda each: each.number))) for extendee, fields in found.items()
        )

    def _ranges(self, statements: Iterable[Extensions], scope: str) -> tuple[Extensions, ...]:
        single = [
            Extensions((_plain_span(span),), self._options(statement.options, scope))
            for statement in statements
            for span in statement.spans
        ]
        return tuple(sorted(single, key=lambda statement: statement.spans[0].first))

    def _enum(self, enum: EnumType, scope: str) -> EnumType:
        values = [replace(each, options=self._options(each.options, scope)) for each in enum.values]
        return replace(
            enum,
            values=tuple(sorted(values, key=lambda each: (each.number, each.name))),
            options=self._options(enum.options, scope),
            reserved=_reserved(enum.reserved),
        )

    def _service(self, service: ProtoService, package: str) -> ProtoService:
        scope = join(package, service.name)

        def rpc(each: Rpc) -> Rpc:
            return replace(each, options=self._options(each.options, scope))

        return replace(service, rpcs=tuple(map(rpc, service.rpcs)), options=self._options(service.options, scope))

    # --- options ---

    def _options(self, options: Sequence[ProtoOption], scope: str) -> tuple[ProtoOption, ...]:
        found: dict[tuple[NamePart, ...], list[ProtoOption]] = {}
        for option in sorted((self._option(each, scope) for each in options), key=lambda each: each.name[0].name):
            found.setdefault(option.name, []).append(option)
        out: list[ProtoOption] = []
        for name, same in found.items():
            field = self._extensions.get(name[0].name) if name[0].is_extension else None
            if field is not None and field.label is not Label.REPEATED:
                out.append(replace(same[-1], value=self._last(field, [option.value for option in same])))
            else:
                out += same
        return tuple(replace(option, value=self._value(option.value, scope)) for option in out)

    def _option(self, option: ProtoOption, scope: str) -> ProtoOption:
        """Return the option with the full name of its extension, and `(a).b.c = 1` as `(a) = { b: { c: 1 } }`."""
        first, *rest = option.name
        full = self._names.find(first.name, scope, NameKind.EXTENSION) if first.is_extension else None
        if full is None:
            return option
        value = option.value
        for part in reversed(rest):
            key = part.name
            if part.is_extension:
                key = f"[{self._names.find(part.name, scope, NameKind.EXTENSION) or part.name}]"
            value = Aggregate(((key, value),))
        return ProtoOption((NamePart(full, True),), value, option.position)

    def _last(self, field: ProtoField, values: Sequence[Value]) -> Value:
        """Return the value of a singular field that was set to all of these: the last one counts, but messages are
        merged. All at once, because an option may be set thousands of times.
        """
        messages: list[Aggregate] = []
        for value in values:
            if isinstance(value, Aggregate):
                messages.append(value)
            else:
                messages.clear()
        return self._merge_messages(field, messages) if len(messages) > 1 else values[-1]

    def _merge_messages(self, field: ProtoField, messages: Sequence[Aggregate]) -> Aggregate:
        kind = self._messages.get(field.type[1:])
        fields = {each.name: each for each in kind.fields} if kind is not None else {}
        found: dict[str, list[Value]] = {}
        for message in messages:
            for key, value in merged(message).entries:
                found.setdefault(key, []).append(value)
        return Aggregate(tuple((key, self._merge_values(fields.get(key), values)) for key, values in found.items()))

    def _merge_values(self, field: ProtoField | None, values: Sequence[Value]) -> Value:
        if len(values) == 1:
            return values[0]
        if field is not None and field.label is not Label.REPEATED and field.key is None:
            return self._last(field, values)
        all_ = [each for value in values for each in (value.values if isinstance(value, ListLiteral) else (value,))]
        return ListLiteral(tuple(dict.fromkeys(all_)))

    def _value(self, value: Value, scope: str) -> Value:
        if isinstance(value, Literal):
            return _number(value) if value.kind is LiteralKind.NUMBER else value
        if isinstance(value, ListLiteral):
            return ListLiteral(tuple(self._value(each, scope) for each in value.values))
        entries = {self._key(key, scope): each for key, each in merged(value).entries if each != ListLiteral()}
        return Aggregate(tuple((key, self._entry(each, scope)) for key, each in sorted(entries.items())))

    def _entry(self, value: Value, scope: str) -> Value:
        is_single = isinstance(value, ListLiteral) and len(value.values) == 1
        return self._value(value.values[0] if is_single and isinstance(value, ListLiteral) else value, scope)

    def _key(self, key: str, scope: str) -> str:
        if not key.startswith("["):
            return key
        return f"[{self._names.find(key[1:-1], scope, NameKind.EXTENSION) or key[1:-1]}]"


def _number(value: Literal) -> Literal:
    text = value.text.removeprefix("-")
    sign = "-" if text != value.text else ""
    whole = whole_number(text)
    if whole is not None:
        return Literal(LiteralKind.NUMBER, f"{sign}{whole}")
    number = Decimal(text.rstrip("fF"))
    if abs(number.adjusted()) > _EXPONENT_MAX:
        return value
    plain = f"{number:f}"
    return Literal(LiteralKind.NUMBER, sign + (plain.rstrip("0").rstrip(".") if "." in plain else plain))


def _plain_span(span: NumberRange) -> NumberRange:
    return NumberRange(span.first) if span.first == span.last else span


def _reserved(statements: Iterable[Reserved]) -> tuple[Reserved, ...]:
    values = [each for statement in statements for each in statement.values]
    single = [_plain_span(each) if isinstance(each, NumberRange) else each for each in values]
    return tuple(Reserved((each,)) for each in sorted(single, key=_reserved_rank))


def _reserved_rank(value: NumberRange | str) -> tuple[int, str]:
    if isinstance(value, str):
        return INT32_MAX, value
    # The sort key of a range is its text in Kotlin, `1..5`.
    return value.first, str(value.first) if value.last is None else f"{value.first}..{value.last}"
