"""Where the log and the registry are: told by the caller, by the pipeline that runs, by the session, or by the
environment; in this order."""

import os
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BOOTSTRAP = "spark.ottla.bootstrap"
REGISTRY = "spark.ottla.registry"
DEFAULT_BOOTSTRAP = "127.0.0.1:9092"


class Replay(Protocol):
    """Where a pipeline's streams begin instead of where they say."""

    def options(self, topics: Sequence[str]) -> dict[str, str]:
        """As options of the reader."""
        ...


class Rereading(Protocol):
    """Records of streams that are read once more, as a batch."""

    def frame(self, spark: "SparkSession", topics: Sequence[str], options: Mapping[str, str]) -> "DataFrame":
        """Instead of the stream with these options."""
        ...


# What the pipeline that is being built wants of its sources; None outside of pipelines.
replaying: ContextVar[Replay | None] = ContextVar("replaying", default=None)
rereading: ContextVar[Rereading | None] = ContextVar("rereading", default=None)
# The topics that are read by what is being built; None where nobody wants to know.
noted: ContextVar[list[str] | None] = ContextVar("noted", default=None)


def note_topics(names: Sequence[str]) -> None:
    """These are read."""
    known = noted.get()
    if known is not None:
        known.extend(name for name in names if name not in known)


def the_session(spark: "SparkSession | None" = None) -> "SparkSession":
    """The given session, or the active one. RuntimeError if there is none."""
    if spark is not None:
        return spark
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is None:
        raise RuntimeError("there is no Spark session yet: make one with ottla.spark.runtime.session()")
    return active


def bootstrap_of(spark: "SparkSession", given: str | None = None) -> str:
    """The brokers' addresses."""
    return given or conf(spark, BOOTSTRAP) or os.environ.get("OTTLA_BOOTSTRAP") or DEFAULT_BOOTSTRAP


def registry_of(spark: "SparkSession", given: str | None = None) -> str | None:
    """The schema registry's address, if anybody has told it."""
    return given or conf(spark, REGISTRY) or os.environ.get("OTTLA_REGISTRY")


def conf(spark: "SparkSession", name: str) -> str | None:
    """A setting of the session, None where it is not set."""
    found = spark.conf.get(name, None)
    return None if found is None else str(found)
