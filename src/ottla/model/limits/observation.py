"""Watching the node: stalls, garbage collections, log lines."""

# A callback of the event loop that runs longer is logged and counted (default of ottla.stall.limit.ms). Everybody waits
# meanwhile; the goal, which tests/stalls holds every request to, is half of it in CPU time.
STALL_MS = 100
# Stalls are logged no more often than this, counted by name for so many names, and told before their end after so long.
STALL_LOG_INTERVAL_MS = 10_000
STALL_NAMES_MAX = 1_000
STALL_CRY_MS = 5_000
# A garbage collection that took longer: what it has looked at is not looked at again.
COLLECTION_MS_MAX = 10
# A log line is cut here, so that a hostile name or a huge repr cannot fill the disk.
LOG_LINE_CHARS_MAX = 4_096
