"""The topics that are created without being described by anyone: on first use, with the broker's own settings."""

from __future__ import annotations

from ottla.cluster.commands.create_topics import NewTopic
from ottla.model.config import Config
from ottla.model.names import CONSUMER_OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC


def new_topic(name: str, settings: Config) -> NewTopic:
    """What auto-creation makes of a name; the coordinators' topics have settings of their own."""
    if name == CONSUMER_OFFSETS_TOPIC:
        return NewTopic(
            name,
            settings.get("offsets.topic.num.partitions"),
            settings.get("offsets.topic.replication.factor"),
            configs=(
                ("cleanup.policy", "compact"),
                ("segment.bytes", str(settings.get("offsets.topic.segment.bytes"))),
                ("compression.type", "producer"),
            ),
        )
    if name == TRANSACTION_STATE_TOPIC:
        return NewTopic(
            name,
            settings.get("transaction.state.log.num.partitions"),
            settings.get("transaction.state.log.replication.factor"),
            configs=(
                ("unclean.leader.election.enable", "false"),
                ("compression.type", "uncompressed"),
                ("cleanup.policy", "compact"),
                ("min.insync.replicas", str(settings.get("transaction.state.log.min.isr"))),
                ("segment.bytes", str(settings.get("transaction.state.log.segment.bytes"))),
            ),
        )
    if name == SHARE_STATE_TOPIC:
        return NewTopic(
            name,
            settings.get("share.coordinator.state.topic.num.partitions"),
            settings.get("share.coordinator.state.topic.replication.factor"),
            configs=(
                ("cleanup.policy", "delete"),
                ("compression.type", "producer"),
                ("segment.bytes", str(settings.get("share.coordinator.state.topic.segment.bytes"))),
                ("min.insync.replicas", str(settings.get("share.coordinator.state.topic.min.isr"))),
                ("retention.ms", "-1"),
            ),
        )
    return NewTopic(name, settings.get("num.partitions"), settings.get("default.replication.factor"))
