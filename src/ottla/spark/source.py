"""The data source `ottla`, as Spark's interface for data sources in Python.

Rules:
- Options are checked when the DataFrame is made, before anything runs.
- The schema is fixed by the options (`shape`); a schema from a user or a catalogue may only differ in nullability.
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from ottla.spark.option_values import OptionError
from ottla.spark.options import FILTER_PUSHDOWN
from ottla.spark.plain import told_plainly
from ottla.spark.profile_option import with_profile
from ottla.spark.read.settings import ReadSettings, parse_read
from ottla.spark.read.shape import RowShape, shape_of
from ottla.spark.runtime.worker_memory import settle

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )


class OttlaSource(DataSource):
    """`format("ottla")`."""

    @classmethod
    def name(cls) -> str:
        return "ottla"

    @told_plainly
    def schema(self) -> StructType:
        schema = shape_of(parse_read(with_profile(self.options), streaming=None)).schema
        settle()
        return schema

    @told_plainly
    def reader(self, schema: StructType) -> "DataSourceReader":
        from ottla.spark.read.reader import FilteringReader, OttlaReader

        settings = parse_read(with_profile(self.options), streaming=False)
        kind = FilteringReader if settings.options[FILTER_PUSHDOWN] else OttlaReader
        return kind(settings, _checked(settings, schema))

    @told_plainly
    def streamReader(self, schema: StructType) -> "DataSourceStreamReader":
        from ottla.spark.read.stream_reader import OttlaStreamReader

        settings = parse_read(with_profile(self.options), streaming=True)
        return OttlaStreamReader(settings, _checked(settings, schema))

    @told_plainly
    def writer(self, schema: StructType, overwrite: bool) -> "DataSourceWriter":
        from ottla.spark.writer import BatchWriter

        return BatchWriter(with_profile(self.options), schema, overwrite=overwrite)

    @told_plainly
    def streamWriter(self, schema: StructType, overwrite: bool) -> "DataSourceStreamWriter":
        from ottla.spark.writer import StreamWriter

        return StreamWriter(with_profile(self.options), schema)


def _checked(settings: ReadSettings, schema: StructType) -> RowShape:
    shape = shape_of(settings)
    if schema == shape.schema:
        return shape
    if schema._as_nullable() != shape.schema._as_nullable():
        own, given = shape.schema.simpleString(), schema.simpleString()
        raise OptionError(f"the source ottla has a fixed schema: {own}, not {given}")
    return shape._replace(schema=schema)  # a catalogue declares all columns as nullable
