"""The topics that are created without being described by anyone: on first use, with the broker's own settings.

Kafka's defaults want three replicas of its internal topics, and a single node then coordinates nothing until somebody
has changed them. Here what nobody has set adapts to the brokers there are; what was set is done, or refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.cluster.commands.create_topics import NewTopic, TopicOutcome
from ottla.model.config import Config
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import CONSUMER_OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from ottla.server.loop.later import Later

if TYPE_CHECKING:
    from ottla.server.api.context import Services


def create_topics(services: Services, topics: tuple[NewTopic, ...]) -> Later[list[TopicOutcome]]:
    """Has the controller create topics; what cannot be done is in the outcomes."""
    return services.channel.create_topics(topics)


def create_topic(services: Services, name: str) -> Later[ApiError | None]:
    """Creates a topic that nobody has described: None when it is there, or why it cannot be made now."""
    wanted = new_topic(name, services.configs.broker, _brokers(services))
    return create_topics(services, (wanted,)).map(created)


def _brokers(services: Services) -> int:
    """How many brokers there are, or will be: where this one is a voter, too, all voters are taken for brokers. Else
    the first of them to be up would make its internal topics for itself alone."""
    quorum = services.quorum
    return max(len(services.metadata.state.brokers), len(quorum.voters) if quorum.is_voter else 0)


def created(outcomes: list[TopicOutcome]) -> ApiError | None:
    """Why one topic could not be created; None if it is there, whoever made it."""
    (outcome,) = outcomes
    exists = outcome.error is not None and outcome.error.code == ErrorCode.TOPIC_ALREADY_EXISTS
    return None if exists else outcome.error


def _replicas(settings: Config, factor: str, in_sync: str | None, brokers: int) -> tuple[int, int]:
    """Replication factor and minimum in sync; as set, or as many as there are brokers for."""
    replicas: int = settings.get(factor)
    if not settings.is_set(factor):
        replicas = min(replicas, max(brokers, 1))
    enough: int = settings.get(in_sync) if in_sync is not None else 1
    if in_sync is not None and not settings.is_set(in_sync):
        enough = min(enough, replicas)
    return replicas, enough


def new_topic(name: str, settings: Config, brokers: int) -> NewTopic:
    """What auto-creation makes of a name; the coordinators' topics have settings of their own."""
    if name == CONSUMER_OFFSETS_TOPIC:
        replicas, _ = _replicas(settings, "offsets.topic.replication.factor", None, brokers)
        return NewTopic(
            name,
            settings.get("offsets.topic.num.partitions"),
            replicas,
            configs=(
                ("cleanup.policy", "compact"),
                ("segment.bytes", str(settings.get("offsets.topic.segment.bytes"))),
                ("compression.type", "producer"),
            ),
        )
    if name == TRANSACTION_STATE_TOPIC:
        replicas, enough = _replicas(
            settings, "transaction.state.log.replication.factor", "transaction.state.log.min.isr", brokers
        )
        return NewTopic(
            name,
            settings.get("transaction.state.log.num.partitions"),
            replicas,
            configs=(
                ("unclean.leader.election.enable", "false"),
                ("compression.type", "uncompressed"),
                ("cleanup.policy", "compact"),
                ("min.insync.replicas", str(enough)),
                ("segment.bytes", str(settings.get("transaction.state.log.segment.bytes"))),
            ),
        )
    if name == SHARE_STATE_TOPIC:
        replicas, enough = _replicas(
            settings,
            "share.coordinator.state.topic.replication.factor",
            "share.coordinator.state.topic.min.isr",
            brokers,
        )
        return NewTopic(
            name,
            settings.get("share.coordinator.state.topic.num.partitions"),
            replicas,
            configs=(
                ("cleanup.policy", "delete"),
                ("compression.type", "producer"),
                ("segment.bytes", str(settings.get("share.coordinator.state.topic.segment.bytes"))),
                ("min.insync.replicas", str(enough)),
                ("retention.ms", "-1"),
            ),
        )
    return NewTopic(name, settings.get("num.partitions"), settings.get("default.replication.factor"))
