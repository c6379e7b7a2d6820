"""Check a pipeline without running it: topics exist, outputs are valid, Spark can plan every query.

Each problem is one line with file and line number; one check finds all problems.
"""

from typing import TYPE_CHECKING, Any

from ottla.client.blocking.blocking import Blocking
from ottla.client.registry import RegistryError, RegistryUnreachable
from ottla.spark.option_values import OptionError
from ottla.spark.pipelines.build import Built
from ottla.spark.pipelines.causes import cause_of
from ottla.spark.pipelines.definition import PipelineError
from ottla.spark.sink.settings import write_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BYTES = ("string", "binary")
_CONTEXT = ("{oldSchema", "{validateFields", "{compatibility")


def problems(built: list[Built], spark: "SparkSession", client: Blocking) -> list[PipelineError]:
    """The problems of these queries; empty if there are none."""
    known = set(client.admin.topics.names())
    found: list[PipelineError] = []
    for each in built:
        found += _of_topics(each, known)
        found += _of_output(each)
        found += _of_plan(each, spark)
    return list({str(error): error for error in found}.values())


def _of_topics(each: Built, known: set[str]) -> list[PipelineError]:
    made = each.query
    found = [made.error(f"there is no topic {name!r} to read from") for name in each.reads if name not in known]
    late = () if made.late is None else (made.late.letters,)
    found += [
        made.error(f"there is no topic {name!r} to write to: ottla topic create {name}")
        for name in (*each.output.topics, *late)
        if name not in known
    ]
    both = sorted(set(each.reads) & {*each.output.topics, *late})
    found += [made.error(f"reads and writes topic {name!r}: it would never end") for name in both]
    return found


def _of_output(each: Built) -> list[PipelineError]:
    made, frame = each.query, each.output.frame
    if not frame.isStreaming:
        return [made.error("this is a batch: a query needs at least one stream")]
    if each.output.format != "ottla":
        return []
    try:
        # The same check as at the start of the query, which has a checkpoint.
        write_settings({**each.output.options, "checkpointLocation": "/"}, streaming=True)
    except OptionError as error:
        return [made.error(str(error))]
    if "value.format" in each.output.options:
        return _of_schema(each)
    types = dict(frame.dtypes)
    found = [
        made.error(f"the column {name} is {types[name]}: records have text or bytes, so cast it or use to_json")
        for name in ("key", "value")
        if name in types and types[name] not in _BYTES and f"{name}.format" not in each.output.options
    ]
    if "value" not in types:
        found.append(made.error("there is no column value"))
    return found


def _of_schema(each: Built) -> list[PipelineError]:
    """Check whether the columns can be written with the subject's schema. Nothing is registered."""
    from pyspark.sql.pandas.types import to_arrow_schema

    from ottla.spark.typed.writing import unwritable

    topic = each.output.topics[0]
    try:
        why = unwritable(each.output.options, to_arrow_schema(each.output.frame.schema, timezone="UTC"), topic)
    except (RegistryError, RegistryUnreachable, ValueError) as error:
        why = [cause_of(error).what]
    if not why:
        return []
    # Registries list, among the reasons, what they compared with: leave that out, because it is the latest version.
    reasons = [reason for reason in why if not reason.startswith(_CONTEXT)] or why[:1]
    return [each.query.error(f"its columns do not fit the schema of topic {topic!r}: {'; '.join(reasons)}")]


def _of_plan(each: Built, spark: "SparkSession") -> list[PipelineError]:
    """Spark's own check of which operations a stream supports in this output mode; only if the driver is in this
    process.
    """
    jvm: Any = getattr(spark, "_jvm", None) if hasattr(spark, "_jsparkSession") else None
    if jvm is None or not each.output.frame.isStreaming:
        return []
    from pyspark.errors import PySparkException

    frame: Any = each.output.frame
    modes = jvm.org.apache.spark.sql.streaming.OutputMode
    mode = {"append": modes.Append, "update": modes.Update, "complete": modes.Complete}[each.output.mode]()
    checker = getattr(jvm.org.apache.spark.sql.catalyst.analysis, "UnsupportedOperationChecker$")
    try:
        getattr(checker, "MODULE$").checkForStreaming(frame._jdf.queryExecution().analyzed(), mode)
    except PySparkException as error:
        return [each.query.error(cause_of(error).what)]
    return []
