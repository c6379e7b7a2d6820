"""What Spark has written down in the checkpoint of a query: who it is, and how far it has come.

Rules:
- Files are read by Spark, wherever the driver and the checkpoint are.
- A query is known by its checkpoint and by the id that is in there: where a checkpoint was removed, what comes next is
  another query, whose batches are counted from 0 again.
"""

import json
from typing import TYPE_CHECKING, Any

from ottla.spark.sink.checkpoint import one_spelling

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def sink_id(spark: "SparkSession", checkpoint: str, part: str) -> str:
    """The name, in the exactly-once protocol, of a sink that a query writes to batch by batch. The query must have been
    started once. It is the same however the checkpoint's place is written."""
    (metadata,) = spark.read.text(f"{checkpoint}/metadata").collect()
    return f"{one_spelling(checkpoint)}#{json.loads(metadata.value)['id']}#{part}"


def finished_batches(spark: "SparkSession", checkpoint: str) -> int:
    """The number of the last batch that was finished; -1 if there is none, or no checkpoint."""
    from pyspark.errors import AnalysisException

    try:
        found = spark.read.format("binaryFile").option("pathGlobFilter", "[0-9]*").load(f"{checkpoint}/commits")
        numbers = [int(row.path.rpartition("/")[2]) for row in found.select("path").collect()]
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return -1
        raise
    return max(numbers, default=-1)


def written_down(spark: "SparkSession", checkpoint: str, batch: int) -> list[Any]:
    """For a batch, before it runs: metadata (the watermark among it), then the offsets of each source."""
    lines = [row.value for row in spark.read.text(f"{checkpoint}/offsets/{batch}", wholetext=True).collect()]
    return [json.loads(line) for line in lines[0].splitlines()[1:]] if lines else []
