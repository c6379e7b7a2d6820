"""Read what Spark has written into the checkpoint of a query: the query's id, and its offsets and finished batches.

Rules:
- Spark reads the files, so it does not matter on which machine or file system the driver and the checkpoint are.
- A query is identified by its checkpoint and the id in it: if a checkpoint was removed, the next query there is another
  one, and its batches are counted from 0 again.
"""

import json
from typing import TYPE_CHECKING, Any

from ottla.spark.sink.checkpoint import one_spelling

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def sink_id(spark: "SparkSession", checkpoint: str, part: str) -> str:
    """The name, in the exactly-once protocol, of a sink that a query writes to batch by batch. The query must have been
    started once. The name is the same however the location of the checkpoint is spelled.
    """
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
    """What Spark wrote down for a batch before running it: the metadata (with the watermark), then the offsets of each
    source.
    """
    lines = [row.value for row in spark.read.text(f"{checkpoint}/offsets/{batch}", wholetext=True).collect()]
    return [json.loads(line) for line in lines[0].splitlines()[1:]] if lines else []
