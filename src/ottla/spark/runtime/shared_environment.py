"""The environment of Python workers that all streams of a session share, filled in before the first of them starts.

Spark keeps one map of environment variables for a data source that is written in Python, and every stream that starts
puts the same few variables into it, each stream in a thread of its own. If two threads insert the same new variable at
once, the map counts it twice and cannot be serialized from then on: every query of the session that reads or writes
with the source fails with "Task not serializable" (Spark 4.2.0, `PythonStreamingSourceRunner.init`). If the variables
are in the map already, nothing is inserted, and nothing can be counted twice. Sessions of `ottla.spark.session` have
them from the start, others from the first call of `register`, `watch` or `topic` on. A session whose program calls none
of these has no part of Ottla in its driver that could insert them.
"""

import contextlib
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# Spark's defaults; every stream overwrites them with the values of its session.
_VARIABLES = {
    "SPARK_LOCAL_DIRS": "",
    "SPARK_AUTH_SOCKET_TIMEOUT": "15",
    "SPARK_BUFFER_SIZE": "65536",
    "SPARK_PYTHON_RUNTIME": "PYTHON_WORKER",
}
# How long the workers of a query's streams may take to start.
_START_S = 60.0


def settle_environment(session: "SparkSession") -> None:
    """Insert the variables, so that several streams of the source `ottla` may start at the same time. Does nothing with
    Spark Connect, where the server owns the map: see `wait_for_sources`.
    """
    found: Any = getattr(session, "_jsparkSession", None)
    if found is None:
        return
    with contextlib.suppress(Exception):  # another version of Spark may keep the map elsewhere: then do nothing
        source = found.sessionState().dataSourceManager().lookupDataSource("ottla")
        environment = source.dataSourceCls().envVars()
        for name, value in _VARIABLES.items():
            environment.putIfAbsent(name, value)


def wait_for_sources(session: "SparkSession", query: "StreamingQuery") -> None:
    """With Spark Connect: wait until the streams of a query have started, so that the next query starts its streams
    after them.
    """
    if hasattr(session, "_jsparkSession"):
        return
    deadline_s = time.monotonic() + _START_S
    while query.isActive and query.status["message"].startswith("Initializing") and time.monotonic() < deadline_s:
        time.sleep(0.05)
