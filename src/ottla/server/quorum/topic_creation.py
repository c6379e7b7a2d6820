"""TopicCreation: has the active controller create topics: missing ones that clients asked for, and internal topics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from functools import partial

from ottla.client.errors import ClientError, error_code
from ottla.cluster.commands.create_topics import CreateTopics, TopicOutcome, TopicToCreate
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.loop.later import Later
from ottla.server.loop.tasks import Tasks
from ottla.server.quorum.active_controller import ActiveController
from ottla.server.quorum.controller_link import ControllerLink
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.quorum.not_controller import NotController
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest, CreateTopicsResponse

log = logging.getLogger(__name__)

_Wanted = CreateTopicsRequest.CreatableTopic


class TopicCreation:
    def __init__(
        self, tasks: Tasks, metadata: MetadataHost, controller: ActiveController, link: ControllerLink
    ) -> None:
        self._tasks = tasks
        self._metadata = metadata
        self._controller = controller
        self._link = link
        self._missing: set[str] = set()  # auto-created topics whose creation is under way
        self._told: set[str] = set()  # topics whose failure is in the log already

    def create(self, topics: tuple[TopicToCreate, ...]) -> Later[list[TopicOutcome]]:
        """Return the outcomes, set when this node's metadata has the topics that were created."""
        if not self._controller.active:
            return self._tasks.later(self._create_elsewhere(topics))
        made: Later[list[TopicOutcome]] = Later()

        def settle(reply: list[TopicOutcome] | ApiError) -> None:
            if isinstance(reply, NotController):
                self._tasks.later(self._create_elsewhere(topics)).then(made.set, made.fail)
            else:
                made.set(_refused(topics, reply) if isinstance(reply, ApiError) else reply)

        self._controller.submit(CreateTopics(topics)).then(settle, made.fail)
        return made

    def create_missing(self, topics: Iterable[TopicToCreate]) -> None:
        """Have topics created that a client asked for, without waiting.

        Topics that are being created already, or are too many at once, are left out: a client that needs them asks
        again.
        """
        room = limits.TOPICS_BEING_CREATED_MAX - len(self._missing)
        wanted = tuple(topic for topic in topics if topic.name not in self._missing)[: max(room, 0)]
        if wanted:
            self._missing.update(topic.name for topic in wanted)
            settle = partial(self._settle_missing, wanted)
            self.create(wanted).then(settle, partial(settle, []))

    def _settle_missing(self, wanted: tuple[TopicToCreate, ...], outcomes: list[TopicOutcome]) -> None:
        self._missing.difference_update(topic.name for topic in wanted)
        for outcome in outcomes:
            name, error = outcome.name, outcome.error
            if error is None or error.code == ErrorCode.TOPIC_ALREADY_EXISTS:
                self._told.discard(name)
            elif name not in self._told and len(self._told) < limits.TOPICS_BEING_CREATED_MAX:
                self._told.add(name)
                log.warning("topic %s, which a client asked for, cannot be created: %s", name, error)

    async def _create_elsewhere(self, topics: tuple[TopicToCreate, ...]) -> list[TopicOutcome]:
        request = CreateTopicsRequest(
            topics=[_wanted(topic) for topic in topics], timeout_ms=limits.CONTROLLER_ANSWER_MS
        )
        try:
            answer = await self._link.ask(request, errors=_errors)
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
        metadata = self._metadata
        try:
            async with asyncio.timeout(limits.CONTROLLER_ANSWER_MS / 1000):
                await metadata.until(lambda: all(each in metadata.state.topic_by_id for each in made))
        except TimeoutError:
            log.warning("this node has not heard of the topics that the controller created")
        return outcomes


def _errors(response: CreateTopicsResponse) -> Iterable[int]:
    return (topic.error_code for topic in response.topics)


def _refused(topics: tuple[TopicToCreate, ...], error: ApiError) -> list[TopicOutcome]:
    return [TopicOutcome(topic.name, error) for topic in topics]


def _wanted(topic: TopicToCreate) -> _Wanted:
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
