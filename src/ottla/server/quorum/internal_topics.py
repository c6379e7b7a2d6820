"""Topics that are created on first use, with the broker's own settings: internal topics and auto-created ones.

Kafka's defaults demand three replicas of its internal topics, so a single node could not coordinate anything until an
operator changes them. Here settings without an explicit value adapt to the number of brokers; explicit values are
obeyed, or the creation is refused.
"""

from __future__ import annotations

from ottla.cluster.commands.create_topics import TopicOutcome, TopicToCreate
from ottla.cluster.state import ClusterState
from ottla.model import limits
from ottla.model.config import Config
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import AUDIT_TOPIC, CONSUMER_OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from ottla.model.setting import Setting
from ottla.model.settings.groups import (
    OFFSETS_TOPIC_NUM_PARTITIONS,
    OFFSETS_TOPIC_REPLICATION_FACTOR,
    OFFSETS_TOPIC_SEGMENT_BYTES,
)
from ottla.model.settings.node import DEFAULT_REPLICATION_FACTOR, NUM_PARTITIONS
from ottla.model.settings.share import (
    SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR,
    SHARE_COORDINATOR_STATE_TOPIC_NUM_PARTITIONS,
    SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR,
    SHARE_COORDINATOR_STATE_TOPIC_SEGMENT_BYTES,
)
from ottla.model.settings.transactions import (
    TRANSACTION_STATE_LOG_MIN_ISR,
    TRANSACTION_STATE_LOG_NUM_PARTITIONS,
    TRANSACTION_STATE_LOG_REPLICATION_FACTOR,
    TRANSACTION_STATE_LOG_SEGMENT_BYTES,
)
from ottla.model.topic_settings import (
    CLEANUP_POLICY,
    COMPRESSION_TYPE,
    MIN_INSYNC_REPLICAS,
    RETENTION_BYTES,
    RETENTION_MS,
    SEGMENT_BYTES,
    UNCLEAN_LEADER_ELECTION_ENABLE,
)
from ottla.server.quorum.quorum import Quorum


def brokers_expected(quorum: Quorum, state: ClusterState) -> int:
    """Return how many brokers there are or will be. If this node is a voter, all voters are assumed to be brokers;
    otherwise the first node to start would create the internal topics with itself as the only replica.
    """
    return max(len(state.brokers), len(quorum.voters) if quorum.is_voter else 0)


def created(outcomes: list[TopicOutcome]) -> ApiError | None:
    """Return why a topic could not be created; None if it exists, whichever request created it."""
    (outcome,) = outcomes
    exists = outcome.error is not None and outcome.error.code == ErrorCode.TOPIC_ALREADY_EXISTS
    return None if exists else outcome.error


def _replicas(settings: Config, factor: Setting[int], in_sync: Setting[int] | None, brokers: int) -> tuple[int, int]:
    """Return the replication factor and min.insync.replicas: as set, or limited by the number of brokers."""
    replicas = settings[factor]
    if not settings.is_set(factor):
        replicas = min(replicas, max(brokers, 1))
    enough = settings[in_sync] if in_sync is not None else 1
    if in_sync is not None and not settings.is_set(in_sync):
        enough = min(enough, replicas)
    return replicas, enough


def new_topic(name: str, settings: Config, brokers: int) -> TopicToCreate:
    """Return the topic that auto-creation makes for a name; the coordinators' topics have special settings."""
    if name == CONSUMER_OFFSETS_TOPIC:
        replicas, _ = _replicas(settings, OFFSETS_TOPIC_REPLICATION_FACTOR, None, brokers)
        return TopicToCreate(
            name,
            settings[OFFSETS_TOPIC_NUM_PARTITIONS],
            replicas,
            configs=(
                (CLEANUP_POLICY.name, "compact"),
                (SEGMENT_BYTES.name, str(settings[OFFSETS_TOPIC_SEGMENT_BYTES])),
                (COMPRESSION_TYPE.name, "producer"),
            ),
        )
    if name == TRANSACTION_STATE_TOPIC:
        replicas, enough = _replicas(
            settings, TRANSACTION_STATE_LOG_REPLICATION_FACTOR, TRANSACTION_STATE_LOG_MIN_ISR, brokers
        )
        return TopicToCreate(
            name,
            settings[TRANSACTION_STATE_LOG_NUM_PARTITIONS],
            replicas,
            configs=(
                (UNCLEAN_LEADER_ELECTION_ENABLE.name, "false"),
                (COMPRESSION_TYPE.name, "uncompressed"),
                (CLEANUP_POLICY.name, "compact"),
                (MIN_INSYNC_REPLICAS.name, str(enough)),
                (SEGMENT_BYTES.name, str(settings[TRANSACTION_STATE_LOG_SEGMENT_BYTES])),
            ),
        )
    if name == SHARE_STATE_TOPIC:
        replicas, enough = _replicas(
            settings,
            SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR,
            SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR,
            brokers,
        )
        return TopicToCreate(
            name,
            settings[SHARE_COORDINATOR_STATE_TOPIC_NUM_PARTITIONS],
            replicas,
            configs=(
                (CLEANUP_POLICY.name, "delete"),
                (COMPRESSION_TYPE.name, "producer"),
                (SEGMENT_BYTES.name, str(settings[SHARE_COORDINATOR_STATE_TOPIC_SEGMENT_BYTES])),
                (MIN_INSYNC_REPLICAS.name, str(enough)),
                (RETENTION_MS.name, "-1"),
            ),
        )
    if name == AUDIT_TOPIC:
        return _audit_topic(settings)
    return TopicToCreate(name, settings[NUM_PARTITIONS], settings[DEFAULT_REPLICATION_FACTOR])


def _audit_topic(settings: Config) -> TopicToCreate:
    """Return the topic of the audit log, with one partition: its bounds are those of the topic, and it is in order."""
    return TopicToCreate(
        AUDIT_TOPIC,
        1,
        settings[DEFAULT_REPLICATION_FACTOR],
        configs=(
            (CLEANUP_POLICY.name, "delete"),
            (RETENTION_MS.name, str(limits.AUDIT_RETENTION_MS)),
            (RETENTION_BYTES.name, str(limits.AUDIT_RETENTION_BYTES)),
            (SEGMENT_BYTES.name, str(limits.AUDIT_SEGMENT_BYTES)),
        ),
    )
