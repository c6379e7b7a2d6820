"""Keep Spark's own output away from the terminal, so that the one line that says what is wrong can be seen."""

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator

# PySpark writes every exception that has a place in a query to standard error, as JSON with Java's whole stack, before
# it can be caught.
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
_STDERR = 2


def mute() -> None:
    """Mute PySpark's loggers of exceptions and its warnings, in this process, from now on."""
    from pyspark.logger import PySparkLogger

    warnings.filterwarnings("ignore", module=r"pyspark\.")

    for name in _LOGGERS:
        PySparkLogger.getLogger(name).disabled = True


@contextlib.contextmanager
def children_unheard() -> Iterator[None]:
    """Give processes that are started in this context no standard error: a JVM, which prints while it starts, and its
    workers.
    """
    sys.stderr.flush()
    kept = os.dup(_STDERR)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), _STDERR)
        yield
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)
