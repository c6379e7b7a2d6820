"""The shape of a JSON schema's values, for code that needs one type for each: objects are structs, untyped values text.

Readers make columns of a shape (`columns.json`); contracts refuse values that they could not read (`readable_json`).

Rules:
- For readers all values may be null: `required` is for validators and writers, and an absent field is null.
- An object without properties is a map if its additional properties have a schema, else text.
- `format` date-time and date are times, `contentEncoding` base64 is bytes.
- Only types matter: other keywords (limits, patterns) are for validators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from ottla.model.limits import COLUMNS_MAX
from ottla.schemas import jackson
from ottla.schemas.json.dialects import dialect_of
from ottla.schemas.json.documents import Documents, LocatedSchema
from ottla.schemas.schema import InvalidSchema, SchemaSource, UnsupportedSchema


class ShapeKind(IntEnum):
    """The type of a value. ANY is a value of any type, kept as text: strings as they are, all others as JSON."""

    NOTHING = 0
    LONG = 1
    DOUBLE = 2
    BOOLEAN = 3
    STRING = 4
    MOMENT = 5
    DAY = 6
    BYTES = 7
    ANY = 8
    STRUCT = 9
    LIST = 10
    MAP = 11


@dataclass(frozen=True, slots=True)
class JsonShape:
    """A kind, with the fields of a STRUCT, or the item of a LIST or MAP. For writers: whether null is allowed, and
    which fields are required.
    """

    kind: ShapeKind
    fields: tuple[tuple[str, JsonShape], ...] = ()
    items: JsonShape | None = None
    nullable: bool = True
    required: tuple[str, ...] = ()

    @property
    def item(self) -> JsonShape:
        """The shape of a list's items or a map's values."""
        assert self.items is not None
        return self.items


_ANY = JsonShape(ShapeKind.ANY)
_PLAIN = {
    "integer": ShapeKind.LONG,
    "number": ShapeKind.DOUBLE,
    "boolean": ShapeKind.BOOLEAN,
    "null": ShapeKind.NOTHING,
}
_FORMATS = {"date-time": ShapeKind.MOMENT, "date": ShapeKind.DAY}
_LINKS_MAX = 100
# Keywords of a schema, each with the place that its references are relative to.
_Keywords = Mapping[str, tuple[Any, LocatedSchema]]


def shape_of(source: SchemaSource) -> JsonShape:
    """Return the shape of a schema's values. Raises InvalidSchema, UnsupportedSchema (recursive types, too many
    types).
    """
    tree = jackson.read(source.text, exact=True)
    documents = Documents(tree, dialect_of(tree).id_keyword, source.resolved)
    shapes = _Shapes(documents)
    root = LocatedSchema(documents.root, documents.base, documents.base.partition("#")[0])
    try:
        return shapes.shape(root)
    except (AttributeError, TypeError) as error:  # a keyword has a type that the drafts do not allow
        raise InvalidSchema(f"the schema makes no sense: {error}") from error


class _Shapes:
    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._open: list[int] = []
        self._count = 0

    def shape(self, place: LocatedSchema) -> JsonShape:
        self._count += 1
        if self._count > COLUMNS_MAX:
            raise UnsupportedSchema(f"the schema has more than {COLUMNS_MAX} columns")
        place = self._followed(place)
        if not isinstance(place.tree, dict):
            return _ANY
        if id(place.tree) in self._open:
            raise UnsupportedSchema("the schema is inside itself: recursive types have no columns")
        self._open.append(id(place.tree))
        try:
            return self._shape(self._keywords(place))
        finally:
            self._open.pop()

    def _followed(self, place: LocatedSchema) -> LocatedSchema:
        """Follow all `$ref`s and return the final target."""
        for _ in range(_LINKS_MAX):
            if not isinstance(place.tree, dict):
                return place
            place = place._replace(base=self._documents.base_of(place.tree, place.base))
            if "$ref" not in place.tree:
                return place
            _, place = self._documents.find(place, str(place.tree["$ref"]))
        raise UnsupportedSchema("the schema is inside itself: references lead to each other")

    def _keywords(self, place: LocatedSchema) -> _Keywords:
        """Merge the parts of an `allOf` into one schema: their types and properties; keywords outside of it come
        first.
        """
        own: _Keywords = {key: (each, place) for key, each in place.tree.items() if key != "allOf"}
        if "allOf" not in place.tree:
            return own
        parts = [own]
        for each in place.tree["allOf"]:
            part = self._followed(place._replace(tree=each))
            if isinstance(part.tree, dict):
                parts.append({key: (value, part) for key, value in part.tree.items()})
        merged: dict[str, tuple[Any, LocatedSchema]] = {}
        properties: dict[str, LocatedSchema] = {}
        required: dict[str, None] = {}
        for said in reversed(parts):
            merged.update(said)
            properties.update(_properties(said))
            required.update(dict.fromkeys(said["required"][0] if "required" in said else ()))
        if properties:
            merged.update(properties=(properties, place), required=(list(required), place))
        return merged

    def _shape(self, said: _Keywords) -> JsonShape:
        def get(name: str, default: Any = None) -> Any:
            return said[name][0] if name in said else default

        for choice in ("oneOf", "anyOf"):
            if choice in said:
                some = [each for each in get(choice) if each != {"type": "null"}]
                if len(some) != 1:
                    return _ANY
                found = self.shape(said[choice][1]._replace(tree=some[0]))
                return replace(found, nullable=found.nullable or len(some) < len(get(choice)))
        kinds = get("type")
        kinds = [kinds] if isinstance(kinds, str) else list(kinds or ())
        kind = _one_kind(kinds)
        if kind is None and not kinds and "properties" in said:
            kind = "object"
        if kind is None and not kinds and _are_texts(get("enum", [get("const")])):
            kind = "string"
        return replace(self._of_kind(kind, said, get), nullable=not kinds or "null" in kinds)

    def _of_kind(self, kind: str | None, said: _Keywords, get: Callable[..., Any]) -> JsonShape:
        def below(name: str) -> JsonShape:
            tree, place = said[name]
            return self.shape(place._replace(tree=tree))

        if kind == "object" and get("properties"):
            fields = tuple((name, self.shape(place)) for name, place in _properties(said).items())
            return JsonShape(ShapeKind.STRUCT, fields, required=tuple(map(str, get("required", ()))))
        if kind == "object" and isinstance(get("additionalProperties"), dict):
            return JsonShape(ShapeKind.MAP, items=below("additionalProperties"))
        if kind == "array":
            return JsonShape(ShapeKind.LIST, items=below("items") if isinstance(get("items"), dict) else _ANY)
        if kind == "string":
            is_bytes = get("contentEncoding") == "base64"
            return JsonShape(ShapeKind.BYTES if is_bytes else _FORMATS.get(get("format", ""), ShapeKind.STRING))
        return JsonShape(_PLAIN[kind]) if kind in _PLAIN else _ANY


def _properties(said: _Keywords) -> dict[str, LocatedSchema]:
    if "properties" not in said:
        return {}
    found, place = said["properties"]
    # Keywords of an `allOf` have places of their own already.
    return {
        name: each if isinstance(each, LocatedSchema) else place._replace(tree=each) for name, each in found.items()
    }


def _one_kind(kinds: list[str]) -> str | None:
    some = [kind for kind in kinds if kind != "null"] or kinds
    if set(some) == {"integer", "number"}:
        return "number"
    return some[0] if len(some) == 1 else None


def _are_texts(values: Any) -> bool:
    return bool(values) and all(isinstance(value, str) for value in values)
