"""What Confluent's registry sees between two JSON schemas: original, update, and the differences, harmless ones too."""

from __future__ import annotations

from typing import Any

Json = Any
Case = tuple[Json, Json, list[str]]

TEXT: Json = {"type": "string"}
WHOLE: Json = {"type": "integer"}
NUMBER: Json = {"type": "number"}


def closed(**properties: Json) -> Json:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def opened(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


def partly(schema: Json, **properties: Json) -> Json:
    return {"type": "object", "additionalProperties": schema, "properties": properties}


def tuples(*items: Json, **more: Json) -> Json:
    return {"type": "array", "items": list(items), **more}


def limit(kind: str, keyword: str, name: str) -> list[Case]:
    """A keyword that sets a limit: absent, 5, 6."""
    none, low, high = {"type": kind}, {"type": kind, keyword: 5}, {"type": kind, keyword: 6}
    return [
        (none, low, [f"{name}_ADDED #/{keyword}"]),
        (low, none, [f"{name}_REMOVED #/{keyword}"]),
        (low, high, [f"{name}_INCREASED #/{keyword}"]),
        (high, low, [f"{name}_DECREASED #/{keyword}"]),
        (low, {"type": kind, keyword: 5.0}, []),
    ]


LIMITS: list[Case] = [
    *limit("string", "maxLength", "MAX_LENGTH"),
    *limit("string", "minLength", "MIN_LENGTH"),
    *limit("number", "maximum", "MAXIMUM"),
    *limit("integer", "minimum", "MINIMUM"),
    *limit("number", "exclusiveMaximum", "EXCLUSIVE_MAXIMUM"),
    *limit("number", "exclusiveMinimum", "EXCLUSIVE_MINIMUM"),
    *limit("object", "maxProperties", "MAX_PROPERTIES"),
    *limit("object", "minProperties", "MIN_PROPERTIES"),
    *limit("array", "maxItems", "MAX_ITEMS"),
    *limit("array", "minItems", "MIN_ITEMS"),
]

ANY_SCHEMA: list[Case] = [
    ({}, {}, []),
    (True, True, []),
    (TEXT, {}, []),
    (TEXT, True, []),
    (False, TEXT, []),
    ({}, TEXT, ["TYPE_CHANGED #/"]),
    (TEXT, False, ["TYPE_CHANGED #/"]),
    (TEXT, WHOLE, ["TYPE_CHANGED #/"]),
    (WHOLE, NUMBER, ["TYPE_EXTENDED #/"]),
    (NUMBER, WHOLE, ["TYPE_NARROWED #/"]),
    ({**TEXT, "connect.type": "bytes"}, {**NUMBER, "connect.type": "bytes"}, []),
    (
        TEXT,
        {"$id": "http://a/b", "title": "t", "description": "d", "default": "x", **TEXT},
        ["ID_CHANGED #/", "TITLE_CHANGED #/", "DESCRIPTION_CHANGED #/", "DEFAULT_CHANGED #/"],
    ),
    ({"type": "null"}, {"type": "boolean"}, ["TYPE_CHANGED #/"]),
    ({"if": TEXT, "then": {"minLength": 1}}, {"if": TEXT, "then": {"minLength": 9}}, []),
]

VALUES: list[Case] = [
    ({"enum": ["a", "b"]}, {"enum": ["b", "a"]}, []),
    ({"enum": ["a"]}, {"enum": ["a", "b"]}, ["ENUM_ARRAY_EXTENDED #/enum"]),
    ({"enum": ["a", "b"]}, {"enum": ["a"]}, ["ENUM_ARRAY_NARROWED #/enum"]),
    ({"enum": ["a", "b"]}, {"enum": ["a", "c"]}, ["ENUM_ARRAY_CHANGED #/enum"]),
    ({"enum": [{"x": 1, "y": 2}]}, {"enum": [{"y": 2, "x": 1}]}, []),
    ({"const": 1}, {"const": 2}, ["ENUM_ARRAY_CHANGED #/const"]),
    ({**TEXT, "pattern": "a"}, {**TEXT, "pattern": "b"}, ["PATTERN_CHANGED #/pattern"]),
    (TEXT, {**TEXT, "pattern": "b"}, ["PATTERN_ADDED #/pattern"]),
    ({**TEXT, "pattern": "a"}, TEXT, ["PATTERN_REMOVED #/pattern"]),
    ({**NUMBER, "multipleOf": 5}, {**NUMBER, "multipleOf": 10}, ["MULTIPLE_OF_EXPANDED #/multipleOf"]),
    ({**NUMBER, "multipleOf": 10}, {**NUMBER, "multipleOf": 5}, ["MULTIPLE_OF_REDUCED #/multipleOf"]),
    ({**NUMBER, "multipleOf": 0.3}, {**NUMBER, "multipleOf": 0.1}, ["MULTIPLE_OF_REDUCED #/multipleOf"]),
    ({**NUMBER, "multipleOf": 2}, {**NUMBER, "multipleOf": 3}, ["MULTIPLE_OF_CHANGED #/multipleOf"]),
    (NUMBER, {**NUMBER, "multipleOf": 3}, ["MULTIPLE_OF_ADDED #/multipleOf"]),
    ({**NUMBER, "multipleOf": 3}, NUMBER, ["MULTIPLE_OF_REMOVED #/multipleOf"]),
]

OBJECTS: list[Case] = [
    # an open content model
    (opened(), opened(a=TEXT), ["OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"]),
    (
        opened(),
        {**opened(a=TEXT), "required": ["a"]},
        ["REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"],
    ),
    (
        opened(),
        {**opened(a={**TEXT, "default": "x"}), "required": ["a"]},
        ["REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"],
    ),
    (opened(), opened(a={}), ["PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"]),
    (opened(a=TEXT), opened(), ["PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL #/properties/a"]),
    # a closed one
    (closed(), closed(a=TEXT), ["OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a"]),
    (
        closed(),
        {**closed(a=TEXT), "required": ["a"]},
        ["REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a"],
    ),
    (
        closed(),
        {**closed(a={**TEXT, "default": ""}), "required": ["a"]},
        ["REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a"],
    ),
    (closed(a=TEXT), closed(), ["PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/a"]),
    (closed(a=False), closed(), ["PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/a"]),
    # a partially open one
    (
        partly(TEXT),
        partly(TEXT, a=TEXT),
        [
            "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a",
            "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
        ],
    ),
    (
        partly(TEXT),
        partly(TEXT, a=WHOLE),
        [
            "TYPE_CHANGED #/properties/a",
            "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a",
            "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
        ],
    ),
    (
        partly(NUMBER, a=WHOLE),
        partly(NUMBER),
        [
            "TYPE_EXTENDED #/properties/a",
            "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a",
        ],
    ),
    (
        partly(WHOLE, a=NUMBER),
        partly(WHOLE),
        [
            "TYPE_NARROWED #/properties/a",
            "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a",
        ],
    ),
    (
        {**opened(ab=TEXT), "patternProperties": {"^a": TEXT}},
        {"type": "object", "patternProperties": {"^a": TEXT}},
        ["PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/ab"],
    ),
    (
        {**opened(xa=TEXT), "patternProperties": {"^a": TEXT}},
        {"type": "object", "patternProperties": {"^a": TEXT}},
        ["PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/xa"],
    ),
    # other properties
    (closed(), opened(), ["ADDITIONAL_PROPERTIES_ADDED #/additionalProperties"]),
    (opened(), closed(), ["ADDITIONAL_PROPERTIES_REMOVED #/additionalProperties"]),
    (opened(), partly(TEXT), ["ADDITIONAL_PROPERTIES_NARROWED #/additionalProperties"]),
    (partly(TEXT), opened(), ["ADDITIONAL_PROPERTIES_EXTENDED #/additionalProperties"]),
    (partly(TEXT), partly(WHOLE), ["TYPE_CHANGED #/additionalProperties"]),
    # inside, and required
    (opened(a=TEXT), opened(a=WHOLE), ["TYPE_CHANGED #/properties/a"]),
    (opened(a=opened(b=WHOLE)), opened(a=opened(b=NUMBER)), ["TYPE_EXTENDED #/properties/a/properties/b"]),
    (opened(a=TEXT), {**opened(a=TEXT), "required": ["a"]}, ["REQUIRED_ATTRIBUTE_ADDED #/required/a"]),
    ({**opened(a=TEXT), "required": ["a"]}, opened(a=TEXT), ["REQUIRED_ATTRIBUTE_REMOVED #/required/a"]),
    (
        opened(a=TEXT),
        {**opened(a={**TEXT, "default": "x"}), "required": ["a"]},
        ["REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED #/required/a", "DEFAULT_CHANGED #/properties/a"],
    ),
    # dependencies
    ({"dependencies": {"a": ["b"]}}, {"dependencies": {"a": ["b"]}}, []),
    (opened(), {**opened(), "dependencies": {"a": ["b"]}}, ["DEPENDENCY_ARRAY_ADDED #/dependencies/a"]),
    ({**opened(), "dependencies": {"a": ["b"]}}, opened(), ["DEPENDENCY_ARRAY_REMOVED #/dependencies/a"]),
    (
        {"dependencies": {"a": ["b"]}},
        {"dependencies": {"a": ["b", "c"]}},
        ["DEPENDENCY_ARRAY_EXTENDED #/dependencies/a"],
    ),
    (
        {"dependencies": {"a": ["b", "c"]}},
        {"dependencies": {"a": ["b"]}},
        ["DEPENDENCY_ARRAY_NARROWED #/dependencies/a"],
    ),
    ({"dependencies": {"a": ["b"]}}, {"dependencies": {"a": ["c"]}}, ["DEPENDENCY_ARRAY_CHANGED #/dependencies/a"]),
    (opened(), {**opened(), "dependencies": {"a": TEXT}}, ["DEPENDENCY_SCHEMA_ADDED #/dependencies/a"]),
    ({**opened(), "dependencies": {"a": TEXT}}, opened(), ["DEPENDENCY_SCHEMA_REMOVED #/dependencies/a"]),
    ({"dependencies": {"a": TEXT}}, {"dependencies": {"a": WHOLE}}, ["TYPE_CHANGED #/dependencies/a"]),
]

ARRAYS: list[Case] = [
    ({"type": "array", "items": WHOLE}, {"type": "array", "items": NUMBER}, ["TYPE_EXTENDED #/items"]),
    ({"type": "array"}, {"type": "array", "items": TEXT}, ["SCHEMA_ADDED #/items"]),
    ({"type": "array", "items": TEXT}, {"type": "array"}, ["SCHEMA_REMOVED #/items"]),
    ({"type": "array"}, {"type": "array", "uniqueItems": True}, ["UNIQUE_ITEMS_ADDED #/uniqueItems"]),
    ({"type": "array", "uniqueItems": True}, {"type": "array"}, ["UNIQUE_ITEMS_REMOVED #/uniqueItems"]),
    (tuples(TEXT, WHOLE), tuples(TEXT, TEXT), ["TYPE_CHANGED #/items/1"]),
    (tuples(TEXT), tuples(TEXT, WHOLE), ["ITEM_ADDED_TO_OPEN_CONTENT_MODEL #/items/1"]),
    (tuples(TEXT), tuples(TEXT, {}), ["ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL #/items/1"]),
    (tuples(TEXT, WHOLE), tuples(TEXT), ["ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL #/items/1"]),
    (
        tuples(TEXT, additionalItems=False),
        tuples(TEXT, WHOLE, additionalItems=False),
        ["ITEM_ADDED_TO_CLOSED_CONTENT_MODEL #/items/1"],
    ),
    (
        tuples(TEXT, WHOLE, additionalItems=False),
        tuples(TEXT, additionalItems=False),
        ["ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL #/items/1"],
    ),
    (
        tuples(TEXT, False, additionalItems=False),
        tuples(TEXT, additionalItems=False),
        ["ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL #/items/1"],
    ),
    (
        tuples(TEXT, additionalItems=WHOLE),
        tuples(TEXT, WHOLE, additionalItems=WHOLE),
        ["ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1"],
    ),
    (
        tuples(TEXT, additionalItems=WHOLE),
        tuples(TEXT, TEXT, additionalItems=WHOLE),
        ["TYPE_CHANGED #/items/1", "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1"],
    ),
    (
        tuples(TEXT, WHOLE, additionalItems=WHOLE),
        tuples(TEXT, additionalItems=WHOLE),
        ["ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1"],
    ),
    (
        tuples(TEXT, TEXT, additionalItems=WHOLE),
        tuples(TEXT, additionalItems=WHOLE),
        ["TYPE_CHANGED #/items/1", "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1"],
    ),
    (tuples(TEXT), tuples(TEXT, additionalItems=False), ["ADDITIONAL_ITEMS_REMOVED #/additionalItems"]),
    (tuples(TEXT, additionalItems=False), tuples(TEXT), ["ADDITIONAL_ITEMS_ADDED #/additionalItems"]),
    (tuples(TEXT), tuples(TEXT, additionalItems=TEXT), ["ADDITIONAL_ITEMS_NARROWED #/additionalItems"]),
    (tuples(TEXT, additionalItems=TEXT), tuples(TEXT), ["ADDITIONAL_ITEMS_EXTENDED #/additionalItems"]),
]

COMBINED: list[Case] = [
    ({"anyOf": [TEXT, WHOLE]}, {"anyOf": [WHOLE, TEXT]}, []),
    ({"oneOf": [TEXT]}, {"oneOf": [TEXT, WHOLE]}, ["SUM_TYPE_EXTENDED #/"]),
    ({"oneOf": [TEXT, WHOLE]}, {"oneOf": [TEXT]}, ["SUM_TYPE_NARROWED #/"]),
    ({"allOf": [TEXT]}, {"allOf": [TEXT, {"minLength": 1}]}, ["PRODUCT_TYPE_EXTENDED #/"]),
    ({"allOf": [TEXT, {"enum": ["a"]}]}, {"allOf": [TEXT]}, ["PRODUCT_TYPE_NARROWED #/"]),
    ({"anyOf": [TEXT, WHOLE]}, {"anyOf": [TEXT, {"type": "null"}]}, ["COMBINED_TYPE_SUBSCHEMAS_CHANGED #/"]),
    ({"anyOf": [WHOLE, TEXT]}, {"anyOf": [TEXT, NUMBER]}, ["TYPE_EXTENDED #/anyOf/0"]),
    # repeated parts count once
    ({"oneOf": [TEXT, TEXT]}, {"oneOf": [TEXT]}, []),
    # only a matching that moves others finds a partner for all
    (
        {"anyOf": [WHOLE, NUMBER]},
        {"anyOf": [NUMBER, {**NUMBER, "title": "n"}]},
        ["TYPE_EXTENDED #/anyOf/0", "TITLE_CHANGED #/anyOf/1"],
    ),
    # criteria
    ({"allOf": [TEXT, {"enum": ["a"]}]}, {"anyOf": [TEXT, {"enum": ["a"]}]}, ["COMBINED_TYPE_EXTENDED #/"]),
    ({"anyOf": [TEXT, WHOLE]}, {"oneOf": [TEXT, WHOLE]}, ["COMBINED_TYPE_CHANGED #/"]),
    ({"allOf": [TEXT]}, {"oneOf": [TEXT]}, ["COMBINED_TYPE_EXTENDED #/"]),
    # one becomes several, several become one
    (TEXT, {"oneOf": [WHOLE, TEXT]}, ["SUM_TYPE_EXTENDED #/"]),
    (TEXT, {"allOf": [TEXT]}, []),
    ({"oneOf": [TEXT]}, TEXT, []),
    ({"allOf": [TEXT, {"enum": ["a"]}]}, TEXT, ["PRODUCT_TYPE_NARROWED #/"]),
    ({"oneOf": [TEXT, WHOLE]}, TEXT, ["TYPE_CHANGED #/"]),
    (TEXT, {"allOf": [TEXT, WHOLE]}, ["TYPE_CHANGED #/"]),
    # several types
    (TEXT, {"type": ["string", "null"]}, ["SUM_TYPE_EXTENDED #/"]),
    ({"type": ["string", "null"]}, {"type": ["null", "string"]}, []),
    ({"type": ["string", "null"]}, TEXT, ["TYPE_CHANGED #/"]),
    # a type and more is an allOf
    ({**TEXT, "enum": ["a", "b"]}, {**TEXT, "enum": ["a"]}, ["COMBINED_TYPE_SUBSCHEMAS_CHANGED #/"]),
    ({**TEXT, "enum": ["a"]}, {**TEXT, "enum": ["a", "b"]}, ["ENUM_ARRAY_EXTENDED #/allOf/0/enum"]),
    # negations
    ({"not": WHOLE}, {"not": WHOLE}, ["NOT_TYPE_NARROWED #/not"]),
    ({"not": NUMBER}, {"not": WHOLE}, ["NOT_TYPE_NARROWED #/not"]),
    ({"not": WHOLE}, {"not": NUMBER}, ["NOT_TYPE_EXTENDED #/not"]),
]

MODERN: list[Case] = [
    (
        {"type": "array", "prefixItems": [TEXT], "items": False},
        {"type": "array", "prefixItems": [TEXT, WHOLE], "items": False},
        ["ITEM_ADDED_TO_CLOSED_CONTENT_MODEL #/items/1"],
    ),
    (
        {"type": "array", "prefixItems": [TEXT]},
        {"type": "array", "prefixItems": [TEXT], "items": WHOLE},
        ["ADDITIONAL_ITEMS_NARROWED #/additionalItems"],
    ),
    ({"type": "array", "items": WHOLE}, {"type": "array", "items": NUMBER}, ["TYPE_EXTENDED #/items"]),
    ({"type": "array"}, {"type": "array", "contains": TEXT}, ["MIN_CONTAINS_ADDED #/minContains"]),
    (
        {"type": "array", "contains": TEXT, "minContains": 2, "maxContains": 5},
        {"type": "array", "contains": TEXT, "minContains": 1, "maxContains": 4},
        ["MAX_CONTAINS_DECREASED #/maxContains", "MIN_CONTAINS_DECREASED #/minContains"],
    ),
    (
        opened(),
        {**opened(), "unevaluatedProperties": False},
        ["UNEVALUATED_PROPERTIES_REMOVED #/unevaluatedProperties"],
    ),
    (
        {**opened(), "unevaluatedProperties": False},
        opened(),
        ["UNEVALUATED_PROPERTIES_ADDED #/unevaluatedProperties"],
    ),
    (
        {**opened(), "unevaluatedProperties": False},
        {**opened(a=TEXT), "unevaluatedProperties": False},
        ["OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a"],
    ),
    (
        {**opened(), "unevaluatedProperties": TEXT},
        {**opened(a=TEXT), "unevaluatedProperties": WHOLE},
        [
            "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a",
            "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
            "TYPE_CHANGED #/unevaluatedProperties",
        ],
    ),
    (
        {"type": "array", "unevaluatedItems": True},
        {"type": "array", "unevaluatedItems": TEXT},
        ["UNEVALUATED_ITEMS_NARROWED #/unevaluatedItems"],
    ),
    (
        {"type": "array", "unevaluatedItems": TEXT},
        {"type": "array"},
        ["UNEVALUATED_ITEMS_EXTENDED #/unevaluatedItems"],
    ),
    (
        {"dependentRequired": {"a": ["b"]}},
        {"dependentRequired": {"a": ["b", "c"]}},
        ["DEPENDENCY_ARRAY_EXTENDED #/dependencies/a"],
    ),
    ({"dependentSchemas": {"a": TEXT}}, {"dependentSchemas": {"a": WHOLE}}, ["TYPE_CHANGED #/dependencies/a"]),
    # what stands beside a $ref counts
    (
        {"$ref": "#/$defs/T", "$defs": {"T": TEXT}},
        {"$ref": "#/$defs/T", "minLength": 1, "$defs": {"T": TEXT}},
        ["TYPE_CHANGED #/"],
    ),
]
