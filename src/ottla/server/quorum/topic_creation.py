"""Topics that this node has the controller create: those that nobody described, and those of the coordinators."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.client.errors import ClientError, error_code
from ottla.cluster.commands.create_topics import CreateTopics, NewTopic, TopicOutcome
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.loop.later import FAILED, Later
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest

if TYPE_CHECKING:
    from ottla.server.quorum.controller_link import ControllerChannel

log = logging.getLogger(__name__)

_Wanted = CreateTopicsRequest.CreatableTopic


def create_topics(channel: ControllerChannel, topics: tuple[NewTopic, ...]) -> Later[list[TopicOutcome]]:
    """What became of them, once this node knows of those that were made."""
    controller = channel.services.controller
    if not controller.active:
        return channel.later(_create_elsewhere(channel, topics))
    made: Later[list[TopicOutcome]] = Later()

    def settle(reply: Any) -> None:
        if not isinstance(reply, ApiError):
            made.set(reply)
        elif reply.code == ErrorCode.NOT_CONTROLLER:
            channel.later(_create_elsewhere(channel, topics)).then(made.set)
        else:
            made.set(_refused(topics, reply))

    controller.submit(CreateTopics(topics)).then(settle)
    return made


class MissingTopics:
    """Topics that clients asked for and that are not there: each is created once, and nobody waits for it."""

    def __init__(self, channel: ControllerChannel) -> None:
        self._channel = channel
        self._creating: set[str] = set()
        self._told: set[str] = set()  # why these cannot be made is in the log already

    def create(self, topics: Iterable[NewTopic]) -> None:
        """Those that are being created, or are too many at once, are left out: whoever needs them asks again."""
        room = limits.TOPICS_BEING_CREATED_MAX - len(self._creating)
        wanted = tuple(topic for topic in topics if topic.name not in self._creating)[: max(room, 0)]
        if wanted:
            self._creating.update(topic.name for topic in wanted)
            create_topics(self._channel, wanted).then(partial(self._settle, wanted))

    def _settle(self, wanted: tuple[NewTopic, ...], outcomes: list[TopicOutcome]) -> None:
        self._creating.difference_update(topic.name for topic in wanted)
        for outcome in () if outcomes is FAILED else outcomes:
            name, error = outcome.name, outcome.error
            if error is None or error.code == ErrorCode.TOPIC_ALREADY_EXISTS:
                self._told.discard(name)
            elif name not in self._told and len(self._told) < limits.TOPICS_BEING_CREATED_MAX:
                self._told.add(name)
                log.warning("topic %s, which a client asked for, cannot be created: %s", name, error)


async def _create_elsewhere(channel: ControllerChannel, topics: tuple[NewTopic, ...]) -> list[TopicOutcome]:
    wanted = [_wanted(topic) for topic in topics]
    try:
        answer = await channel.ask(CreateTopicsRequest(topics=wanted, timeout_ms=limits.CONTROLLER_ANSWER_MS))
    except ClientError as error:
        return _refused(topics, ApiError(ErrorCode.REQUEST_TIMED_OUT, str(error)))
    outcomes = [
        TopicOutcome(
            each.name,
            ApiError(error_code(each.error_code), each.error_message) if each.error_code else None,
            each.topic_id,
            each.num_partitions,
            each.replication_factor,
        )
        for each in answer.topics
    ]
    made = [outcome.id for outcome in outcomes if outcome.error is None]
    metadata = channel.services.metadata
    try:
        async with asyncio.timeout(limits.CONTROLLER_ANSWER_MS / 1000):
            await metadata.until(lambda: all(each in metadata.state.topic_by_id for each in made))
    except TimeoutError:
        log.warning("this node has not heard of the topics that the controller made")
    return outcomes


def _refused(topics: tuple[NewTopic, ...], error: ApiError) -> list[TopicOutcome]:
    return [TopicOutcome(topic.name, error) for topic in topics]


def _wanted(topic: NewTopic) -> _Wanted:
    return _Wanted(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            _Wanted.CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in topic.assignments
        ],
        configs=[_Wanted.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs],
    )
