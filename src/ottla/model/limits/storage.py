"""Logs on disk: files, scans, marks, upkeep, and the threads that work on them."""

from ottla.model.limits.units import KIB, MIB

# Descriptors kept open over all segments and indexes (default of ottla.open.files.max): leaves room for connections
# below the common soft limit of 65,536 and works with many thousand partitions.
OPEN_FILES_MAX = 8_192
# Descriptors (an eighth of all, within these bounds) that neither connections nor those files take: for listeners,
# other nodes, files that are being made, synced or copied.
DESCRIPTORS_SPARE_MIN = 32
DESCRIPTORS_SPARE_MAX = 1_024
# Bytes read around an index position to find a batch header: the index is exact to 4 KiB (index.interval.bytes).
INDEX_READ_BYTES = 8 * KIB
# One read of a scan (recovery, verify, compaction).
SCAN_READ_BYTES = 1 * MIB
# What is not in memory is read in pieces of this size, by so many threads of each data directory.
COLD_READ_BYTES = 1 * MIB
COLD_READS_AT_ONCE = 4
# Look-ups that may wait for such a read, of each directory. A client whose look-up finds no room has to ask again.
COLD_LOOKUPS_MAX = 10_000
# A fetch waits so long for the disk, whatever its own patience, rather than say that there is nothing.
COLD_WAIT_MS = 10_000
# How often a fetch that waits finds its place cold again before it reads as it is: memory may be too short for more.
COLD_TRIES_MAX = 20
# A file of up to this size is warmed as a whole: the index of a segment of 1 GiB has 2 MiB.
WARMED_WHOLE_BYTES = 4 * MIB
# Whether a range is in memory is told by one byte in so many; the kernel reads ahead in such pieces.
WARM_SAMPLE_BYTES = 128 * KIB
# So long nobody asks again for a range that was in memory.
WARM_S = 1.0
# Nobody asks whether what was appended so long ago (or up to twice as long) is in memory.
FRESH_S = 10
# Longer reads than this do not keep others from the file meanwhile.
SHORT_READ_BYTES = 64 * KIB
# Partitions nobody has asked for yet that upkeep opens at one turn: some milliseconds of work, twenty times a second.
PARTITIONS_OPENED_PER_TURN = 20
# Partitions that upkeep looks at between two turns of the loop: about a millisecond.
PARTITIONS_VISITED_PER_TURN = 200
# ... and segments that retention takes out of one log meanwhile: their files are renamed, 0.1 ms each.
SEGMENTS_DELETED_PER_TURN = 100
# After a write that took longer, workers write for the logs of that data directory. If their first write is quick, that
# was all; else they do until for QUICK_AGAIN_S none took so long. A write into the page cache takes microseconds.
SLOW_WRITE_S = 0.02
QUICK_AGAIN_S = 1.0
# Threads of each slow directory that write. Linux makes each writer sleep by itself, so several get more done.
WRITES_AT_ONCE = 4
# Threads of each data directory that sync what somebody waits for.
SYNCS_AT_ONCE = 4
# Segments that ended are synced in the background, of so many logs at a time: a GiB takes a disk some seconds, and the
# other worker threads are for those who wait.
SEALED_SYNCS_AT_ONCE = 2
# Directories of deleted partitions that are renamed at one turn of the loop: some milliseconds of work.
DIRECTORIES_RENAMED_PER_TURN = 100
# Directories of deleted partitions that are removed by one job of a worker thread; a stop waits for such a job.
DIRECTORIES_REMOVED_AT_ONCE = 50
# Threads for other work that would block: compaction, looks into batches, checkpoints, the metadata's syncs.
WORKER_THREADS_MAX = 4
# A log's producers are marked (see `log.marks`) every so many bytes: cutting its end off reads at most these again. Of
# the smallest batches they are 8,000, about 25 ms of work.
MARK_INTERVAL_BYTES = 512 * KIB
# Marks that are kept, and producers' states with them: a few kilobytes for most partitions, 20 MiB at the most.
MARKS_MAX = 8
MARKED_STATES_MAX = 16_384
# A node without a working disk: how often it looks for one, and what must fit on it.
DISK_PROBE_INTERVAL_MS = 1_000
DISK_PROBE_BYTES = 16 * MIB
# Held back in each data directory for what a full disk must still take, and the least that is given of it at a time.
RESERVE_BYTES = 1 * MIB
RESERVE_STEP_BYTES = 64 * KIB
