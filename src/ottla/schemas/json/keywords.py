"""The keywords of each type of value: their syntax, and the node that they make."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from ottla.schemas.jackson import Json
from ottla.schemas.json.dialects import Dialect
from ottla.schemas.json.nodes import Always, Amount, ArrayNode, JsonNode, Never, NumberNode, ObjectNode, TextNode
from ottla.schemas.schema import InvalidSchema


class KeywordPart:
    """One JSON object of a schema, read keyword by keyword; a keyword of the wrong form is refused with its place."""

    def __init__(self, tree: dict[str, Json], where: str, load: Callable[[Json, str], JsonNode]) -> None:
        self.tree = tree
        self.where = where
        self._load = load

    def schema(self, key: str) -> JsonNode:
        return self._load(self.tree[key], f"{self.where}/{key}")

    def optional_schema(self, key: str) -> JsonNode | None:
        return self.schema(key) if key in self.tree else None

    def schemas(self, key: str) -> list[JsonNode]:
        return [self._load(child, f"{self.where}/{key}/{index}") for index, child in enumerate(self.array(key))]

    def schemas_by_name(self, key: str) -> dict[str, JsonNode]:
        return {name: self.under(key, name) for name in self.table(key)}

    def under(self, key: str, name: str) -> JsonNode:
        return self._load(self.tree[key][name], f"{self.where}/{key}/{name}")

    def table(self, key: str) -> dict[str, Json]:
        value = self.tree.get(key, {})
        if not isinstance(value, dict):
            raise self.wrong(key, "an object")
        return value

    def array(self, key: str) -> list[Json]:
        value = self.tree.get(key, [])
        if not isinstance(value, list):
            raise self.wrong(key, "an array")
        return value

    def text(self, key: str) -> str:
        value = self.tree.get(key)
        if not isinstance(value, str):
            raise self.wrong(key, "a string")
        return value

    def optional_text(self, key: str) -> str | None:
        return self.text(key) if key in self.tree else None

    def texts(self, key: str) -> list[str]:
        values = self.array(key)
        if not all(isinstance(value, str) for value in values):
            raise self.wrong(key, "an array of strings")
        return values

    def whole(self, key: str) -> int | None:
        value = self.amount(key)
        if value is not None and value != int(value):
            raise self.wrong(key, "an integer")
        return None if value is None else int(value)

    def amount(self, key: str) -> Amount | None:
        value = self.tree.get(key)
        if key in self.tree and (isinstance(value, bool) or not isinstance(value, int | Decimal)):
            raise self.wrong(key, "a number")
        return value

    def flag(self, key: str) -> bool | None:
        value = self.tree.get(key)
        if key in self.tree and not isinstance(value, bool):
            raise self.wrong(key, "a boolean")
        return value

    def wrong(self, key: str, wanted: str) -> InvalidSchema:
        return InvalidSchema(f"{key} is not {wanted} at {self.where}")


def text(part: KeywordPart, _: Dialect) -> TextNode:
    return TextNode(
        min_length=part.whole("minLength"), max_length=part.whole("maxLength"), pattern=part.optional_text("pattern")
    )


def number(part: KeywordPart, dialect: Dialect) -> NumberNode:
    made = NumberNode(
        minimum=part.amount("minimum"), maximum=part.amount("maximum"), multiple_of=part.amount("multipleOf")
    )
    if made.multiple_of == 0:
        raise InvalidSchema(f"multipleOf should not be 0 at {part.where}")
    if dialect.exclusive_is_flag:
        part.flag("exclusiveMinimum")
        part.flag("exclusiveMaximum")
    else:
        made.exclusive_minimum = part.amount("exclusiveMinimum")
        made.exclusive_maximum = part.amount("exclusiveMaximum")
    return made


def record(part: KeywordPart, dialect: Dialect) -> ObjectNode:
    made = ObjectNode(
        properties={
            name: part.under("properties", name)
            for name, child in part.table("properties").items()
            if dialect.modern or name != dialect.id_keyword or isinstance(child, dict)
        },
        required=dict.fromkeys(part.texts("required")),
        patterns=part.schemas_by_name("patternProperties"),
        min_properties=part.whole("minProperties"),
        max_properties=part.whole("maxProperties"),
    )
    others = part.optional_schema("additionalProperties")
    made.open = not isinstance(others, Never)
    made.others = None if isinstance(others, Always | Never) else others
    part.optional_schema("propertyNames")
    if dialect.modern:
        made.unevaluated = part.optional_schema("unevaluatedProperties")
        made.schema_with = part.schemas_by_name("dependentSchemas")
        for name in part.table("dependentRequired"):
            _need(part, made, "dependentRequired", name)
    else:
        for name, child in part.table("dependencies").items():
            if isinstance(child, list):
                _need(part, made, "dependencies", name)
            else:
                made.schema_with[name] = part.under("dependencies", name)
    return made


def _need(part: KeywordPart, made: ObjectNode, key: str, name: str) -> None:
    names = part.table(key)[name]
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise InvalidSchema(f"not an array of strings at {part.where}/{key}/{name}")
    if names:
        made.needed_with[name] = frozenset(names)


def sequence(part: KeywordPart, dialect: Dialect) -> ArrayNode:
    made = ArrayNode(
        min_items=part.whole("minItems"), max_items=part.whole("maxItems"), unique=bool(part.flag("uniqueItems"))
    )
    by_place = isinstance(part.tree.get("items"), list)
    items = None if by_place else part.optional_schema("items")
    if by_place:
        made.items = part.schemas("items")
    if dialect.modern and "prefixItems" in part.tree:
        made.items = part.schemas("prefixItems")
    if dialect.modern and not by_place:
        # Here `items` is for the items after the prefix; without a prefix, for all.
        made.open = not isinstance(items, Never)
        if not isinstance(items, Always | Never):
            made.others, made.each = (items, None) if made.items else (None, items)
    else:
        made.each = items
        others = part.optional_schema("additionalItems")
        made.open = not isinstance(others, Never)
        made.others = None if isinstance(others, Always | Never) else others
    if dialect.modern:
        made.unevaluated = part.optional_schema("unevaluatedItems")
    _count_contained(part, made, dialect)
    return made


def _count_contained(part: KeywordPart, made: ArrayNode, dialect: Dialect) -> None:
    if "contains" in part.tree and "contains" in dialect.array_keywords:
        part.schema("contains")
        if dialect.modern:
            made.min_contains = 1
    for key in ("minContains", "maxContains"):
        value = part.tree.get(key)
        if isinstance(value, int | Decimal) and not isinstance(value, bool):
            if key == "minContains":
                made.min_contains = value
            else:
                made.max_contains = value
