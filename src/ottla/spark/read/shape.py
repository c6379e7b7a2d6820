"""The shape of rows: their Spark schema according to the options, and the decoder of typed columns.

Rules:
- Without typed columns it is the schema of Spark's Kafka connector, or the chosen columns of it; but columns that are
  never null are declared so, which saves Spark a check of each cell.
- The driver asks the registry for the schemas of typed columns; executors get the result.
"""

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.spark.options import KEY_FORMAT, VALUE_FORMAT
from ottla.spark.read.settings import ReadSettings

if TYPE_CHECKING:
    from ottla.spark.typed.reading import TypedColumns

_TYPES: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())])),
}
NULLABLE = ("key", "value", "headers")


class RowShape(NamedTuple):
    """The schema of rows, and the decoder of typed columns (None if nothing is decoded)."""

    schema: StructType
    typed: "TypedColumns | None" = None


def shape_of(settings: ReadSettings) -> RowShape:
    """The shape for these settings; asks the registry if the options have typed columns."""
    raw = StructType([StructField(name, _TYPES[name], name in NULLABLE) for name in settings.columns])
    formats = (settings.options[KEY_FORMAT], settings.options[VALUE_FORMAT])
    if formats == ("raw", "raw"):
        return RowShape(raw)
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    from ottla.spark.typed.reading import typed_columns

    topics = settings.chosen.topics or tuple(dict.fromkeys(each.topic for each in settings.chosen.partitions))
    typed = typed_columns(settings.raw, topics)
    assert typed is not None
    return RowShape(from_arrow_schema(typed.schema(to_arrow_schema(raw, timezone="UTC"))), typed)
