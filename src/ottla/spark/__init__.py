"""Ottla for Spark: the data source `ottla`, and functions for stream processing on DataFrames.

Importing this package registers the source with the active session and starts to commit the offsets of that session's
queries, so that their lag is visible. Sessions that are created later find the source by themselves. The names listed
here are imported when they are first used: `ottla pipeline list` needs no Spark.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ottla.spark.register import register

if TYPE_CHECKING:
    from ottla.spark.pipelines.definition import pipeline
    from ottla.spark.progress import unwatch, watch
    from ottla.spark.runtime.java import NoJava
    from ottla.spark.runtime.session import session
    from ottla.spark.streams.joins import join_changes, join_streams, join_table
    from ottla.spark.streams.lake import to_delta
    from ottla.spark.streams.late import late_to
    from ottla.spark.streams.outputs import Output, dead_letters, to, to_changelog, to_jdbc, to_parquet
    from ottla.spark.streams.state import with_state
    from ottla.spark.streams.streams import dedup, repartition_through, topic, with_key
    from ottla.spark.streams.tables import changes, latest, table
    from ottla.spark.streams.windows import grouped, hopping, sessions, tumbling

_HOMES = {
    "runtime.java": ("NoJava",),
    "streams.joins": ("join_changes", "join_streams", "join_table"),
    "streams.lake": ("to_delta",),
    "streams.late": ("late_to",),
    "streams.outputs": ("Output", "dead_letters", "to", "to_changelog", "to_jdbc", "to_parquet"),
    "pipelines.definition": ("pipeline",),
    "progress": ("unwatch", "watch"),
    "runtime.session": ("session",),
    "streams.state": ("with_state",),
    "streams.streams": ("dedup", "repartition_through", "topic", "with_key"),
    "streams.tables": ("changes", "latest", "table"),
    "streams.windows": ("grouped", "hopping", "sessions", "tumbling"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "NoJava",
    "Output",
    "changes",
    "dead_letters",
    "dedup",
    "grouped",
    "hopping",
    "join_changes",
    "join_streams",
    "join_table",
    "late_to",
    "latest",
    "pipeline",
    "register",
    "repartition_through",
    "session",
    "sessions",
    "table",
    "to",
    "to_changelog",
    "to_delta",
    "to_jdbc",
    "to_parquet",
    "topic",
    "tumbling",
    "unwatch",
    "watch",
    "with_key",
    "with_state",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return found


def _begin() -> None:
    if "SPARK_CONNECT_LOCAL_URL" in os.environ:
        return  # a worker of a Connect server: the client that owns the session has registered already
    if register():  # a session is active
        from pyspark.sql import SparkSession

        from ottla.spark.progress import watch

        active = SparkSession.getActiveSession()
        if active is not None:
            watch(active)


_begin()
