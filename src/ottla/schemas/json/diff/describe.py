"""Descriptions of differences between two JSON schemas, in the words of Confluent's registry; `%s`
are the two sides.
"""

from __future__ import annotations

from ottla.schemas.json.diff.context import JsonDifference

_KEYWORD = "The keyword at path '{path}' in the %s schema is not present in the %s schema"
_MORE = "The value at path '{path}' in the %s schema is more than its value in the %s schema"
_LESS = "The value at path '{path}' in the %s schema is less than its value in the %s schema"
_OTHER = "The value at path '{path}' is different between the %s and %s schema"
_FEWER = "An array or combined type at path '{path}' has fewer elements in the %s schema than the %s schema"
_LONGER = "An array or combined type at path '{path}' has more elements in the %s schema than the %s schema"
_TYPE = "A type at path '{path}' is different between the %s schema and the %s schema"
_OPEN = (
    "The %s schema has an open content model and has a property or item at path '{path}' which is missing in the %s"
    " schema"
)
_REQUIRED = (
    "The %s schema has an unopen content model and has a required property at path '{path}' which is missing in the %s"
    " schema"
)
_CLOSED = (
    "The %s has a closed content model and is missing a property or item present at path '{path}' in the %s schema"
)
_REMOVED_UNCOVERED = (
    "A property or item is missing in the %s schema but present at path '{path}' in the %s schema and is not covered by"
    " its partially open content model"
)
_ADDED_UNCOVERED = (
    "The %s schema has a property or item at path '{path}' which is missing in the %s schema and is not covered by its"
    " partially open content model"
)

_TEMPLATES = {
    _KEYWORD: """MAXIMUM_ADDED MINIMUM_ADDED EXCLUSIVE_MAXIMUM_ADDED EXCLUSIVE_MINIMUM_ADDED MULTIPLE_OF_ADDED
        MAX_LENGTH_ADDED MIN_LENGTH_ADDED PATTERN_ADDED REQUIRED_ATTRIBUTE_ADDED MAX_PROPERTIES_ADDED
        MIN_PROPERTIES_ADDED DEPENDENCY_ARRAY_ADDED DEPENDENCY_SCHEMA_ADDED MAX_ITEMS_ADDED MIN_ITEMS_ADDED
        MAX_CONTAINS_ADDED MIN_CONTAINS_ADDED UNIQUE_ITEMS_ADDED ADDITIONAL_ITEMS_REMOVED
        ADDITIONAL_PROPERTIES_REMOVED UNEVALUATED_PROPERTIES_REMOVED UNEVALUATED_ITEMS_REMOVED""",
    _MORE: """MIN_LENGTH_INCREASED MINIMUM_INCREASED EXCLUSIVE_MINIMUM_INCREASED MIN_PROPERTIES_INCREASED
        MULTIPLE_OF_EXPANDED MIN_ITEMS_INCREASED MIN_CONTAINS_INCREASED""",
    _LESS: """MAX_LENGTH_DECREASED MAXIMUM_DECREASED MAX_ITEMS_DECREASED MAX_CONTAINS_DECREASED
        EXCLUSIVE_MAXIMUM_DECREASED MAX_PROPERTIES_DECREASED""",
    _OTHER: "PATTERN_CHANGED MULTIPLE_OF_CHANGED DEPENDENCY_ARRAY_CHANGED",
    _FEWER: """ADDITIONAL_ITEMS_NARROWED ENUM_ARRAY_NARROWED SUM_TYPE_NARROWED ADDITIONAL_PROPERTIES_NARROWED
        UNEVALUATED_PROPERTIES_NARROWED UNEVALUATED_ITEMS_NARROWED""",
    _LONGER: "DEPENDENCY_ARRAY_EXTENDED PRODUCT_TYPE_EXTENDED SUM_TYPE_EXTENDED NOT_TYPE_EXTENDED",
    _TYPE: """TYPE_CHANGED TYPE_NARROWED COMBINED_TYPE_CHANGED COMBINED_TYPE_SUBSCHEMAS_CHANGED
        ENUM_ARRAY_CHANGED""",
    _OPEN: """REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL
        OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL ITEM_ADDED_TO_OPEN_CONTENT_MODEL""",
    _REQUIRED: "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
    _CLOSED: "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    _REMOVED_UNCOVERED: """PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
        ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL""",
    _ADDED_UNCOVERED: """PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
        ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL""",
}
DESCRIPTIONS = {kind: template for template, kinds in _TEMPLATES.items() for kind in kinds.split()}


def described(found: JsonDifference) -> str:
    """Return Confluent's text, with its unbalanced quotes; SCHEMA_ADDED has no description there."""
    description = DESCRIPTIONS.get(found.kind, "").replace("{path}", found.path)
    return f'{{errorType:"{found.kind}", description:"{description}\'}}'
