"""A SparkSession that is ready to use: local, on a cluster, or through Spark Connect.

Rules:
- The session is made by Spark's own builder; every setting here is a default that the caller may override.
- If a session exists already, Spark applies to it the explicit settings that can still be changed.
- The session has the addresses of the cluster and the registry (`spark.ottla.bootstrap`, `spark.ottla.registry`), which
  `topic()` and other functions read.
"""

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.client.profiles import Profile
from ottla.spark.progress import watch
from ottla.spark.runtime.java import prepare_java
from ottla.spark.service_addresses import BOOTSTRAP, REGISTRY, bootstrap_of, registry_of, remember_security

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The secrets among Kafka's and Confluent's settings, besides those that Spark knows.
SECRET_NAMES = "secret|password|token|jaas|keystore[.]key|key[.]pem|user[.]info"
# Settings of every session, also of one on a Connect server.
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # Options of sources and sinks that plans do not show: Spark's default, and the secrets among Kafka's settings.
    "spark.sql.redaction.options.regex": f"(?i)url|{SECRET_NAMES}",
}
# Settings only for a driver that this process starts.
_DRIVER = {
    "spark.ui.enabled": "false",
    # The same for Spark's web pages and its event log.
    "spark.redaction.regex": f"(?i)access[.]?key|{SECRET_NAMES}",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # A micro-batch of a local session has little to shuffle: Spark's default of 200 tasks makes streams slow.
    "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2)),
}


def session(
    name: str = "ottla",
    *,
    master: str | None = None,
    remote: str | None = None,
    bootstrap: str | None = None,
    registry: str | None = None,
    security: Mapping[str, str] | None = None,
    profile: str | None = None,
    log_level: str = "ERROR",
    **settings: str,
) -> "SparkSession":
    """A session with the data source `ottla`, RocksDB for state, UTC as its time zone, and queries that commit their
    offsets.

    `master` is a Spark master (by default `local[*]`); `remote="sc://host:port"` is for Spark Connect, which needs no
    Java on this machine. `security` are Kafka's settings for the cluster (security.protocol, ssl.*, sasl.*) and
    Confluent's for the registry; they do not become settings of the session, where Spark would show them. `profile`
    names a profile (`ottla.Profile`) that has all of these; what is given beside it counts first. Other settings are
    given by their names: `session("job", **{"spark.sql.shuffle.partitions": "8"})`. Raises `NoJava`.
    """
    if master and remote:
        raise ValueError("either master or remote, not both")
    if profile is not None:
        own = Profile.named(profile)
        bootstrap, registry = bootstrap or own.bootstrap, registry or own.registry
        security = {**own.settings, **(security or {})}
    given = {name: str(value) for name, value in settings.items()}
    if bootstrap:
        given[BOOTSTRAP] = bootstrap
    if registry:
        given[REGISTRY] = registry
    spark = _connected(name, remote, given) if remote else _local(name, master, given)
    if not remote:
        spark.sparkContext.setLogLevel(log_level)
    if security:
        remember_security(security, bootstrap_of(spark, bootstrap), registry_of(spark, registry))
    watch(spark)
    return spark


def _local(name: str, master: str | None, given: dict[str, str]) -> "SparkSession":
    prepare_java()
    # Without this, workers run the `python3` on their PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    settings = {**SETTINGS, **_DRIVER, **given}
    chosen = master or os.environ.get("SPARK_MASTER") or "local[*]"
    if chosen.startswith("local"):
        # No other machine has to reach a local driver, and this machine's own host name may not resolve.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings.setdefault("spark.driver.host", "127.0.0.1")
        settings.setdefault("spark.driver.bindAddress", "127.0.0.1")
    builder = SparkSession.builder.appName(name).master(chosen)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _connected(name: str, remote: str, given: dict[str, str]) -> "SparkSession":
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote(remote).appName(name).getOrCreate()
    for key, value in {**SETTINGS, **given}.items():
        spark.conf.set(key, value)
    return spark
