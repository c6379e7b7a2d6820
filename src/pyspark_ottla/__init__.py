"""Found by Spark itself: a top-level package whose name begins with `pyspark_`, and its `DefaultSource`."""

from ottla.spark.source import OttlaSource as DefaultSource

__all__ = ["DefaultSource"]
