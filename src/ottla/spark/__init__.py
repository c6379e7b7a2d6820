"""Spark and the log as one system: the data source `ottla`, and the vocabulary of stream processing on DataFrames.

Importing it makes the source known to the active session. Sessions that begin later find it by themselves.
"""

from ottla.spark.register import register

__all__ = ["register"]

register()
