"""Descriptions of incompatibilities between two Avro schemas, in the words of Confluent's registry.

The two sides stand as `%s` in the text, the reader's first: the caller knows which is the old and which the new schema.
"""

from __future__ import annotations

from ottla.schemas.schema import Incompatibility

_DESCRIPTIONS = {
    "FIXED_SIZE_MISMATCH": (
        "The size of FIXED type field at path '{path}' in the %s schema does not match with the %s schema"
    ),
    "TYPE_MISMATCH": "The type (path '{path}') of a field in the %s schema does not match with the %s schema",
    "NAME_MISMATCH": "The name of the schema has changed (path '{path}')",
    "MISSING_ENUM_SYMBOLS": ("The %s schema is missing enum symbols '{message}' at path '{path}' in the %s schema"),
    "MISSING_UNION_BRANCH": ("The %s schema is missing a type inside a union field at path '{path}' in the %s schema"),
    "READER_FIELD_MISSING_DEFAULT_VALUE": (
        "The field '{message}' at path '{path}' in the %s schema has no default value and is missing in the %s schema"
    ),
}


def described(found: Incompatibility) -> Incompatibility:
    """Return the incompatibility with Confluent's text instead of Java's sentence."""
    if not found.kind:
        return found
    description = _DESCRIPTIONS[found.kind].format(path=found.path, message=found.message)
    text = f"{{errorType:'{found.kind}', description:'{description}', additionalInfo:'{found.message}'}}"
    return found._replace(message=text)
