"""The package by which Spark finds the data source: Spark imports top-level packages whose names begin with `pyspark_`
and registers their `DefaultSource`.
"""

from ottla.spark.source import OttlaSource as DefaultSource

__all__ = ["DefaultSource"]
