"""Spark: our source and sink, and Spark's own Kafka connector."""

from ottla.model.limits.units import KIB, MIB

# Queries of Spark's own connector whose fetches are recorded, and partitions of each.
SPARK_READERS_MAX = 1_000
SPARK_PARTITIONS_NOTED_MAX = 100_000
# Decompressed bytes of records that are handed to Spark at once: the JVM holds them outside its heap.
SPARK_BATCH_BYTES_MAX = 32 * MIB
# How often the driver retries to take a snapshot of topics that change meanwhile.
SPARK_SNAPSHOT_TRIES_MAX = 20
# Bytes and rows of a task that are gathered before they become record batches: enough for full batches of many
# partitions.
SPARK_GATHERED_BYTES = 8 * MIB
SPARK_GATHERED_ROWS = 100_000
# Default size of the Spark sink's record batches: rows come in thousands, so batches fill without a delay.
SPARK_BATCH_BYTES = 256 * KIB
# Timeout of a task's transaction while it waits for the driver: the maximum that brokers allow by default.
SPARK_TRANSACTION_TIMEOUT_MS = 900_000
# Timeout of the driver's own transactions, which have one record. The open transaction of another sink may delay reads
# of the log for this long.
SPARK_DECISION_TIMEOUT_MS = 30_000
# Bytes of a decision before compression: enough for what a topic takes when it is compressed (a MiB, some 30,000
# tasks).
SPARK_DECISION_BYTES_MAX = 16 * MIB
# Transactions that the driver ends at the same time.
SPARK_ENDS_AT_ONCE_MAX = 32
# A pipeline's query that failed with a transient error is restarted this often within this time; the waits between
# failure and restart double up to the longest one.
PIPELINE_RESTARTS = 5
PIPELINE_RESTARTS_WITHIN_S = 600.0
PIPELINE_RESTART_WAIT_S = 1.0
PIPELINE_RESTART_WAIT_MAX_S = 60.0
# Characters of an error that a pipeline reports, in one line: a user's exception may have a page of text.
PIPELINE_ERROR_CHARS_MAX = 600
# Earlier runs of a sink (queries with other checkpoints) whose last batch the sink remembers.
SPARK_RUNS_REMEMBERED_MAX = 32
# How long a run waits for the broker of its status board before it counts as unreachable, and for its last status to be
# written.
PIPELINE_STATUS_TIMEOUT_MS = 5_000
PIPELINE_STATUS_CLOSE_S = 15.0
# Offsets, and seconds, for the search of the record on which a query of a pipeline failed.
PIPELINE_SEARCH_RECORDS_MAX = 200_000
PIPELINE_SEARCH_S = 30.0
# What the console remembers of pipelines while somebody looks: points of a query (five seconds apart), and queries.
PIPELINE_POINTS_MAX = 240
PIPELINE_QUERIES_REMEMBERED_MAX = 500
