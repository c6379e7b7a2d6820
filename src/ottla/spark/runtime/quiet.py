"""Spark's own words, kept from a terminal where one line says what is wrong."""

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator

# PySpark writes every exception that has a place in a query to standard error, as JSON with Java's whole stack, before
# anybody can catch it.
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
_STDERR = 2


def mute() -> None:
    """In this process, from now on: PySpark's loggers of exceptions, and its warnings."""
    from pyspark.logger import PySparkLogger

    warnings.filterwarnings("ignore", module=r"pyspark\.")

    for name in _LOGGERS:
        PySparkLogger.getLogger(name).disabled = True


@contextlib.contextmanager
def children_unheard() -> Iterator[None]:
    """Processes that are started here have no standard error: a JVM, which talks while it starts, and its workers."""
    sys.stderr.flush()
    kept = os.dup(_STDERR)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), _STDERR)
        yield
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)
