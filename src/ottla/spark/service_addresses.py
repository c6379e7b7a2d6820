"""The addresses of the cluster and the registry: from the caller, from the session's settings, or from the environment,
in this order. Also the context of the pipeline that is being built.
"""

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
    """Where the streams of a pipeline begin, instead of where their definitions say."""

    def options(self, topics: Sequence[str]) -> dict[str, str]:
        """The starting place as options of the reader."""
        ...


class Rereading(Protocol):
    """Reads records of streams again, as a batch."""

    def frame(self, spark: "SparkSession", topics: Sequence[str], options: Mapping[str, str]) -> "DataFrame":
        """A batch DataFrame instead of the stream with these options."""
        ...


# How the pipeline that is being built reads its sources; None outside of pipelines.
replaying: ContextVar[Replay | None] = ContextVar("replaying", default=None)
rereading: ContextVar[Rereading | None] = ContextVar("rereading", default=None)
# Collects the topics that the stream or query that is being built reads; None if they are not collected.
noted: ContextVar[list[str] | None] = ContextVar("noted", default=None)


def note_topics(names: Sequence[str]) -> None:
    """Note that these topics are read."""
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
        raise RuntimeError("there is no Spark session yet: make one with ottla.spark.session()")
    return active


def bootstrap_of(spark: "SparkSession", given: str | None = None) -> str:
    """The brokers' addresses."""
    return given or conf(spark, BOOTSTRAP) or os.environ.get("OTTLA_BOOTSTRAP") or DEFAULT_BOOTSTRAP


def registry_of(spark: "SparkSession", given: str | None = None) -> str | None:
    """The schema registry's address; None if it is not set anywhere."""
    return given or conf(spark, REGISTRY) or os.environ.get("OTTLA_REGISTRY")


def conf(spark: "SparkSession", name: str) -> str | None:
    """A setting of the session; None if it is not set."""
    found = spark.conf.get(name, None)
    return None if found is None else str(found)
