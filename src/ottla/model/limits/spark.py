"""Spark: the source, the sink, and Spark's own connector."""

from ottla.model.limits.units import KIB, MIB

# Queries of Spark's own connector whose fetches are noted, and partitions of each.
SPARK_READERS_MAX = 1_000
SPARK_PARTITIONS_NOTED_MAX = 100_000
# Bytes of records (unpacked) that are handed to Spark at once: the JVM holds them outside its heap.
SPARK_BATCH_BYTES_MAX = 32 * MIB
# How often the driver looks again at topics that change while it looks.
SPARK_SNAPSHOT_TRIES_MAX = 20
# Rows of a task that are gathered before they become record batches: enough for full batches of many partitions.
SPARK_GATHERED_BYTES = 8 * MIB
SPARK_GATHERED_ROWS = 100_000
# Record batches of the Spark sink unless told otherwise: rows come in thousands, so nobody waits for them to fill.
SPARK_BATCH_BYTES = 256 * KIB
# How long a task's transaction may wait for the driver: what brokers allow at most by default.
SPARK_TRANSACTION_TIMEOUT_MS = 900_000
# The driver's own transactions are one record long. Another sink's may hold up the reading of the log for so long.
SPARK_DECISION_TIMEOUT_MS = 30_000
# What one of these may be before it is packed: more than what a topic takes when it is (a MiB, some 30,000 tasks).
SPARK_DECISION_BYTES_MAX = 16 * MIB
# Transactions that the driver ends at the same time.
SPARK_ENDS_AT_ONCE_MAX = 32
# A query of a pipeline that failed with an error that may pass is started again so often within this time; waits
# between the failure and the start double up to the longest one.
PIPELINE_RESTARTS = 5
PIPELINE_RESTARTS_WITHIN_S = 600.0
PIPELINE_RESTART_WAIT_S = 1.0
PIPELINE_RESTART_WAIT_MAX_S = 60.0
# What a pipeline says of an error is one line, not longer than this: a user's exception may carry a whole page.
PIPELINE_ERROR_CHARS_MAX = 600
# Earlier runs of a sink (queries with other checkpoints) whose last batch it remembers.
SPARK_RUNS_REMEMBERED_MAX = 32
# How long a run waits for its board's broker before that counts as away, and for its last status to be written.
PIPELINE_HERALD_TIMEOUT_MS = 5_000
PIPELINE_HERALD_CLOSE_S = 15.0
# The record on which a query of a pipeline failed is looked for in batches up to so many offsets, and for so long.
PIPELINE_SEARCH_RECORDS_MAX = 200_000
PIPELINE_SEARCH_S = 30.0
