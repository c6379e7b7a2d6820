"""A job as users write it: rows to a topic, a stream from it to another topic, and a look at both. Prints JSON.

`round_trip.py WHERE BOOTSTRAP TOPIC CHECKPOINT`: WHERE is a master, or sc://host:port for Spark Connect.
"""

import json
import sys

from tests.support.spark import QUIET, executors

import ottla.spark

where, bootstrap, topic, checkpoint = sys.argv[1:]
if where.startswith("sc://"):
    spark = ottla.spark.session("round-trip", remote=where, bootstrap=bootstrap)
else:
    memory = {"spark.executor.memory": "512m", "spark.cores.max": "2", **executors()}
    spark = ottla.spark.session("round-trip", master=where, bootstrap=bootstrap, **{**QUIET, **memory})
broker = {"kafka.bootstrap.servers": bootstrap}
rows = spark.range(0, 5_000, 1, 4).selectExpr(
    "cast(id % 50 as string) key",
    "cast(id as string) value",
    "array(struct('n' as key, cast(cast(id as string) as binary) as value)) headers",
)
rows.write.format("ottla").mode("append").options(**broker, topic=topic, includeHeaders="true").save()
copied = (
    spark.readStream.format("ottla")
    .options(**broker, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="2000")
    .load()
    .selectExpr("key", "cast(cast(cast(value as string) as int) * 2 as string) value", "partition as came_from")
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
