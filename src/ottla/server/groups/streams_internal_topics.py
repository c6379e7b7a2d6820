"""StreamsInternalTopics: has the controller create the internal topics that streams groups need."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from ottla.cluster.commands.create_topics import DEFAULT, TopicOutcome, TopicToCreate
from ottla.groups.streams.internal_topics import CreateInternalTopics, InternalTopicsFailed
from ottla.groups.view import GroupsView
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.coordination.host import Host
from ottla.server.coordination.hosts import Coordinators
from ottla.server.loop.later import Later
from ottla.server.loop.runtime import Runtime

log = logging.getLogger(__name__)


class StreamsInternalTopics:
    """A group learns from the metadata that its topics exist; only failures are reported to it."""

    def __init__(
        self,
        runtime: Runtime,
        groups: Coordinators[GroupsView],
        create_topics: Callable[[tuple[TopicToCreate, ...]], Later[list[TopicOutcome]]],
    ) -> None:
        self._loop = runtime.loop
        self._groups = groups
        self._create_topics = create_topics

    def create_soon(self, effect: CreateInternalTopics, _: Host[GroupsView]) -> None:
        """Carry out the effect in a new turn of the loop, so that the reply to its command does not wait for it."""
        self._loop.call_soon(self._create, effect)

    def _create(self, effect: CreateInternalTopics) -> None:
        topics = tuple(
            TopicToCreate(topic.name, topic.partitions, topic.replication_factor or DEFAULT, configs=topic.configs)
            for topic in effect.topics
        )
        refused = [TopicOutcome(topic.name, ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)) for topic in topics]
        self._create_topics(topics).then(partial(self._created, effect), partial(self._created, effect, refused))

    def _created(self, effect: CreateInternalTopics, outcomes: list[TopicOutcome]) -> None:
        errors = {each.name: each.error for each in outcomes if each.error is not None}
        failed = tuple(
            (name, error.text or error.code.name)
            for name, error in errors.items()
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS
        )
        if failed:
            log.warning("internal topics of streams group %s could not be created: %s", effect.group_id, failed)
            self._groups.submit(effect.group_id, InternalTopicsFailed(effect.group_id, failed))
