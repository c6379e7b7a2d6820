"""Ottla's own. Settings that Kafka does not have; all names begin with `ottla.`, so that none of Kafka's can clash."""

from ottla.model.limits import (
    BATCHES_PER_PRODUCER,
    DECOMPRESSED_BATCH_BYTES_MAX,
    IN_FLIGHT_PER_CONNECTION_MAX,
    KIB,
    OPEN_FILES_MAX,
    PRODUCERS_PER_PARTITION_MAX,
    WORKER_THREADS_MAX,
)
from ottla.model.section import CLUSTER_WIDE, HIGH, LOW, Section
from ottla.model.validators import at_least, between

own = Section("Ottla's own", "What Kafka does not have.")

OTTLA_FSYNC_BEFORE_ACK = own.boolean(
    "ottla.fsync.before.ack",
    False,
    "Sync a record to disk before it is acknowledged; many appends share one sync.",
    importance=HIGH,
    dynamic=CLUSTER_WIDE,
)
OTTLA_FSYNC_WINDOW_MS = own.int32(
    "ottla.fsync.window.ms",
    0,
    "How long a sync waits for more appends to share it; 0 starts at once and shares only what is there.",
    valid=between(0, 1_000),
    dynamic=CLUSTER_WIDE,
)
OTTLA_OPEN_FILES_MAX = own.int32(
    "ottla.open.files.max", OPEN_FILES_MAX, "Files kept open over all partitions.", valid=at_least(64)
)
OTTLA_WORKER_THREADS = own.int32(
    "ottla.worker.threads",
    WORKER_THREADS_MAX,
    "Threads for work that would block the event loop: syncs, compaction, recovery, large codecs.",
    valid=between(1, 64),
)
OTTLA_IN_FLIGHT_PER_CONNECTION_MAX = own.int32(
    "ottla.in.flight.per.connection.max",
    IN_FLIGHT_PER_CONNECTION_MAX,
    "Requests of one connection that may wait for their answers before it is read no further.",
    valid=at_least(BATCHES_PER_PRODUCER),
)
OTTLA_DECOMPRESSED_BATCH_MAX_BYTES = own.int64(
    "ottla.decompressed.batch.max.bytes",
    DECOMPRESSED_BATCH_BYTES_MAX,
    "Largest size a compressed batch may unpack to.",
    valid=at_least(64 * KIB),
    importance=LOW,
)
OTTLA_PRODUCERS_PER_PARTITION_MAX = own.int32(
    "ottla.producers.per.partition.max",
    PRODUCERS_PER_PARTITION_MAX,
    "Idempotent producers remembered per partition; the longest silent ones go first.",
    valid=at_least(1),
    importance=LOW,
)
