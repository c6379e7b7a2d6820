"""Observing the node: stalls, garbage collections, log lines."""

# A callback of the event loop that runs longer is logged and counted (default of ottla.stall.limit.ms). Everything else
# waits meanwhile; the goal, which tests/stalls checks for every request, is half of it in CPU time.
STALL_MS = 100
# Stalls are logged at most once per interval and counted by name for this many names.
STALL_LOG_INTERVAL_MS = 10_000
STALL_NAMES_MAX = 1_000
# A stall that lasts this long is logged before it ends.
STALL_LOGGED_EARLY_MS = 5_000
# After a garbage collection that took longer, the objects it has examined are not examined again (`gc.freeze`).
COLLECTION_MS_MAX = 10
# Those objects are examined again if more closed connections than this are still in memory.
UNNEEDED_KEPT_MAX = 100
# A log line is cut here, so that a hostile name or a huge repr cannot fill the disk.
LOG_LINE_CHARS_MAX = 4_096
