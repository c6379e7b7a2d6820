"""Replication. Followers, the in-sync set and elections."""

from ottla.model.section import CLUSTER_WIDE, HIGH, Section
from ottla.model.setting import NOT_YET
from ottla.model.validators import at_least

replication = Section("Replication", "Followers, the in-sync set and elections.")

MIN_INSYNC_REPLICAS = replication.int32(
    "min.insync.replicas",
    1,
    "Replicas that must hold a record before acks=all is answered.",
    valid=at_least(1),
    importance=HIGH,
    dynamic=CLUSTER_WIDE,
)
UNCLEAN_LEADER_ELECTION_ENABLE = replication.boolean(
    "unclean.leader.election.enable",
    False,
    "Let a replica lead that may lack acknowledged records, when no other is left.",
    importance=HIGH,
    dynamic=CLUSTER_WIDE,
)
UNCLEAN_LEADER_ELECTION_INTERVAL_MS = replication.int64(
    "unclean.leader.election.interval.ms",
    300_000,
    "How often the controller looks for partitions that need an unclean election.",
    valid=at_least(1),
    internal=True,
)
AUTO_LEADER_REBALANCE_ENABLE = replication.boolean(
    "auto.leader.rebalance.enable", True, "Give leadership back to preferred replicas by itself.", importance=HIGH
)
LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS = replication.int64(
    "leader.imbalance.check.interval.seconds",
    300,
    "How often the balance of leaders is checked.",
    valid=at_least(1),
    importance=HIGH,
)
NUM_REPLICA_FETCHERS = replication.int32(
    "num.replica.fetchers",
    1,
    "Fetchers per source broker.",
    valid=at_least(1),
    importance=HIGH,
    dynamic=CLUSTER_WIDE,
    no_effect="one fetcher per source broker carries all partitions",
)
NUM_REPLICA_ALTER_LOG_DIRS_THREADS = replication.optional_int32(
    "num.replica.alter.log.dirs.threads",
    "Threads that move replicas between data directories.",
    importance=HIGH,
    no_effect=NOT_YET,
)
REPLICA_LAG_TIME_MAX_MS = replication.int64(
    "replica.lag.time.max.ms",
    30_000,
    "Time after which a follower that has not caught up leaves the in-sync set.",
    importance=HIGH,
)
REPLICA_FETCH_MAX_BYTES = replication.int32(
    "replica.fetch.max.bytes", 1_048_576, "Bytes per partition a follower asks for.", valid=at_least(0)
)
REPLICA_FETCH_RESPONSE_MAX_BYTES = replication.int32(
    "replica.fetch.response.max.bytes", 10_485_760, "Bytes over all partitions a follower asks for.", valid=at_least(0)
)
REPLICA_FETCH_MIN_BYTES = replication.int32(
    "replica.fetch.min.bytes", 1, "Bytes a follower waits for.", importance=HIGH
)
REPLICA_FETCH_WAIT_MAX_MS = replication.int32(
    "replica.fetch.wait.max.ms", 500, "How long a follower waits for those bytes.", importance=HIGH
)
REPLICA_FETCH_BACKOFF_MS = replication.int32(
    "replica.fetch.backoff.ms", 1_000, "Wait of a follower after a failed fetch.", valid=at_least(0)
)
REPLICA_SOCKET_TIMEOUT_MS = replication.int32(
    "replica.socket.timeout.ms", 30_000, "Socket timeout of a follower's requests.", importance=HIGH
)
REPLICA_SOCKET_RECEIVE_BUFFER_BYTES = replication.int32(
    "replica.socket.receive.buffer.bytes",
    65_536,
    "Socket receive buffer of a follower.",
    importance=HIGH,
    no_effect=NOT_YET,
)
REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS = replication.int64(
    "replica.high.watermark.checkpoint.interval.ms",
    5_000,
    "How often high watermarks are written to disk.",
    importance=HIGH,
)
REPLICA_SELECTOR_CLASS = replication.optional_text(
    "replica.selector.class", "Class that picks the replica a consumer should read from."
)
FOLLOWER_FETCH_LAST_TIERED_OFFSET_ENABLE = replication.boolean(
    "follower.fetch.last.tiered.offset.enable",
    False,
    "Let an empty follower start at the end of the tiered part of the log.",
    dynamic=CLUSTER_WIDE,
    no_effect=NOT_YET,
)
CONTROLLER_SOCKET_TIMEOUT_MS = replication.int32(
    "controller.socket.timeout.ms",
    30_000,
    "Socket timeout of requests from the controller to brokers.",
    no_effect=NOT_YET,
)
# Can only be set dynamically; None means no throttle.
LEADER_REPLICATION_THROTTLED_RATE = replication.optional_int64(
    "leader.replication.throttled.rate",
    "Bytes a second leaders send for throttled replicas.",
    valid=at_least(0),
    dynamic=CLUSTER_WIDE,
    internal=True,
)
FOLLOWER_REPLICATION_THROTTLED_RATE = replication.optional_int64(
    "follower.replication.throttled.rate",
    "Bytes a second followers fetch for throttled replicas.",
    valid=at_least(0),
    dynamic=CLUSTER_WIDE,
    internal=True,
)
REPLICA_ALTER_LOG_DIRS_IO_MAX_BYTES_PER_SECOND = replication.optional_int64(
    "replica.alter.log.dirs.io.max.bytes.per.second",
    "Bytes a second used to move replicas between data directories.",
    valid=at_least(0),
    dynamic=CLUSTER_WIDE,
    internal=True,
)
