"""A job as users write it: rows to a topic, a stream from it to another topic, and a look at both. Prints JSON.

`round_trip.py WHERE BOOTSTRAP TOPIC CHECKPOINT`: WHERE is a master, or sc://host:port for Spark Connect. With a master,
an executor dies in the middle of a batch.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.spark.sessions import QUIET, executors

import ottla.spark

where, bootstrap, topic, checkpoint = sys.argv[1:]
if where.startswith("sc://"):
    spark = ottla.spark.session("round-trip", remote=where, bootstrap=bootstrap)
else:
    memory = {"spark.executor.memory": "512m", "spark.cores.max": "2", **executors()}
    spark = ottla.spark.session("round-trip", master=where, bootstrap=bootstrap, **{**QUIET, **memory})
broker = {"kafka.bootstrap.servers": bootstrap}


def dies_once(batches: Iterator[Any]) -> Iterator[Any]:
    """Rows as they come; the executor that has the first of them is killed."""
    for batch in batches:
        yield batch
        try:
            os.close(os.open(f"{checkpoint}.died", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        daemon = Path(f"/proc/{os.getppid()}/stat").read_text()  # which is the executor's child, and this one's parent
        os.kill(int(daemon.rpartition(")")[2].split()[1]), signal.SIGKILL)


rows = spark.range(0, 5_000, 1, 4).selectExpr(
    "cast(id % 50 as string) key",
    "cast(id as string) value",
    "array(struct('n' as key, cast(cast(id as string) as binary) as value)) headers",
)
rows.write.format("ottla").mode("append").options(**broker, topic=topic, includeHeaders="true").save()
stream = (
    spark.readStream.format("ottla")
    .options(**broker, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="2000")
    .load()
)
if not where.startswith("sc://"):
    stream = stream.mapInArrow(dies_once, stream.schema)
copied = (
    stream.selectExpr("key", "cast(cast(cast(value as string) as int) * 2 as string) value", "partition as came_from")
    .drop("came_from")
    .writeStream.format("ottla")
    .queryName(f"copy-{topic}")
    .options(**broker, topic=f"{topic}-copy", checkpointLocation=checkpoint)
    .trigger(availableNow=True)
    .start()
)
copied.awaitTermination()
read = spark.read.format("ottla").options(**broker, subscribe=topic, includeHeaders="true").load()
options = {**broker, "subscribe": f"{topic}-copy", "kafka.isolation.level": "read_committed"}
copy = spark.read.format("ottla").options(**options).load()
found = {
    "rows": read.count(),
    "headers": read.selectExpr("sum(cast(cast(headers[0].value as string) as int))").first()[0],
    "copied": copy.count(),
    "distinct": copy.selectExpr("cast(value as string)").distinct().count(),
    "sum": copy.selectExpr("sum(cast(cast(value as string) as int))").first()[0],
    "same_partitions": read.selectExpr("key", "partition p").distinct().count(),
}
print("FOUND", json.dumps(found), flush=True)
spark.stop()
