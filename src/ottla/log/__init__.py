"""The storage engine: segments, indexes, recovery, retention, compaction; pure over a Disk port."""
