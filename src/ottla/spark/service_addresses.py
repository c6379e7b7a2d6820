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
# The options of security by the address of a cluster or a registry.
_security: dict[str, Mapping[str, str]] = {}


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


def remember_security(settings: Mapping[str, str], bootstrap: str, registry: str | None) -> None:
    """Note the security settings for a cluster and its registry: whoever reads or writes there uses them.

    They are kept in this process and not in the session: settings of a session are on the JVM's command line, in
    Spark's web pages and in its event log.
    """
    from ottla.client.security.registry_settings import PREFIX, is_registry_name, registry_security
    from ottla.client.security.security import as_security

    own = {name: value for name, value in settings.items() if is_registry_name(name)}
    cluster = {name: value for name, value in settings.items() if name not in own}
    as_security(cluster)  # find mistakes now
    registry_security(own, cluster)
    _security[bootstrap] = {f"kafka.{name}": value for name, value in cluster.items()}
    if registry is not None:
        _security[registry] = {PREFIX + name.removeprefix(PREFIX): value for name, value in own.items()}


def security_options(address: str | None) -> Mapping[str, str]:
    """The options of a source or sink for the security of the cluster or the registry at this address."""
    return {} if address is None else _security.get(address, {})


def cluster_options(spark: "SparkSession", bootstrap: str | None, options: Mapping[str, object]) -> dict[str, str]:
    """The options of a source or sink for its cluster: none if the other options name a profile, which has them."""
    if bootstrap is None and "profile" in options:
        return {}
    address = bootstrap_of(spark, bootstrap)
    return {"kafka.bootstrap.servers": address, **security_options(address)}


def registry_options(spark: "SparkSession", registry: str | None, options: Mapping[str, object]) -> dict[str, str]:
    """The options for the registry, likewise; none if it is not set anywhere."""
    if registry is None and "profile" in options:
        return {}
    address = registry_of(spark, registry)
    return {} if address is None else {"schema.registry.url": address, **security_options(address)}


def conf(spark: "SparkSession", name: str) -> str | None:
    """A setting of the session; None if it is not set."""
    found = spark.conf.get(name, None)
    return None if found is None else str(found)
