"""Check the columns of a DataFrame that is written, with the error messages of Spark's Kafka sink.

The columns are `value` (string or binary) and, optionally, `key` (of the same types), `headers`, `topic` and
`partition`. Other columns are ignored, as by Spark's own sink.
"""

from __future__ import annotations

from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, StringType, StructField, StructType

_HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
_TYPES: dict[str, tuple[DataType, ...]] = {
    "topic": (StringType(),),
    "key": (StringType(), BinaryType()),
    "value": (StringType(), BinaryType()),
    "headers": (_HEADERS,),
    "partition": (IntegerType(),),
}


class BadRows(ValueError):
    """The DataFrame cannot be written as it is."""


def check_columns(schema: StructType, topic: str | None) -> None:
    """Raise BadRows unless rows of this schema can be written (after typed columns were encoded)."""
    types = {field.name: field.dataType for field in schema.fields}
    if topic is None and "topic" not in types:
        raise BadRows(
            "topic option required when no 'topic' attribute is present. Use the topic option for setting a topic."
        )
    if "value" not in types:
        raise BadRows("Required attribute 'value' not found")
    for name, allowed in _TYPES.items():
        found = types.get(name)
        if found is not None and not any(_is_like(found, each) for each in allowed):
            wanted = " or ".join(each.simpleString() for each in allowed)
            raise BadRows(f"{name} attribute unsupported type {found.simpleString()}. {name} must be a(n) {wanted}")


def _is_like(found: DataType, wanted: DataType) -> bool:
    """Whether the types are equal, apart from nullability."""
    return found.simpleString() == wanted.simpleString()
