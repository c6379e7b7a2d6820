"""The environment of Python workers that all streams of a session share, filled in before the first of them starts.

Spark keeps one map of environment variables for a data source that is written in Python, and every stream that starts
puts the same few into it, each in a thread of its own. Two that do so at once count a new variable twice, and from then
on the map cannot be serialized: every query of the session that reads or writes with the source fails with "Task not
serializable" (Spark 4.2.0, `PythonStreamingSourceRunner.init`). Where the variables are there already nothing is
inserted, and nothing can be counted twice.
"""

import contextlib
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# Every stream overwrites them with the values of its session; these are Spark's defaults.
_VARIABLES = {
    "SPARK_LOCAL_DIRS": "",
    "SPARK_AUTH_SOCKET_TIMEOUT": "15",
    "SPARK_BUFFER_SIZE": "65536",
    "SPARK_PYTHON_RUNTIME": "PYTHON_WORKER",
}
# How long the workers of a query's streams may take to start.
_START_S = 60.0


def settle_environment(session: "SparkSession") -> None:
    """After this, streams of the source `ottla` may start at once. Nothing happens through Connect, where the server
    owns the map: see `wait_for_sources`."""
    found: Any = getattr(session, "_jsparkSession", None)
    if found is None:
        return
    with contextlib.suppress(Exception):  # another Spark may keep it elsewhere: then it is as if we had not been here
        source = found.sessionState().dataSourceManager().lookupDataSource("ottla")
        environment = source.dataSourceCls().envVars()
        for name, value in _VARIABLES.items():
            environment.putIfAbsent(name, value)


def wait_for_sources(session: "SparkSession", query: "StreamingQuery") -> None:
    """Through Connect: wait until the streams of a query have started, so that the next query's start after them."""
    if hasattr(session, "_jsparkSession"):
        return
    deadline_s = time.monotonic() + _START_S
    while query.isActive and query.status["message"].startswith("Initializing") and time.monotonic() < deadline_s:
        time.sleep(0.05)
