"""The settings of a group (consumer, share and streams groups), in the order of Kafka's definition."""

from typing import Any, Final

from ottla.model.section import Section
from ottla.model.setting import Setting
from ottla.model.validators import OneOf, ShareOffsetReset, at_least

group = Section("Groups", "Set per group; without a value of its own a group follows the broker setting named here.")

CONSUMER_SESSION_TIMEOUT_MS = group.int32(
    "consumer.session.timeout.ms",
    45_000,
    "Time without a heartbeat after which a member is removed.",
    valid=at_least(1),
    synonyms=("group.consumer.session.timeout.ms",),
)
CONSUMER_HEARTBEAT_INTERVAL_MS = group.int32(
    "consumer.heartbeat.interval.ms",
    5_000,
    "How often members send heartbeats.",
    valid=at_least(1),
    synonyms=("group.consumer.heartbeat.interval.ms",),
)
CONSUMER_ASSIGNMENT_INTERVAL_MS = group.int32(
    "consumer.assignment.interval.ms",
    1_000,
    "Shortest time between two assignments.",
    valid=at_least(0),
    synonyms=("group.consumer.assignment.interval.ms",),
)
SHARE_SESSION_TIMEOUT_MS = group.int32(
    "share.session.timeout.ms",
    45_000,
    "Time without a heartbeat after which a member of a share group is removed.",
    valid=at_least(1),
    synonyms=("group.share.session.timeout.ms",),
)
SHARE_HEARTBEAT_INTERVAL_MS = group.int32(
    "share.heartbeat.interval.ms",
    5_000,
    "How often members of a share group send heartbeats.",
    valid=at_least(1),
    synonyms=("group.share.heartbeat.interval.ms",),
)
SHARE_RECORD_LOCK_DURATION_MS = group.int32(
    "share.record.lock.duration.ms",
    30_000,
    "Time a consumer has for a record before others get it.",
    valid=at_least(1_000),
    synonyms=("group.share.record.lock.duration.ms",),
)
SHARE_DELIVERY_COUNT_LIMIT = group.int32(
    "share.delivery.count.limit",
    5,
    "Times a record is delivered before it is given up.",
    valid=at_least(2),
    synonyms=("group.share.delivery.count.limit",),
)
SHARE_PARTITION_MAX_RECORD_LOCKS = group.int32(
    "share.partition.max.record.locks",
    2_000,
    "Most records of a partition that are out at the same time.",
    valid=at_least(100),
    synonyms=("group.share.partition.max.record.locks",),
)
SHARE_AUTO_OFFSET_RESET = group.text(
    "share.auto.offset.reset",
    "latest",
    "Where a new share group starts: earliest, latest or by_duration:<ISO 8601>.",
    valid=ShareOffsetReset(),
)
SHARE_ISOLATION_LEVEL = group.text(
    "share.isolation.level",
    "read_uncommitted",
    "Whether records of open and aborted transactions are delivered.",
    valid=OneOf(("read_committed", "read_uncommitted")),
)
SHARE_RENEW_ACKNOWLEDGE_ENABLE = group.boolean(
    "share.renew.acknowledge.enable", True, "Allow consumers to prolong the lock of a record."
)
SHARE_ASSIGNMENT_INTERVAL_MS = group.int32(
    "share.assignment.interval.ms",
    1_000,
    "Shortest time between two assignments of a share group.",
    valid=at_least(0),
    synonyms=("group.share.assignment.interval.ms",),
)
STREAMS_SESSION_TIMEOUT_MS = group.int32(
    "streams.session.timeout.ms",
    45_000,
    "Time without a heartbeat after which a member of a streams group is removed.",
    valid=at_least(1),
    synonyms=("group.streams.session.timeout.ms",),
)
STREAMS_HEARTBEAT_INTERVAL_MS = group.int32(
    "streams.heartbeat.interval.ms",
    5_000,
    "How often members of a streams group send heartbeats.",
    valid=at_least(1),
    synonyms=("group.streams.heartbeat.interval.ms",),
)
STREAMS_NUM_STANDBY_REPLICAS = group.int32(
    "streams.num.standby.replicas",
    0,
    "Standby copies of each task.",
    valid=at_least(0),
    synonyms=("group.streams.num.standby.replicas",),
)
STREAMS_INITIAL_REBALANCE_DELAY_MS = group.int32(
    "streams.initial.rebalance.delay.ms",
    3_000,
    "Wait for more members before the first assignment.",
    valid=at_least(0),
    synonyms=("group.streams.initial.rebalance.delay.ms",),
)
STREAMS_ASSIGNMENT_INTERVAL_MS = group.int32(
    "streams.assignment.interval.ms",
    1_000,
    "Shortest time between two assignments of a streams group.",
    valid=at_least(0),
    synonyms=("group.streams.assignment.interval.ms",),
)

# What Kafka does not have: for every share consumer of the group, whoever wrote it (docs/queues.md).
SHARE_KEY_ORDERED = group.boolean(
    "ottla.share.key.ordered",
    False,
    "Hand out no record of a share group while an earlier one with the same key is not dealt with.",
)
SHARE_RETRY_BACKOFF_MS = group.int32(
    "ottla.share.retry.backoff.ms",
    0,
    "Pause before a released record is handed out again; doubled with each delivery. 0: none.",
    valid=at_least(0),
)
SHARE_RETRY_BACKOFF_MAX_MS = group.int32(
    "ottla.share.retry.backoff.max.ms", 60_000, "Longest such pause.", valid=at_least(0)
)
SHARE_DLQ_TOPIC = group.text(
    "ottla.share.dlq.topic",
    "",
    "Topic that gets the records which are rejected or reach the delivery limit. Empty: they are given up.",
)
SHARE_DELAYED_DELIVERY_ENABLE = group.boolean(
    "ottla.share.delayed.delivery.enable",
    False,
    "Hand out records with a header ottla.deliver-at or ottla.delay-ms not before that time.",
)

GROUP_SETTINGS: Final[dict[str, Setting[Any]]] = group.settings
