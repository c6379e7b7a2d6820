"""Share groups. Queues over topics: locks, deliveries and the state behind them."""

from ottla.model.section import CLUSTER_WIDE, HIGH, LOW, Section
from ottla.model.setting import NOT_YET
from ottla.model.validators import Items, at_least, between

share = Section("Share groups", "Queues over topics: locks, deliveries and the state behind them.")

GROUP_SHARE_SESSION_TIMEOUT_MS = share.int32(
    "group.share.session.timeout.ms", 45_000, "Session timeout of share groups.", valid=at_least(1)
)
GROUP_SHARE_MIN_SESSION_TIMEOUT_MS = share.int32(
    "group.share.min.session.timeout.ms", 45_000, "Shortest session timeout a share group may have.", valid=at_least(1)
)
GROUP_SHARE_MAX_SESSION_TIMEOUT_MS = share.int32(
    "group.share.max.session.timeout.ms", 60_000, "Longest session timeout a share group may have.", valid=at_least(1)
)
GROUP_SHARE_HEARTBEAT_INTERVAL_MS = share.int32(
    "group.share.heartbeat.interval.ms", 5_000, "Heartbeat interval of share groups.", valid=at_least(1)
)
GROUP_SHARE_MIN_HEARTBEAT_INTERVAL_MS = share.int32(
    "group.share.min.heartbeat.interval.ms",
    5_000,
    "Shortest heartbeat interval a share group may have.",
    valid=at_least(1),
)
GROUP_SHARE_MAX_HEARTBEAT_INTERVAL_MS = share.int32(
    "group.share.max.heartbeat.interval.ms",
    15_000,
    "Longest heartbeat interval a share group may have.",
    valid=at_least(1),
)
GROUP_SHARE_MAX_SIZE = share.int32(
    "group.share.max.size", 200, "Most members of a share group.", valid=between(1, 1_000)
)
GROUP_SHARE_ASSIGNORS = share.items(
    "group.share.assignors", ("simple",), "Assignors of share groups.", valid=Items(empty=False)
)
GROUP_SHARE_ASSIGNMENT_INTERVAL_MS = share.int32(
    "group.share.assignment.interval.ms",
    1_000,
    "Shortest time between two assignments of a share group.",
    valid=at_least(0),
    dynamic=CLUSTER_WIDE,
)
GROUP_SHARE_MIN_ASSIGNMENT_INTERVAL_MS = share.int32(
    "group.share.min.assignment.interval.ms", 0, "Smallest such time a share group may set.", valid=at_least(0)
)
GROUP_SHARE_MAX_ASSIGNMENT_INTERVAL_MS = share.int32(
    "group.share.max.assignment.interval.ms", 15_000, "Largest such time a share group may set.", valid=at_least(0)
)
GROUP_SHARE_INITIALIZE_RETRY_INTERVAL_MS = share.int32(
    "group.share.initialize.retry.interval.ms",
    30_000,
    "Wait before the state of a share partition is initialised again.",
    valid=at_least(1),
    importance=LOW,
    internal=True,
)
GROUP_SHARE_DELIVERY_COUNT_LIMIT = share.int32(
    "group.share.delivery.count.limit", 5, "Times a record is delivered before it is given up.", valid=between(2, 10)
)
GROUP_SHARE_MIN_DELIVERY_COUNT_LIMIT = share.int32(
    "group.share.min.delivery.count.limit", 2, "Smallest such limit a share group may set.", valid=between(2, 5)
)
GROUP_SHARE_MAX_DELIVERY_COUNT_LIMIT = share.int32(
    "group.share.max.delivery.count.limit", 10, "Largest such limit a share group may set.", valid=between(5, 25)
)
GROUP_SHARE_RECORD_LOCK_DURATION_MS = share.int32(
    "group.share.record.lock.duration.ms",
    30_000,
    "Time a consumer has for a record before others get it.",
    valid=between(1_000, 3_600_000),
)
GROUP_SHARE_MIN_RECORD_LOCK_DURATION_MS = share.int32(
    "group.share.min.record.lock.duration.ms",
    15_000,
    "Smallest such time a share group may set.",
    valid=between(1_000, 30_000),
)
GROUP_SHARE_MAX_RECORD_LOCK_DURATION_MS = share.int32(
    "group.share.max.record.lock.duration.ms",
    60_000,
    "Largest such time a share group may set.",
    valid=between(30_000, 3_600_000),
)
GROUP_SHARE_PARTITION_MAX_RECORD_LOCKS = share.int32(
    "group.share.partition.max.record.locks",
    2_000,
    "Most records of a partition that are out at the same time.",
    valid=between(100, 10_000),
)
GROUP_SHARE_MIN_PARTITION_MAX_RECORD_LOCKS = share.int32(
    "group.share.min.partition.max.record.locks",
    100,
    "Smallest such number a share group may set.",
    valid=between(100, 2_000),
)
GROUP_SHARE_MAX_PARTITION_MAX_RECORD_LOCKS = share.int32(
    "group.share.max.partition.max.record.locks",
    4_000,
    "Largest such number a share group may set.",
    valid=between(2_000, 10_000),
)
GROUP_SHARE_MAX_SHARE_SESSIONS = share.int32(
    "group.share.max.share.sessions", 2_000, "Most share sessions of a broker.", valid=at_least(1)
)
GROUP_SHARE_PERSISTER_CLASS_NAME = share.text(
    "group.share.persister.class.name",
    "org.apache.kafka.server.share.persister.DefaultStatePersister",
    "Class that stores the state of share groups.",
    internal=True,
    no_effect=NOT_YET,
)
SHARE_FETCH_PURGATORY_PURGE_INTERVAL_REQUESTS = share.int32(
    "share.fetch.purgatory.purge.interval.requests",
    1_000,
    "Requests after which finished share fetch waits are swept out.",
    no_effect=NOT_YET,
)
SHARE_COORDINATOR_STATE_TOPIC_NUM_PARTITIONS = share.int32(
    "share.coordinator.state.topic.num.partitions",
    50,
    "Partitions of __share_group_state.",
    valid=at_least(1),
    importance=HIGH,
)
SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR = share.int16(
    "share.coordinator.state.topic.replication.factor",
    3,
    "Replicas of __share_group_state.",
    valid=at_least(1),
    importance=HIGH,
)
SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR = share.int16(
    "share.coordinator.state.topic.min.isr",
    2,
    "Replicas that must hold a record of __share_group_state.",
    valid=at_least(1),
    importance=HIGH,
)
SHARE_COORDINATOR_STATE_TOPIC_SEGMENT_BYTES = share.int32(
    "share.coordinator.state.topic.segment.bytes",
    104_857_600,
    "Segment size of __share_group_state.",
    valid=at_least(1),
    importance=HIGH,
)
SHARE_COORDINATOR_STATE_TOPIC_COMPRESSION_CODEC = share.int32(
    "share.coordinator.state.topic.compression.codec",
    0,
    "Codec (by number) of __share_group_state.",
    importance=HIGH,
    no_effect=NOT_YET,
)
SHARE_COORDINATOR_STATE_TOPIC_PRUNE_INTERVAL_MS = share.int32(
    "share.coordinator.state.topic.prune.interval.ms",
    300_000,
    "How often __share_group_state is cut at its oldest needed record.",
    valid=at_least(1),
    importance=LOW,
    internal=True,
)
SHARE_COORDINATOR_THREADS = share.int32(
    "share.coordinator.threads",
    1,
    "Threads of the share coordinator.",
    valid=at_least(1),
    no_effect=NOT_YET,
)
SHARE_COORDINATOR_SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT = share.int32(
    "share.coordinator.snapshot.update.records.per.snapshot",
    500,
    "Updates written between two full states of a share partition.",
    valid=between(0, 500),
)
SHARE_COORDINATOR_LOAD_BUFFER_SIZE = share.int32(
    "share.coordinator.load.buffer.size",
    5_242_880,
    "Bytes read at once when the share coordinator loads its state.",
    valid=at_least(1),
    importance=HIGH,
    no_effect=NOT_YET,
)
SHARE_COORDINATOR_APPEND_LINGER_MS = share.int32(
    "share.coordinator.append.linger.ms",
    -1,
    "Time the share coordinator collects records before it writes them; -1 adapts by itself.",
    valid=at_least(-1),
    no_effect="what is decided is written at once",
)
SHARE_COORDINATOR_WRITE_TIMEOUT_MS = share.int32(
    "share.coordinator.write.timeout.ms",
    5_000,
    "How long a write of share state waits to be replicated.",
    valid=at_least(1),
    importance=HIGH,
)
SHARE_COORDINATOR_COLD_PARTITION_SNAPSHOT_INTERVAL_MS = share.int32(
    "share.coordinator.cold.partition.snapshot.interval.ms",
    300_000,
    "How often full states of quiet share partitions are written.",
    valid=at_least(1),
    importance=LOW,
    internal=True,
)
SHARE_COORDINATOR_CACHED_BUFFER_MAX_BYTES = share.int32(
    "share.coordinator.cached.buffer.max.bytes",
    1_048_588,
    "Largest write buffer the share coordinator keeps for the next write.",
    valid=at_least(524_288),
    dynamic=CLUSTER_WIDE,
    no_effect=NOT_YET,
)
