"""What a node does with its disks and its memory."""

from ottla.observe.metrics.declaration import Area

storage = Area("Storage", "Syncs, retention and compaction of the partitions on this node, and its data directories.")

FLUSH = storage.summary(
    "kafka_log_logflushstats_logflushrateandtimems",
    "How long syncing the files of one partition took, without those of the metadata.",
    unit="milliseconds",
    mbean="kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs",
)
RETAINED_SEGMENTS = storage.counter(
    "ottla_retention_deleted_segments_total", "Segments deleted because of retention, or because the log start passed."
)
RETAINED_BYTES = storage.counter("ottla_retention_deleted_bytes_total", "The bytes of these.", unit="bytes")
CLEANED = storage.counter("ottla_cleaner_runs_total", "Compactions of a partition that were done.")
CLEANED_BYTES = storage.counter("ottla_cleaner_read_bytes_total", "Bytes that compactions went through.", unit="bytes")
CLEANED_AGE = storage.gauge(
    "ottla_cleaner_last_run_seconds", "Time since the last compaction; not told before there was one.", unit="seconds"
)
DIRTY = storage.gauge(
    "ottla_cleaner_max_dirty_ratio",
    "The largest share, from 0 to 1, of a log that waits for compaction, when the cleaner looked last.",
)
COLD_READS = storage.counter(
    "ottla_cold_reads_total", "Ranges of files that were not in the page cache, and that a thread read first."
)
SLOW_WRITES = storage.counter(
    "ottla_slow_writes_total", "Writes that a thread did, because the disk was slow and appends waited."
)
PRODUCER_IDS = storage.gauge(
    "kafka_server_replicamanager_produceridcount",
    "Producer ids that open partitions know, each once per partition.",
    mbean="kafka.server:type=ReplicaManager,name=ProducerIdCount",
)
DISK_FREE = storage.gauge("ottla_disk_free_bytes", "Free bytes of a data directory's disk.", "directory", unit="bytes")
DISK_SIZE = storage.gauge("ottla_disk_size_bytes", "Size of a data directory's disk.", "directory", unit="bytes")
REFUSED = storage.counter(
    "ottla_contract_refusals_total", "Batches refused because a record breaks the contract of the topic.", "topic"
)
LETTERS = storage.counter("ottla_dead_letters_total", "Dead letters that this node has written, or sent to a leader.")
MEMORY = storage.gauge("ottla_request_memory_bytes", "Memory that requests hold now.", unit="bytes")
MEMORY_MAX = storage.gauge(
    "ottla_request_memory_max_bytes", "How much they may hold: queued.max.request.bytes.", unit="bytes"
)
MEMORY_WAITING = storage.gauge("ottla_request_memory_waiting", "Connections that wait for such memory.")
WAITING = storage.gauge(
    "ottla_waiting_requests", "Requests that wait for a change of a partition: fetches for records, acks=all."
)
SESSIONS = storage.gauge(
    "kafka_server_fetchsessioncache_numincrementalfetchsessions",
    "Fetch sessions of consumers and followers.",
    mbean="kafka.server:type=FetchSessionCache,name=NumIncrementalFetchSessions",
)
EVICTED = storage.counter(
    "kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total",
    "Fetch sessions that made room for others.",
    mbean="kafka.server:type=FetchSessionCache,name=IncrementalFetchSessionEvictionsPerSec",
)
