"""The drafts of JSON Schema and their differences that matter for parsing."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.schemas.jackson import Json
from ottla.schemas.schema import InvalidSchema

_OBJECT = ["properties", "required", "minProperties", "maxProperties", "patternProperties", "additionalProperties"]
_ARRAY = ["items", "minItems", "maxItems", "uniqueItems"]
NUMBER_KEYWORDS = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """A draft. `modern` drafts allow `$ref` beside other keywords, and have prefixItems,
    unevaluated… and dependent….
    """

    name: str
    id_keyword: str
    object_keywords: tuple[str, ...]
    array_keywords: tuple[str, ...]
    text_keywords: tuple[str, ...]
    modern: bool = False
    has_const: bool = True
    has_conditions: bool = False
    exclusive_is_flag: bool = False


_LEGACY_TEXT = ("minLength", "maxLength", "pattern", "format")
_DRAFT_6_OBJECT = (*_OBJECT, "dependencies", "propertyNames")
_DRAFT_6_ARRAY = (*_ARRAY, "additionalItems", "contains")

DRAFT_4 = Dialect(
    "draft-04",
    "id",
    (*_OBJECT, "dependencies"),
    (*_ARRAY, "additionalItems"),
    _LEGACY_TEXT,
    has_const=False,
    exclusive_is_flag=True,
)
DRAFT_6 = Dialect("draft-06", "$id", _DRAFT_6_OBJECT, _DRAFT_6_ARRAY, _LEGACY_TEXT)
DRAFT_7 = Dialect("draft-07", "$id", _DRAFT_6_OBJECT, _DRAFT_6_ARRAY, _LEGACY_TEXT, has_conditions=True)
_MODERN_OBJECT = (*_OBJECT, "propertyNames", "dependentRequired", "dependentSchemas", "unevaluatedProperties")
_MODERN_ARRAY = (*_ARRAY, "additionalItems", "prefixItems", "contains", "unevaluatedItems")
DRAFT_2019_09 = Dialect(
    "2019-09", "$id", _MODERN_OBJECT, _MODERN_ARRAY, _LEGACY_TEXT[:-1], modern=True, has_conditions=True
)
DRAFT_2020_12 = Dialect(
    "2020-12", "$id", _MODERN_OBJECT, _MODERN_ARRAY, _LEGACY_TEXT[:-1], modern=True, has_conditions=True
)

_BY_PATH = {
    "draft-04/schema": DRAFT_4,
    "schema": DRAFT_4,
    "draft-06/schema": DRAFT_6,
    "draft-07/schema": DRAFT_7,
    "draft/2019-09/schema": DRAFT_2019_09,
    "draft/2020-12/schema": DRAFT_2020_12,
}


def dialect_of(tree: Json) -> Dialect:
    """Return the draft that the schema names, if it is known; else draft 7."""
    if not isinstance(tree, dict) or "$schema" not in tree:
        return DRAFT_7
    name = tree["$schema"]
    if not isinstance(name, str):
        raise InvalidSchema("$schema is not a string")
    for prefix in ("http://json-schema.org/", "https://json-schema.org/"):
        if name.startswith(prefix):
            return _BY_PATH.get(name.removeprefix(prefix).removesuffix("#"), DRAFT_7)
    return DRAFT_7
