"""The settings of a group (consumer, share and streams groups), in the order of Kafka's definition.

Most are declared from a broker setting: its value holds when the group does not set one, and two other broker settings
bound the group's value.
"""

from typing import Any, Final

from ottla.model.section import Section
from ottla.model.setting import Setting
from ottla.model.settings import groups, share
from ottla.model.validators import DeadLetterTopic, OneOf, ShareOffsetReset, at_least

group = Section("Groups", "Set per group; without a value of its own a group follows the broker setting named here.")

CONSUMER_SESSION_TIMEOUT_MS = group.following(
    "consumer.session.timeout.ms",
    groups.GROUP_CONSUMER_SESSION_TIMEOUT_MS,
    "Time without a heartbeat after which a member is removed.",
    low=groups.GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS,
    high=groups.GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS,
)
CONSUMER_HEARTBEAT_INTERVAL_MS = group.following(
    "consumer.heartbeat.interval.ms",
    groups.GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS,
    "How often members send heartbeats.",
    low=groups.GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS,
    high=groups.GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS,
)
CONSUMER_ASSIGNMENT_INTERVAL_MS = group.following(
    "consumer.assignment.interval.ms",
    groups.GROUP_CONSUMER_ASSIGNMENT_INTERVAL_MS,
    "Shortest time between two assignments.",
    low=groups.GROUP_CONSUMER_MIN_ASSIGNMENT_INTERVAL_MS,
    high=groups.GROUP_CONSUMER_MAX_ASSIGNMENT_INTERVAL_MS,
)
SHARE_SESSION_TIMEOUT_MS = group.following(
    "share.session.timeout.ms",
    share.GROUP_SHARE_SESSION_TIMEOUT_MS,
    "Time without a heartbeat after which a member of a share group is removed.",
    low=share.GROUP_SHARE_MIN_SESSION_TIMEOUT_MS,
    high=share.GROUP_SHARE_MAX_SESSION_TIMEOUT_MS,
)
SHARE_HEARTBEAT_INTERVAL_MS = group.following(
    "share.heartbeat.interval.ms",
    share.GROUP_SHARE_HEARTBEAT_INTERVAL_MS,
    "How often members of a share group send heartbeats.",
    low=share.GROUP_SHARE_MIN_HEARTBEAT_INTERVAL_MS,
    high=share.GROUP_SHARE_MAX_HEARTBEAT_INTERVAL_MS,
)
SHARE_RECORD_LOCK_DURATION_MS = group.following(
    "share.record.lock.duration.ms",
    share.GROUP_SHARE_RECORD_LOCK_DURATION_MS,
    low=share.GROUP_SHARE_MIN_RECORD_LOCK_DURATION_MS,
    high=share.GROUP_SHARE_MAX_RECORD_LOCK_DURATION_MS,
    valid=at_least(1_000),
)
SHARE_DELIVERY_COUNT_LIMIT = group.following(
    "share.delivery.count.limit",
    share.GROUP_SHARE_DELIVERY_COUNT_LIMIT,
    low=share.GROUP_SHARE_MIN_DELIVERY_COUNT_LIMIT,
    high=share.GROUP_SHARE_MAX_DELIVERY_COUNT_LIMIT,
    valid=at_least(2),
)
SHARE_PARTITION_MAX_RECORD_LOCKS = group.following(
    "share.partition.max.record.locks",
    share.GROUP_SHARE_PARTITION_MAX_RECORD_LOCKS,
    low=share.GROUP_SHARE_MIN_PARTITION_MAX_RECORD_LOCKS,
    high=share.GROUP_SHARE_MAX_PARTITION_MAX_RECORD_LOCKS,
    valid=at_least(100),
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
SHARE_ASSIGNMENT_INTERVAL_MS = group.following(
    "share.assignment.interval.ms",
    share.GROUP_SHARE_ASSIGNMENT_INTERVAL_MS,
    low=share.GROUP_SHARE_MIN_ASSIGNMENT_INTERVAL_MS,
    high=share.GROUP_SHARE_MAX_ASSIGNMENT_INTERVAL_MS,
)
STREAMS_SESSION_TIMEOUT_MS = group.following(
    "streams.session.timeout.ms",
    groups.GROUP_STREAMS_SESSION_TIMEOUT_MS,
    "Time without a heartbeat after which a member of a streams group is removed.",
    low=groups.GROUP_STREAMS_MIN_SESSION_TIMEOUT_MS,
    high=groups.GROUP_STREAMS_MAX_SESSION_TIMEOUT_MS,
)
STREAMS_HEARTBEAT_INTERVAL_MS = group.following(
    "streams.heartbeat.interval.ms",
    groups.GROUP_STREAMS_HEARTBEAT_INTERVAL_MS,
    "How often members of a streams group send heartbeats.",
    low=groups.GROUP_STREAMS_MIN_HEARTBEAT_INTERVAL_MS,
    high=groups.GROUP_STREAMS_MAX_HEARTBEAT_INTERVAL_MS,
)
STREAMS_NUM_STANDBY_REPLICAS = group.following(
    "streams.num.standby.replicas",
    groups.GROUP_STREAMS_NUM_STANDBY_REPLICAS,
    high=groups.GROUP_STREAMS_MAX_STANDBY_REPLICAS,
)
STREAMS_INITIAL_REBALANCE_DELAY_MS = group.following(
    "streams.initial.rebalance.delay.ms",
    groups.GROUP_STREAMS_INITIAL_REBALANCE_DELAY_MS,
)
STREAMS_ASSIGNMENT_INTERVAL_MS = group.following(
    "streams.assignment.interval.ms",
    groups.GROUP_STREAMS_ASSIGNMENT_INTERVAL_MS,
    low=groups.GROUP_STREAMS_MIN_ASSIGNMENT_INTERVAL_MS,
    high=groups.GROUP_STREAMS_MAX_ASSIGNMENT_INTERVAL_MS,
)

# Settings that Kafka does not have; they apply to all share consumers of the group, whichever client they use
# (docs/queues.md).
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
    valid=DeadLetterTopic(),
)
SHARE_DELAYED_DELIVERY_ENABLE = group.boolean(
    "ottla.share.delayed.delivery.enable",
    False,
    "Hand out records with a header ottla.deliver-at or ottla.delay-ms not before that time.",
)

GROUP_SETTINGS: Final[dict[str, Setting[Any]]] = group.settings
