"""JSON → Avro types, by the rules of Java's Avro 1.12 (which Confluent's registry uses).

A name may be used before its type is defined: such uses are `UnresolvedName` until the whole text is parsed, and are
then replaced. Checks that need the types in place (unions without duplicates, defaults that fit) come after that. The
same type may be defined twice if both definitions are equal.
"""

from __future__ import annotations

from ottla.schemas.avro.defaults import Memo, fits
from ottla.schemas.avro.equal import equal
from ottla.schemas.avro.names import check_name, check_type_name, make_name
from ottla.schemas.avro.types import (
    PRIMITIVES,
    Array,
    AvroField,
    AvroName,
    AvroRecord,
    AvroType,
    Enum,
    Fixed,
    Map,
    Named,
    Primitive,
    Union,
    UnresolvedName,
    full_name,
)
from ottla.schemas.avro.write import to_text
from ottla.schemas.jackson import Json, write
from ottla.schemas.schema import InvalidSchema

# Keys with a meaning of their own; all others are properties and are kept.
_RESERVED = frozenset(["doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"])
_ENUM_RESERVED = _RESERVED | {"default"}
_FIELD_RESERVED = frozenset(["default", "doc", "name", "order", "type", "aliases"])
_ORDERS = ("ascending", "descending", "ignore")
_FIXED_SIZE_MAX = (1 << 31) - 9
_SHOWN_CHARS_MAX = 200


class Parser:
    """Parses one text after the other; each may use the names that earlier ones defined.

    `strict` checks a schema as a new one; a schema that is registered already may have more lenient names, and defaults
    that do not fit.
    """

    def __init__(self, *, strict: bool = True) -> None:
        self._strict = strict
        self._types: dict[str, Named] = {}
        self._holders: list[Array | Map | Union | AvroField] = []

    def parse(self, tree: Json) -> AvroType:
        """Parse one schema. Raises InvalidSchema."""
        self._holders = []
        top = self._settle(self._schema(tree, None, ""))
        for holder in self._holders:
            self._settle_in(holder)
        for holder in self._holders:
            if isinstance(holder, Union):
                _check_union(holder)
        if self._strict:
            self._check_defaults()
        return top

    # --- nodes ------------------------------------------------------------------------------------------------------

    def _schema(self, tree: Json, space: str | None, where: str) -> AvroType:
        if isinstance(tree, str):
            return self._named(tree, space, where)
        if isinstance(tree, list):
            union = Union([self._schema(item, space, f"{where}/{index}") for index, item in enumerate(tree)], where)
            self._holders.append(union)
            return union
        if not isinstance(tree, dict):
            raise InvalidSchema(f"not a schema: {_shown(tree)} at {where or '/'}")
        type_name = tree.get("type")
        if not isinstance(type_name, str):
            raise InvalidSchema(f"No type: {_shown(tree)} at {where or '/'}")
        if type_name in PRIMITIVES:
            return Primitive(type_name, _props(tree, _RESERVED))
        if type_name in ("record", "error"):
            return self._record(tree, space, where)
        if type_name == "enum":
            return self._enum(tree, space, where)
        if type_name == "fixed":
            return self._fixed(tree, space, where)
        if type_name == "array":
            items = self._schema(_part(tree, "items", "Array has no items type", where), space, f"{where}/items")
            return self._hold(Array(items, _props(tree, _RESERVED)))
        if type_name == "map":
            values = self._schema(_part(tree, "values", "Map has no values type", where), space, f"{where}/values")
            return self._hold(Map(values, _props(tree, _RESERVED)))
        return self._named(type_name, space, where)

    def _hold(self, holder: Array | Map) -> AvroType:
        self._holders.append(holder)
        return holder

    def _named(self, name: str, space: str | None, where: str) -> AvroType:
        if name in PRIMITIVES:
            return Primitive(name)
        full = f"{space}.{name}" if space is not None and "." not in name else name
        return self._types.get(full) or self._types.get(name) or UnresolvedName(full, where)

    def _record(self, tree: dict[str, Json], space: str | None, where: str) -> AvroType:
        name = self._name_of(tree, space, where)
        record = AvroRecord(name, _text(tree, "doc"), error=tree["type"] == "error")
        fields = tree.get("fields")
        if not isinstance(fields, list):
            raise InvalidSchema(f"Record has no fields: {_shown(tree)} at {where or '/'}")
        record.fields = tuple(
            self._field(item, name.space, f"{where}/fields/{index}") for index, item in enumerate(fields)
        )
        for field in record.fields:
            if record.by_name.setdefault(field.name, field) is not field:
                raise InvalidSchema(f"Duplicate field {field.name} in record {name.full} at {field.where}")
        record.props = _props(tree, _RESERVED)
        record.aliases = self._aliases_of(tree, name, where)
        return self._define(record, where)

    def _field(self, tree: Json, space: str | None, where: str) -> AvroField:
        name = _text(tree, "name") if isinstance(tree, dict) else None
        if name is None:
            raise InvalidSchema(f"No field name: {_shown(tree)} at {where}")
        check_name(name, where, strict=self._strict)
        schema = self._schema(_part(tree, "type", "No field type", where), space, f"{where}/type")
        order = tree.get("order", "ascending")
        if not isinstance(order, str) or order.lower() not in _ORDERS:
            raise InvalidSchema(f"the order {_shown(order)} is none of {', '.join(_ORDERS)} at {where}")
        default = tree.get("default")
        if isinstance(schema, Primitive) and schema.type in ("float", "double") and isinstance(default, str):
            default = _float(default, where)
        field = AvroField(
            name=name,
            type=schema,
            doc=_text(tree, "doc"),
            has_default="default" in tree,
            default=default,
            order=order.lower(),
            aliases=_aliases(tree, where),
            props=_props(tree, _FIELD_RESERVED),
            where=where,
        )
        self._holders.append(field)
        return field

    def _enum(self, tree: dict[str, Json], space: str | None, where: str) -> AvroType:
        name = self._name_of(tree, space, where)
        symbols = tree.get("symbols")
        if not isinstance(symbols, list):
            raise InvalidSchema(f"Enum has no symbols: {_shown(tree)} at {where or '/'}")
        for index, symbol in enumerate(symbols):
            check_name(symbol if isinstance(symbol, str) else None, f"{where}/symbols/{index}", strict=self._strict)
        seen: set[str] = set()
        for symbol in symbols:
            if symbol in seen:
                raise InvalidSchema(f"Duplicate enum symbol: {symbol} at {where}/symbols")
            seen.add(symbol)
        default = _text(tree, "default")
        if default is not None and default not in symbols:
            raise InvalidSchema(
                f"The Enum Default: {default} is not in the enum symbol set: {_shown(symbols)} at {where or '/'}"
            )
        enum = Enum(name, _text(tree, "doc"), tuple(symbols), default)
        enum.props = _props(tree, _ENUM_RESERVED)
        enum.aliases = self._aliases_of(tree, name, where)
        return self._define(enum, where)

    def _fixed(self, tree: dict[str, Json], space: str | None, where: str) -> AvroType:
        name = self._name_of(tree, space, where)
        size = tree.get("size")
        if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= _FIXED_SIZE_MAX:
            raise InvalidSchema(f"Invalid or no size: {_shown(tree)} at {where or '/'}")
        fixed = Fixed(name, _text(tree, "doc"), size)
        fixed.props = _props(tree, _RESERVED)
        fixed.aliases = self._aliases_of(tree, name, where)
        return self._define(fixed, where)

    # --- names ------------------------------------------------------------------------------------------------------

    def _name_of(self, tree: dict[str, Json], space: str | None, where: str) -> AvroName:
        name = _text(tree, "name")
        if name is None:
            raise InvalidSchema(f"No name in schema: {_shown(tree)} at {where or '/'}")
        own = _text(tree, "namespace")
        made = make_name(name, space if own is None else own, where or "/", strict=self._strict)
        check_type_name(made, where or "/", strict=self._strict)
        return made

    def _aliases_of(self, tree: dict[str, Json], name: AvroName, where: str) -> tuple[AvroName, ...]:
        return tuple(make_name(alias, name.space, where or "/", strict=self._strict) for alias in _aliases(tree, where))

    def _define(self, schema: Named, where: str) -> Named:
        """Define the type under its name; return the known type if it is defined already and equal."""
        known = self._types.setdefault(schema.name.full, schema)
        if known is not schema and not equal(known, schema):
            raise InvalidSchema(f"Can't redefine: {schema.name.full} at {where or '/'}")
        return known

    # --- after the text was read ------------------------------------------------------------------------------------

    def _settle(self, schema: AvroType) -> AvroType:
        if not isinstance(schema, UnresolvedName):
            return schema
        known = self._types.get(schema.full)
        if known is None:
            raise InvalidSchema(f"Undefined schema: {schema.full} at {schema.where or '/'}")
        return known

    def _settle_in(self, holder: Array | Map | Union | AvroField) -> None:
        if isinstance(holder, Array):
            holder.items = self._settle(holder.items)
        elif isinstance(holder, Map):
            holder.values = self._settle(holder.values)
        elif isinstance(holder, Union):
            holder.branches = [self._settle(branch) for branch in holder.branches]
        else:
            holder.type = self._settle(holder.type)

    def _check_defaults(self) -> None:
        memo: Memo = {}
        for holder in self._holders:
            if isinstance(holder, AvroField) and holder.has_default and not fits(holder.type, holder.default, memo):
                shown = f"{holder.name}: {_shown(holder.default)} not a {_cut(to_text(holder.type))}"
                raise InvalidSchema(f"Invalid default for field {shown} at {holder.where}")


def _check_union(union: Union) -> None:
    seen = set()
    for branch in union.branches:
        if isinstance(branch, Union):
            raise InvalidSchema(f"Nested union at {union.where or '/'}")
        name = full_name(branch)
        if name in seen:
            raise InvalidSchema(f"Duplicate in union: {name} at {union.where or '/'}")
        seen.add(name)


def _part(tree: dict[str, Json], key: str, complaint: str, where: str) -> Json:
    if key not in tree:
        raise InvalidSchema(f"{complaint}: {_shown(tree)} at {where or '/'}")
    return tree[key]


def _props(tree: dict[str, Json], reserved: frozenset[str]) -> dict[str, Json]:
    return {key: value for key, value in tree.items() if key not in reserved}


def _text(tree: dict[str, Json], key: str) -> str | None:
    value = tree.get(key)
    return value if isinstance(value, str) else None


def _aliases(tree: dict[str, Json], where: str) -> tuple[str, ...]:
    aliases = tree.get("aliases", [])
    if not isinstance(aliases, list):
        raise InvalidSchema(f"aliases not an array: {_shown(aliases)} at {where or '/'}")
    for alias in aliases:
        if not isinstance(alias, str):
            raise InvalidSchema(f"alias not a string: {_shown(alias)} at {where or '/'}")
    return tuple(dict.fromkeys(aliases))


def _float(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidSchema(f"Invalid default: {_shown(text)} is no number at {where}") from None


def _shown(tree: Json) -> str:
    return _cut(write(tree))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}…"
