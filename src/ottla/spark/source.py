"""The data source `ottla`: what Spark knows of it.

Rules:
- Options are checked when the DataFrame is made, before anything runs.
- The schema is that of Spark's Kafka connector, or the chosen columns of it.
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
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

from ottla.spark.options import OptionError
from ottla.spark.read_settings import ReadSettings, parse_read

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )

_HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
_TYPES: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": _HEADERS,
}


class OttlaSource(DataSource):
    """`format("ottla")`."""

    @classmethod
    def name(cls) -> str:
        return "ottla"

    def schema(self) -> StructType:
        return _schema(parse_read(self.options, streaming=None))

    def reader(self, schema: StructType) -> "DataSourceReader":
        from ottla.spark.reader import OttlaReader

        settings = parse_read(self.options, streaming=False)
        _check_schema(settings, schema)
        return OttlaReader(settings)

    def streamReader(self, schema: StructType) -> "DataSourceStreamReader":
        from ottla.spark.stream_reader import OttlaStreamReader

        settings = parse_read(self.options, streaming=True)
        _check_schema(settings, schema)
        return OttlaStreamReader(settings)

    def writer(self, schema: StructType, overwrite: bool) -> "DataSourceWriter":
        from ottla.spark.writer import BatchWriter

        return BatchWriter(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> "DataSourceStreamWriter":
        from ottla.spark.writer import StreamWriter

        return StreamWriter(self.options, schema)


def _schema(settings: ReadSettings) -> StructType:
    return StructType([StructField(name, _TYPES[name]) for name in settings.columns])


def _check_schema(settings: ReadSettings, schema: StructType) -> None:
    own = _schema(settings)
    if schema != own:
        raise OptionError(f"the source ottla has a fixed schema: {own.simpleString()}, not {schema.simpleString()}")
