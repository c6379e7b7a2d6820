"""Groups. Consumer groups, classic and new, and streams groups."""

from ottla.model.limits import INT32_MAX
from ottla.model.section import CLUSTER_WIDE, HIGH, Section
from ottla.model.setting import NOT_YET
from ottla.model.validators import Items, OneOf, at_least

groups = Section("Groups", "Consumer groups, classic and new, and streams groups.")

GROUP_COORDINATOR_REBALANCE_PROTOCOLS = groups.items(
    "group.coordinator.rebalance.protocols",
    (
        "classic",
        "consumer",
        "streams",
    ),
    "Group protocols that are served.",
    valid=Items(("consumer", "classic", "share", "streams"), empty=False),
)
GROUP_COORDINATOR_THREADS = groups.int32(
    "group.coordinator.threads",
    4,
    "Threads of the group coordinator.",
    valid=at_least(1),
    importance=HIGH,
    no_effect=NOT_YET,
)
GROUP_COORDINATOR_BACKGROUND_THREADS = groups.int32(
    "group.coordinator.background.threads",
    2,
    "Threads for its work behind the scenes.",
    valid=at_least(1),
    importance=HIGH,
    no_effect=NOT_YET,
)
GROUP_COORDINATOR_APPEND_LINGER_MS = groups.int32(
    "group.coordinator.append.linger.ms",
    -1,
    "Time the coordinator collects records before it writes them; -1 adapts by itself.",
    valid=at_least(-1),
    no_effect="what is decided is written at once",
)
GROUP_COORDINATOR_CACHED_BUFFER_MAX_BYTES = groups.int32(
    "group.coordinator.cached.buffer.max.bytes",
    1_048_588,
    "Largest write buffer the coordinator keeps for the next write.",
    valid=at_least(524_288),
    dynamic=CLUSTER_WIDE,
    no_effect=NOT_YET,
)
OFFSETS_COMMIT_TIMEOUT_MS = groups.int32(
    "offsets.commit.timeout.ms", 5_000, "How long a commit waits to be replicated.", valid=at_least(1), importance=HIGH
)
OFFSETS_LOAD_BUFFER_SIZE = groups.int32(
    "offsets.load.buffer.size",
    5_242_880,
    "Bytes read at once when a coordinator loads its state.",
    valid=at_least(1),
    importance=HIGH,
    no_effect=NOT_YET,
)
OFFSETS_TOPIC_REPLICATION_FACTOR = groups.int16(
    "offsets.topic.replication.factor", 3, "Replicas of __consumer_offsets.", valid=at_least(1), importance=HIGH
)
OFFSETS_TOPIC_NUM_PARTITIONS = groups.int32(
    "offsets.topic.num.partitions", 50, "Partitions of __consumer_offsets.", valid=at_least(1), importance=HIGH
)
OFFSETS_TOPIC_SEGMENT_BYTES = groups.int32(
    "offsets.topic.segment.bytes",
    104_857_600,
    "Segment size of __consumer_offsets.",
    valid=at_least(1),
    importance=HIGH,
)
OFFSETS_TOPIC_COMPRESSION_CODEC = groups.int32(
    "offsets.topic.compression.codec",
    0,
    "Codec (by number) of __consumer_offsets.",
    importance=HIGH,
    no_effect=NOT_YET,
)
OFFSET_METADATA_MAX_BYTES = groups.int32(
    "offset.metadata.max.bytes", 4_096, "Longest text a consumer may store with an offset.", importance=HIGH
)
OFFSETS_RETENTION_MINUTES = groups.int32(
    "offsets.retention.minutes",
    10_080,
    "Time the offsets of an empty group are kept.",
    valid=at_least(1),
    importance=HIGH,
)
OFFSETS_RETENTION_CHECK_INTERVAL_MS = groups.int64(
    "offsets.retention.check.interval.ms",
    600_000,
    "How often expired offsets are looked for.",
    valid=at_least(1),
    importance=HIGH,
)
GROUP_MIN_SESSION_TIMEOUT_MS = groups.int32(
    "group.min.session.timeout.ms", 6_000, "Shortest session timeout of a classic member."
)
GROUP_MAX_SESSION_TIMEOUT_MS = groups.int32(
    "group.max.session.timeout.ms", 1_800_000, "Longest session timeout of a classic member."
)
GROUP_INITIAL_REBALANCE_DELAY_MS = groups.int32(
    "group.initial.rebalance.delay.ms", 3_000, "Wait for more members before the first rebalance of a classic group."
)
GROUP_MAX_SIZE = groups.int32("group.max.size", INT32_MAX, "Most members of a classic group.", valid=at_least(1))
GROUP_CONSUMER_SESSION_TIMEOUT_MS = groups.int32(
    "group.consumer.session.timeout.ms", 45_000, "Session timeout of consumer groups.", valid=at_least(1)
)
GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS = groups.int32(
    "group.consumer.min.session.timeout.ms",
    45_000,
    "Shortest session timeout a consumer group may have.",
    valid=at_least(1),
)
GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS = groups.int32(
    "group.consumer.max.session.timeout.ms",
    60_000,
    "Longest session timeout a consumer group may have.",
    valid=at_least(1),
)
GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS = groups.int32(
    "group.consumer.heartbeat.interval.ms", 5_000, "Heartbeat interval of consumer groups.", valid=at_least(1)
)
GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS = groups.int32(
    "group.consumer.min.heartbeat.interval.ms",
    5_000,
    "Shortest heartbeat interval a consumer group may have.",
    valid=at_least(1),
)
GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS = groups.int32(
    "group.consumer.max.heartbeat.interval.ms",
    15_000,
    "Longest heartbeat interval a consumer group may have.",
    valid=at_least(1),
)
GROUP_CONSUMER_MAX_SIZE = groups.int32(
    "group.consumer.max.size", INT32_MAX, "Most members of a consumer group.", valid=at_least(1)
)
GROUP_CONSUMER_ASSIGNORS = groups.items(
    "group.consumer.assignors",
    (
        "uniform",
        "range",
    ),
    "Assignors on the server, the first being the default.",
    valid=Items(empty=False),
)
GROUP_CONSUMER_MIGRATION_POLICY = groups.text(
    "group.consumer.migration.policy",
    "bidirectional",
    "Which ways a group may change between the classic and the consumer protocol.",
    valid=OneOf(("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"), ignore_case=True),
)
GROUP_CONSUMER_ASSIGNMENT_INTERVAL_MS = groups.int32(
    "group.consumer.assignment.interval.ms",
    1_000,
    "Shortest time between two assignments of a consumer group.",
    valid=at_least(0),
    dynamic=CLUSTER_WIDE,
)
GROUP_CONSUMER_MIN_ASSIGNMENT_INTERVAL_MS = groups.int32(
    "group.consumer.min.assignment.interval.ms", 0, "Smallest such time a consumer group may set.", valid=at_least(0)
)
GROUP_CONSUMER_MAX_ASSIGNMENT_INTERVAL_MS = groups.int32(
    "group.consumer.max.assignment.interval.ms",
    15_000,
    "Largest such time a consumer group may set.",
    valid=at_least(0),
)
GROUP_CONSUMER_REGEX_REFRESH_INTERVAL_MS = groups.int32(
    "group.consumer.regex.refresh.interval.ms",
    600_000,
    "How often subscribed patterns are matched against the topics again.",
    valid=at_least(10_000),
    internal=True,
)
GROUP_STREAMS_SESSION_TIMEOUT_MS = groups.int32(
    "group.streams.session.timeout.ms", 45_000, "Session timeout of streams groups.", valid=at_least(1)
)
GROUP_STREAMS_MIN_SESSION_TIMEOUT_MS = groups.int32(
    "group.streams.min.session.timeout.ms",
    45_000,
    "Shortest session timeout a streams group may have.",
    valid=at_least(1),
)
GROUP_STREAMS_MAX_SESSION_TIMEOUT_MS = groups.int32(
    "group.streams.max.session.timeout.ms",
    60_000,
    "Longest session timeout a streams group may have.",
    valid=at_least(1),
)
GROUP_STREAMS_HEARTBEAT_INTERVAL_MS = groups.int32(
    "group.streams.heartbeat.interval.ms", 5_000, "Heartbeat interval of streams groups.", valid=at_least(1)
)
GROUP_STREAMS_MIN_HEARTBEAT_INTERVAL_MS = groups.int32(
    "group.streams.min.heartbeat.interval.ms",
    5_000,
    "Shortest heartbeat interval a streams group may have.",
    valid=at_least(1),
)
GROUP_STREAMS_MAX_HEARTBEAT_INTERVAL_MS = groups.int32(
    "group.streams.max.heartbeat.interval.ms",
    15_000,
    "Longest heartbeat interval a streams group may have.",
    valid=at_least(1),
)
GROUP_STREAMS_MAX_SIZE = groups.int32(
    "group.streams.max.size", INT32_MAX, "Most members of a streams group.", valid=at_least(1)
)
GROUP_STREAMS_NUM_STANDBY_REPLICAS = groups.int32(
    "group.streams.num.standby.replicas", 0, "Standby copies of each task.", valid=at_least(0)
)
GROUP_STREAMS_MAX_STANDBY_REPLICAS = groups.int32(
    "group.streams.max.standby.replicas", 2, "Most standby copies a streams group may set.", valid=at_least(0)
)
GROUP_STREAMS_INITIAL_REBALANCE_DELAY_MS = groups.int32(
    "group.streams.initial.rebalance.delay.ms",
    3_000,
    "Wait for more members before the first assignment of a streams group.",
    valid=at_least(0),
)
GROUP_STREAMS_ASSIGNMENT_INTERVAL_MS = groups.int32(
    "group.streams.assignment.interval.ms",
    1_000,
    "Shortest time between two assignments of a streams group.",
    valid=at_least(0),
    dynamic=CLUSTER_WIDE,
)
GROUP_STREAMS_MIN_ASSIGNMENT_INTERVAL_MS = groups.int32(
    "group.streams.min.assignment.interval.ms", 0, "Smallest such time a streams group may set.", valid=at_least(0)
)
GROUP_STREAMS_MAX_ASSIGNMENT_INTERVAL_MS = groups.int32(
    "group.streams.max.assignment.interval.ms", 15_000, "Largest such time a streams group may set.", valid=at_least(0)
)
