"""The topics that are created without being described by anyone: on first use, with the broker's own settings.

Kafka's defaults want three replicas of its internal topics, and a single node then coordinates nothing until somebody
has changed them. Here what nobody has set adapts to the brokers there are; what was set is done, or refused.
"""

from __future__ import annotations

from ottla.cluster.commands.create_topics import NewTopic, TopicOutcome
from ottla.cluster.state import ClusterState
from ottla.model.config import Config
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import CONSUMER_OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC
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
    RETENTION_MS,
    SEGMENT_BYTES,
    UNCLEAN_LEADER_ELECTION_ENABLE,
)
from ottla.server.quorum.quorum import Quorum


def brokers_expected(quorum: Quorum, state: ClusterState) -> int:
    """How many brokers there are, or will be: where this one is a voter, too, all voters are taken for brokers. Else
    the first of them to be up would make its internal topics for itself alone."""
    return max(len(state.brokers), len(quorum.voters) if quorum.is_voter else 0)


def created(outcomes: list[TopicOutcome]) -> ApiError | None:
    """Why one topic could not be created; None if it is there, whoever made it."""
    (outcome,) = outcomes
    exists = outcome.error is not None and outcome.error.code == ErrorCode.TOPIC_ALREADY_EXISTS
    return None if exists else outcome.error


def _replicas(settings: Config, factor: Setting[int], in_sync: Setting[int] | None, brokers: int) -> tuple[int, int]:
    """Replication factor and minimum in sync; as set, or as many as there are brokers for."""
    replicas = settings[factor]
    if not settings.is_set(factor):
        replicas = min(replicas, max(brokers, 1))
    enough = settings[in_sync] if in_sync is not None else 1
    if in_sync is not None and not settings.is_set(in_sync):
        enough = min(enough, replicas)
    return replicas, enough


def new_topic(name: str, settings: Config, brokers: int) -> NewTopic:
    """What auto-creation makes of a name; the coordinators' topics have settings of their own."""
    if name == CONSUMER_OFFSETS_TOPIC:
        replicas, _ = _replicas(settings, OFFSETS_TOPIC_REPLICATION_FACTOR, None, brokers)
        return NewTopic(
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
        return NewTopic(
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
        return NewTopic(
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
    return NewTopic(name, settings[NUM_PARTITIONS], settings[DEFAULT_REPLICATION_FACTOR])
