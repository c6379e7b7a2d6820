"""The common part of the share coordinator's APIs: a request names share partitions of one group, topic by topic, and
each of them is a separate command, because each may have another coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.api.portions import Portions
from ottla.server.loop.later import Answer, Later, gather
from ottla.server.shares.share_states import StateCommand
from ottla.shares.state.partition import SharePartitionId

ReplyT = TypeVar("ReplyT")
ResultT = TypeVar("ResultT")
ResponseT = TypeVar("ResponseT")
TopicIdPartition = tuple[bytes, int]

STATE_NEEDS = Needs(
    (on_cluster(AclOperation.CLUSTER_ACTION),), mirror="topics.partitions > results.partitions", explained=True
)
STATE_PORTIONS = Portions("topics.partitions", "results.partitions", limits.ITEMS_PER_SLICE)


class AskedState(Protocol):
    """A partition in a request."""

    @property
    def partition(self) -> int: ...


AskedT = TypeVar("AskedT", bound=AskedState)
AskedT_co = TypeVar("AskedT_co", bound=AskedState, covariant=True)


class AskedTopic(Protocol[AskedT_co]):
    """A topic in a request."""

    @property
    def topic_id(self) -> bytes: ...

    @property
    def partitions(self) -> Sequence[AskedT_co]: ...


class StateRequest(Protocol[AskedT_co]):
    @property
    def group_id(self) -> str: ...

    @property
    def topics(self) -> Sequence[AskedTopic[AskedT_co]]: ...


def _nothing_more(_: object) -> dict[str, object]:
    """Return no fields for a reply that only reports success."""
    return {}


class StateForm(NamedTuple, Generic[AskedT, ReplyT, ResponseT]):
    """How one of these APIs asks the coordinator, and how it answers."""

    response: Callable[..., ResponseT]  # takes `results`
    topic: Callable[..., object]
    partition: Callable[..., object]
    # takes the group id, a topic id, and a partition of the request
    command: Callable[[str, bytes, AskedT], StateCommand[ReplyT]]
    blank: ReplyT  # the reply whose fields are used with an error
    # the fields of the reply, except those of all APIs
    fields: Callable[[ReplyT], Mapping[str, object]] = _nothing_more
    needs_partitions: bool = True  # whether a request with a topic without partitions gets an empty answer


def ask_share_coordinators(
    request: StateRequest[AskedT], context: Context, form: StateForm[AskedT, ReplyT, ResponseT]
) -> Answer[ResponseT]:
    """Ask the share coordinators of this node. As with Kafka, the answer is empty if the request names no group, and,
    except for one API, if it names no topic or a topic without partitions.
    """
    if not request.group_id or (form.needs_partitions and not _names_partitions(request.topics)):
        return form.response(results=[])
    coordinators = context.shares.coordinators

    def submit(command: StateCommand[ReplyT]) -> Later[ReplyT | ApiError]:
        key = SharePartitionId(command.group_id, command.topic_id, command.partition).coordinator_key
        return coordinators.submit(key, command)

    def respond(partition: int, reply: ReplyT) -> object:
        return form.partition(partition=partition, error_code=ErrorCode.NONE, **form.fields(reply))

    def refuse(partition: int, error: ApiError) -> object:
        told = form.fields(form.blank)
        return form.partition(partition=partition, error_code=error.code, error_message=error.text, **told)

    commands = {
        (topic.topic_id, each.partition): form.command(request.group_id, topic.topic_id, each)
        for topic in request.topics
        for each in topic.partitions
    }
    answers = ask_each(submit, commands, respond, refuse)
    return answers.map(
        lambda topics: form.response(
            results=[form.topic(topic_id=each, partitions=partitions) for each, partitions in topics.items()]
        )
    ).soonest()


def _names_partitions(topics: Sequence[AskedTopic[AskedState]]) -> bool:
    return bool(topics) and all(topic.partitions for topic in topics)


def ask_each(
    submit: Callable[[StateCommand[ReplyT]], Later[ReplyT | ApiError]],
    commands: Mapping[TopicIdPartition, StateCommand[ReplyT]],
    respond: Callable[[int, ReplyT], ResultT],
    refuse: Callable[[int, ApiError], ResultT],
) -> Later[dict[bytes, list[ResultT]]]:
    """Submit all commands and return their answers by topic; each is made of the partition's number and the reply."""

    def answer(named: TopicIdPartition) -> Later[ResultT]:
        _, partition = named
        return submit(commands[named]).map(
            lambda value: refuse(partition, value) if isinstance(value, ApiError) else respond(partition, value)
        )

    def by_topic(results: Iterable[ResultT]) -> dict[bytes, list[ResultT]]:
        topics: dict[bytes, list[ResultT]] = {}
        for (topic_id, _), result in zip(commands, results, strict=True):
            topics.setdefault(topic_id, []).append(result)
        return topics

    return gather([answer(named) for named in commands]).map(by_topic)
