"""CreateTopics (key 19): new topics.

v4 defaults for partitions and replication factor (-1)   v5 the answer tells the topic's configuration   v7 topic ids
"""

from __future__ import annotations

from collections.abc import Generator

from ottla.cluster.commands.create_topics import DEFAULT, CreateTopics, NewTopic, TopicOutcome, check_total
from ottla.machine.stepped import collected
from ottla.model import limits
from ottla.model.describe import describe_topic
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.node_config import NodeConfig
from ottla.model.settings.node import NUM_PARTITIONS
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.portions import Portions, in_portions
from ottla.server.loop.later import Answer
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest, CreateTopicsResponse

TopicAnswer = CreateTopicsResponse.CreatableTopicResult

_FIRST_WITH_CONFIGS = CreateTopicsResponse.CreatableTopicResult.since("configs")
_TOPIC_WEIGHT = 40  # partitions that cost as much as a topic by itself


def _weight(topic: CreateTopicsRequest.CreatableTopic) -> int:
    return _TOPIC_WEIGHT + max(topic.num_partitions, len(topic.assignments))


@handles(CreateTopicsRequest, on="both", forwarded=True)
def create_topics(request: CreateTopicsRequest, context: Context) -> Answer[CreateTopicsResponse]:
    default = context.configs.broker[NUM_PARTITIONS]
    counts = (
        len(topic.assignments) or (default if topic.num_partitions == DEFAULT else topic.num_partitions)
        for topic in request.topics
    )
    try:
        check_total(counts)
    except ApiError as error:
        return context.services.slices.answer(_refused(request, error))
    return _create_in_portions(request, context)


def _refused(request: CreateTopicsRequest, error: ApiError) -> Generator[None, None, CreateTopicsResponse]:
    refused = (_answer(TopicOutcome(each.name, error), (), None) for each in request.topics)
    return CreateTopicsResponse(topics=(yield from collected(refused, limits.PARTITIONS_DESCRIBED_PER_SLICE)))


def _create(request: CreateTopicsRequest, context: Context) -> Answer[CreateTopicsResponse]:
    topics = tuple(
        NewTopic(
            topic.name,
            topic.num_partitions,
            topic.replication_factor,
            tuple((each.partition_index, tuple(each.broker_ids)) for each in topic.assignments),
            tuple({each.name: each.value for each in topic.configs}.items()),  # of two values the last one counts
        )
        for topic in request.topics
    )
    configs = {topic.name: topic.configs for topic in topics}
    # Another request may have come on this connection when the topics are made.
    node = context.configs.node if context.request_version >= _FIRST_WITH_CONFIGS else None

    def respond(outcomes: list[TopicOutcome]) -> CreateTopicsResponse:
        return CreateTopicsResponse(topics=[_answer(outcome, configs[outcome.name], node) for outcome in outcomes])

    def refuse(error: ApiError) -> CreateTopicsResponse:
        return respond([TopicOutcome(name, error) for name in configs])

    return context.controller.ask(CreateTopics(topics, request.validate_only), respond, refuse)


_create_in_portions = in_portions(
    Portions("topics", "topics", limits.PARTITIONS_CREATED_PER_SLICE, weigh=_weight), _create
)


def _answer(outcome: TopicOutcome, configs: tuple[tuple[str, str | None], ...], node: NodeConfig | None) -> TopicAnswer:
    if outcome.error is not None:
        return TopicAnswer(name=outcome.name, error_code=outcome.error.code, error_message=outcome.error.text)
    return TopicAnswer(
        name=outcome.name,
        topic_id=outcome.id,
        error_code=ErrorCode.NONE,
        error_message=None,
        num_partitions=outcome.partitions,
        replication_factor=outcome.replication_factor,
        configs=[] if node is None else _configs(configs, node),
    )


def _configs(configs: tuple[tuple[str, str | None], ...], node: NodeConfig) -> list[TopicAnswer.CreatableTopicConfigs]:
    overrides = {name: value for name, value in configs if value is not None}
    return [
        TopicAnswer.CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.sensitive,
        )
        for entry in sorted(describe_topic(node, overrides))
    ]
