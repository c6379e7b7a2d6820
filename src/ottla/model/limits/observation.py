"""Observing the node: stalls, garbage collections, log lines."""

from ottla.model.limits.units import MIB

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
# What is answered to a scrape: more samples are left out, and counted. A hundred topics on a busy node make some 5,000.
METRICS_SAMPLES_MAX = 50_000
# Topics that the metrics tell one by one (default of ottla.metrics.topics.max); the others are added up.
METRICS_TOPICS = 100
# Partitions, connections, groups or transactions that a scrape looks at in one turn of the event loop.
METRICS_PER_SLICE = 500
# Groups that the metrics tell one by one (default of ottla.metrics.groups.max); the others are added up. Of these, so
# many partitions have samples of their own, those with most lag.
METRICS_GROUPS = 100
METRICS_GROUP_PARTITIONS = 5_000
# How often the lag of groups is looked at, as long as somebody asked for metrics within the last minutes.
LAG_INTERVAL_MS = 5_000
LAG_WANTED_MS = 120_000
# Partitions of groups that one look takes in; the lag of others is not told.
LAG_PARTITIONS_MAX = 100_000
# Partitions in one question to another leader, and offsets of one partition whose times are asked for.
LAG_PARTITIONS_PER_QUESTION = 1_000
UNREAD_OFFSETS_MAX = 100
# Connections to the metrics endpoint, in all and of one address; beyond that one makes room for a new one. Requests
# that are served at a time, health checks apart; more are answered with 503. A request of more bytes is refused, and
# whoever has not sent it, or not read the answer, after this time is disconnected.
METRICS_CONNECTIONS_MAX = 128
METRICS_CONNECTIONS_PER_ADDRESS_MAX = 96
METRICS_SERVED_MAX = 32
METRICS_REQUEST_BYTES_MAX = 8 * 1_024
METRICS_REQUEST_S = 10
# What a command reads of a node's answer: METRICS_SAMPLES_MAX lines of usual length, and room for long names.
METRICS_ANSWER_BYTES_MAX = 16 * MIB
# Quantiles are those of the last one to two intervals of this length.
METRICS_WINDOW_MS = 60_000
# How often the delay of the event loop is measured.
METRICS_DELAY_INTERVAL_MS = 200
# What `ottla support-bundle` packs up, before compression: all of it, one member of the archive, and the end of one log
# file. It has to fit into a ticket.
BUNDLE_BYTES_MAX = 128 * MIB
BUNDLE_MEMBER_BYTES_MAX = 16 * MIB
BUNDLE_LOG_BYTES_MAX = 8 * MIB
# Log files of one data directory's surroundings, and files in its listing.
BUNDLE_LOGS_MAX = 20
BUNDLE_FILES_MAX = 100_000
# Groups whose members are packed up.
BUNDLE_GROUPS_MAX = 1_000
