"""A driver that reads and writes secured clusters, and prints whatever Spark shows about it.

Its standard input is a JSON document: `clusters` (each with `bootstrap`, `security` in Kafka's settings, and `topic`),
`profile` (see _use_profile), `token` (see _read_with_token), `typed` (see _write_and_read_typed), `jars` and
`directory`. In each cluster it writes a batch, reads it, and copies the topic with a stream. It prints plans, Spark's
web pages, the answers of its REST API, and the results.
"""

import contextlib
import io
import json
import sys
import urllib.request
from pathlib import Path
from typing import Any

from ottla.spark import session, to, topic


def main() -> None:
    """Do all of it."""
    told = json.load(sys.stdin)
    directory = Path(told["directory"])
    events = directory / "events"
    events.mkdir()
    settings = {
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.jars": told["jars"],
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",  # so that what is in it can be seen
        # Spark's defaults, which know few of the secrets: what Spark is not told it cannot show.
        "spark.sql.redaction.options.regex": "(?i)url",
        "spark.redaction.regex": "(?i)secret|password|token|access[.]?key",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
    }
    for cluster in told["clusters"]:
        # The second call finds the session of the first one, and gives it another cluster.
        own = {"bootstrap": cluster["bootstrap"], "security": cluster["security"]}
        spark = session("secured", master="local[2]", **own, **settings)
        _write_and_read(spark, cluster, directory / cluster["topic"])
    _use_profile(spark, told["profile"])
    _read_with_token(spark, told["token"])
    _write_and_read_typed(spark, told["typed"])
    _print_web_pages(spark)
    spark.stop()


def _write_and_read(spark: Any, cluster: dict[str, Any], directory: Path) -> None:
    name = cluster["topic"]
    by_hand = {f"kafka.{key}": value for key, value in cluster["security"].items()}
    frame = spark.range(100).selectExpr("cast(id as string) as value")
    # Once with options of its own, as somebody writes who comes from Spark's connector.
    place = {"kafka.bootstrap.servers": cluster["bootstrap"]}
    frame.write.format("ottla").options(**by_hand, **place, topic=name).mode("append").save()
    read = topic(name, stream=False)
    print("read", name, read.count())
    for plan in (read, read.filter("offset > 3").selectExpr("value as v")):
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            plan.explain("extended")
            plan.explain("formatted")
        print(shown.getvalue(), plan._jdf.queryExecution().toString(), plan)
    output = to(topic(name), f"{name}-copy")
    print(output)
    query = output.start(checkpoint=str(directory / "checkpoint"), name=f"copy-{name}", trigger="once")
    query.awaitTermination()
    query.explain(True)
    print(query.lastProgress, query.status)
    print("copied", name, topic(f"{name}-copy", stream=False).count())


def _use_profile(spark: Any, told: dict[str, Any]) -> None:
    """Write and read `topic` with the profile `name`: as an option of the source and the sink, and of the session."""
    own = {"profile": told["name"], "topic": told["topic"]}
    frame = spark.range(100).selectExpr("cast(id as string) as value")
    frame.write.format("ottla").options(**own).mode("append").save()
    by_option = topic(told["topic"], stream=False, profile=told["name"])
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        by_option.explain("extended")
    print("by the option", by_option.count(), shown.getvalue())
    copies = to(topic(told["topic"], profile=told["name"]), told["copies"], profile=told["name"])
    copies.start(checkpoint=told["checkpoint"], name="copy-by-profile", trigger="once").awaitTermination()
    session("secured", profile=told["name"])
    print("by the session", topic(told["copies"], stream=False).count())


def _read_with_token(spark: Any, told: dict[str, Any]) -> None:
    """Spark's token provider gets a delegation token with `provider`, its settings for a cluster; with it, Spark's own
    connector reads a topic with `options`, in which nobody logs in.
    """
    jvm = spark._jvm
    settings = jvm.org.apache.spark.SparkEnv.get().conf()
    for name, value in told["provider"].items():
        settings.set(f"spark.kafka.clusters.ottla.{name}", value)
    provider = jvm.org.apache.spark.kafka010.KafkaDelegationTokenProvider()
    credentials = jvm.org.apache.hadoop.security.Credentials()
    provider.obtainDelegationTokens(spark._jsc.hadoopConfiguration(), settings, credentials)
    print("tokens", credentials.numberOfTokens())
    jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser().addCredentials(credentials)
    read = spark.read.format("kafka").options(**told["options"]).load()
    print("read with a token", read.count())
    print(read._jdf.queryExecution().toString())


def _write_and_read_typed(spark: Any, told: dict[str, Any]) -> None:
    """Rows of typed columns go to a topic and come back, with schemas of a registry; `options` say who asks either."""
    place = {"topic": told["topic"]}
    frame = spark.range(100).selectExpr("id", "concat('n', id) as note")
    frame.write.format("ottla").options(**told["options"], **place).mode("append").save()
    reading = {"subscribe": told["topic"], "columns.flatten": "true"}
    read = spark.read.format("ottla").options(**told["options"], **reading).load()
    rows = read.where("note = concat('n', id)")
    print("typed", rows.count())
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        rows.explain("extended")
    print(shown.getvalue(), rows._jdf.queryExecution().toString(), rows)


def _print_web_pages(spark: Any) -> None:
    context = spark.sparkContext
    root = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}"
    for path in ("environment", "sql?details=true&planDescription=true", "jobs", "stages"):
        _print_page(f"{root}/{path}")
    for path in ("environment/", "SQL/", "SQL/execution/?id=0", "StreamingQuery/", "jobs/", "executors/"):
        _print_page(f"{context.uiWebUrl}/{path}")


def _print_page(address: str) -> None:
    with urllib.request.urlopen(address) as answer:
        print("page", address, answer.read().decode())


main()
