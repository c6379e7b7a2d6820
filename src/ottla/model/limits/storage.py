"""Logs on disk: files, scans, producer marks, upkeep, and the threads that work on them."""

from ottla.model.limits.units import KIB, MIB

# Descriptors kept open over all segments and indexes (default of ottla.open.files.max): leaves room for connections
# below the common soft limit of 65,536 and works with many thousand partitions.
OPEN_FILES_MAX = 8_192
# Descriptors (an eighth of all, within these bounds) that are reserved from connections and log files: for listeners,
# other nodes, and files that are being created, synced or copied.
DESCRIPTORS_SPARE_MIN = 32
DESCRIPTORS_SPARE_MAX = 1_024
# Bytes read around an index position to find a batch header: the index is exact to 4 KiB (index.interval.bytes).
INDEX_READ_BYTES = 8 * KIB
# One read of a scan (recovery, verify, compaction).
SCAN_READ_BYTES = 1 * MIB
# Size of a read of data that is not in the page cache, and threads per data directory for such reads.
COLD_READ_BYTES = 1 * MIB
COLD_READS_AT_ONCE = 4
# Lookups per directory that may wait for such a read. A lookup beyond that is refused with a retriable error.
COLD_LOOKUPS_MAX = 10_000
# A fetch waits at least this long for the disk, whatever its maximum wait, instead of answering that there are no
# records.
COLD_WAIT_MS = 10_000
# How often a waiting fetch may find its data cold again before it reads anyway: the page cache may be too small.
COLD_TRIES_MAX = 20
# A file of up to this size is loaded into the page cache as a whole: the index of a segment of 1 GiB has 2 MiB.
WARMED_WHOLE_BYTES = 4 * MIB
# Whether a range is in the page cache is tested with one byte per this many; the kernel reads ahead in such pieces.
WARM_SAMPLE_BYTES = 128 * KIB
# A range that was found in the page cache counts as cached for this long.
WARM_S = 1.0
# Bytes that were appended this long ago (or up to twice as long) count as cached without a test.
FRESH_S = 10
# Longer reads than this do not hold the lock of the file.
SHORT_READ_BYTES = 64 * KIB
# Partitions, not used yet, that upkeep opens in one turn: some milliseconds of work, twenty times a second.
PARTITIONS_OPENED_PER_TURN = 20
# Partitions that upkeep checks between two turns of the loop: about a millisecond.
PARTITIONS_VISITED_PER_TURN = 200
# ... and segments of one log that retention removes meanwhile: their files are renamed, 0.1 ms each.
SEGMENTS_DELETED_PER_TURN = 100
# After a write that took longer, worker threads write for the logs of that data directory. If the first of their writes
# is quick, the loop writes again at once; else it does when no write took so long for QUICK_AGAIN_S. A write into the
# page cache takes microseconds.
SLOW_WRITE_S = 0.02
QUICK_AGAIN_S = 1.0
# What waits for these threads is copied into buffers of this size, of which so many are kept for the next copies.
WRITE_BUFFER_BYTES = 256 * KIB
WRITE_BUFFERS_KEPT_MAX = 16
# Writer threads of each slow directory. Linux throttles each writer separately, so several get more done.
WRITES_AT_ONCE = 4
# Threads of each data directory for syncs that requests wait for.
SYNCS_AT_ONCE = 4
# Closed segments are synced in the background, of this many logs at a time: a GiB takes a disk some seconds, and the
# other worker threads are for work that requests wait for.
SEALED_SYNCS_AT_ONCE = 2
# Directories of deleted partitions that are renamed in one turn of the loop: some milliseconds of work.
DIRECTORIES_RENAMED_PER_TURN = 100
# Directories of deleted partitions that are removed by one job of a worker thread; a stop waits for such a job.
DIRECTORIES_REMOVED_AT_ONCE = 50
# Threads for other work that would block: compaction, looks into batches, checkpoints, syncs of the metadata.
WORKER_THREADS_MAX = 4
# A log's producers are saved as a mark (see `log.producers.marks`) every so many bytes: a truncation reads at most this
# much again, at worst 8,000 of the smallest batches, about 25 ms of work.
MARK_INTERVAL_BYTES = 512 * KIB
# Marks that are kept, and producer states in them: a few kilobytes for most partitions, 20 MiB at most.
MARKS_MAX = 8
MARKED_STATES_MAX = 16_384
# A node without a working disk: how often it looks for one, and how much must fit on it.
DISK_PROBE_INTERVAL_MS = 1_000
DISK_PROBE_BYTES = 16 * MIB
# Bytes reserved in each data directory for writes that must succeed on a full disk, and the least that is released of
# them at a time.
RESERVE_BYTES = 1 * MIB
RESERVE_STEP_BYTES = 64 * KIB
