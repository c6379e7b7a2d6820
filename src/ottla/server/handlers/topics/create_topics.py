"""CreateTopics (key 19): create topics.

v4 defaults for partitions and replication factor (-1)   v5 the topic's configuration in the answer   v7 topic ids
"""

from __future__ import annotations

from ottla.cluster.commands.create_topics import DEFAULT, CreateTopics, TopicOutcome, TopicToCreate, check_total
from ottla.model import limits
from ottla.model.describe import describe_topic
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.node_config import NodeConfig
from ottla.model.settings.node import NUM_PARTITIONS
from ottla.security.acls import AclOperation
from ottla.security.quotas.mutations import throttle_ms
from ottla.server.api.changes.names import topics_named
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import LETTER_TOPICS, Needs, on_topic
from ottla.server.api.portions import Portions
from ottla.server.api.topic_policy import is_exempt
from ottla.server.quorum.active_controller import Decided
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest, CreateTopicsResponse

TopicAnswer = CreateTopicsResponse.CreatableTopicResult

_FIRST_WITH_CONFIGS = CreateTopicsResponse.CreatableTopicResult.since("configs")
_FIRST_STRICT = 6  # the first version that is refused by a quota, not only throttled
_TOPIC_WEIGHT = 40  # how many partitions cost as much as the topic itself


def _weight(topic: CreateTopicsRequest.CreatableTopic) -> int:
    return _TOPIC_WEIGHT + max(topic.num_partitions, len(topic.assignments))


def _check(request: CreateTopicsRequest, context: Context) -> None:
    """Refuse a request for more partitions than the limit."""
    default = context.configs.broker[NUM_PARTITIONS]
    counts = (
        len(topic.assignments) or (default if topic.num_partitions == DEFAULT else topic.num_partitions)
        for topic in request.topics
    )
    check_total(counts)


def _refuse(request: CreateTopicsRequest, error: ApiError) -> CreateTopicsResponse:
    names = dict.fromkeys(topic.name for topic in request.topics)
    return CreateTopicsResponse(topics=[_answer(TopicOutcome(name, error), (), None) for name in names])


@handles(
    CreateTopicsRequest,
    needs=Needs(
        guard="create_topics",
        asks=(*LETTER_TOPICS, on_topic(AclOperation.DESCRIBE_CONFIGS)),
        changes=topics_named,
    ),
    on="both",
    forwarded=True,
    portions=Portions("topics", "topics", limits.PARTITIONS_CREATED_PER_SLICE, weigh=_weight),
    refuse=_refuse,
    check=_check,
)
def create_topics(request: CreateTopicsRequest, context: Context) -> Decided[CreateTopicsResponse]:
    topics = tuple(
        TopicToCreate(
            topic.name,
            topic.num_partitions,
            topic.replication_factor,
            tuple((each.partition_index, tuple(each.broker_ids)) for each in topic.assignments),
            # if a setting is given twice, the last value counts
            tuple({each.name: each.value for each in topic.configs}.items()),
        )
        for topic in request.topics
    )
    configs = {topic.name: topic.configs for topic in topics}
    # Read now: the context may belong to another request when the topics are created.
    node = context.configs.node if context.request_version >= _FIRST_WITH_CONFIGS else None

    quota = context.quotas.mutating(context, strict=context.request_version >= _FIRST_STRICT)

    def respond(outcomes: list[TopicOutcome]) -> CreateTopicsResponse:
        answers = [_answer(outcome, configs[outcome.name], node) for outcome in outcomes]
        return CreateTopicsResponse(throttle_time_ms=throttle_ms(quota), topics=answers)

    command = CreateTopics(topics, request.validate_only, quota, is_exempt(context))
    return context.member.controller.ask(command, respond)


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
