"""What streams groups ask of the node: their internal topics; and whether the cluster has streams groups at all."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from ottla.cluster.commands.create_topics import DEFAULT, NewTopic, TopicOutcome
from ottla.groups.machine import GroupsMachine
from ottla.groups.streams.internal_topics import CreateInternalTopics, InternalTopicsFailed
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.settings.groups import GROUP_COORDINATOR_REBALANCE_PROTOCOLS
from ottla.server.coordination.host import Host
from ottla.server.coordination.hosts import Coordinators
from ottla.server.quorum.internal_topics import create_topics

if TYPE_CHECKING:
    from ottla.server.api.context import Context, Services

log = logging.getLogger(__name__)

_FIRST_LEVEL_WITH_STREAMS = 1


def check_enabled(context: Context) -> None:
    """Refuses everything about streams groups where the protocol or the feature `streams.version` is off."""
    level = context.metadata.state.features.get("streams.version", 0)
    protocols = context.settings[GROUP_COORDINATOR_REBALANCE_PROTOCOLS]
    if "streams" not in protocols or level < _FIRST_LEVEL_WITH_STREAMS:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)


def perform_effects(services: Services, groups: Coordinators[GroupsMachine]) -> None:
    """Carries out the effects of streams groups; in a new turn of the loop, so that replies need not wait for it."""

    def create_soon(effect: CreateInternalTopics, _: Host[GroupsMachine]) -> None:
        groups.loop.call_soon(_create, services, effect)

    groups.on_effect(CreateInternalTopics, create_soon)


def _create(services: Services, effect: CreateInternalTopics) -> None:
    """That topics came into being the groups hear from the cluster."""
    topics = tuple(
        NewTopic(topic.name, topic.partitions, topic.replication_factor or DEFAULT, configs=topic.configs)
        for topic in effect.topics
    )
    create_topics(services, topics).then(partial(_created, services, effect))


def _created(services: Services, effect: CreateInternalTopics, outcomes: list[TopicOutcome]) -> None:
    errors = {each.name: each.error for each in outcomes if each.error is not None}
    failed = tuple(
        (name, error.text or error.code.name)
        for name, error in errors.items()
        if error.code != ErrorCode.TOPIC_ALREADY_EXISTS
    )
    if failed:
        log.warning("internal topics of streams group %s could not be created: %s", effect.group_id, failed)
        services.groups.submit(effect.group_id, InternalTopicsFailed(effect.group_id, failed))
