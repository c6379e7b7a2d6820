"""DescribeTopicPartitions (key 75): describe partitions page by page, in the order of topic names (KIP-966).

A page does not look at more topics than it needs: of the topics that a client does not name, it asks in their order
which ones the client sees, until the page is full.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from heapq import merge

from ottla.cluster.entities import PartitionState, Topic
from ottla.machine.stepped import collected
from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_ID
from ottla.model.names import is_internal, topic_name_problem
from ottla.model.settings.node import MAX_REQUEST_PARTITION_SIZE_LIMIT
from ottla.security.acls import AclOperation, AclResourceType
from ottla.server.api.advertised_brokers import ListenerView
from ottla.server.api.authorized_operations import NOT_ASKED, TOPIC_OPERATIONS
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, Operations, on_topic
from ottla.server.loop.later import Answer
from ottla.server.loop.slices import Tally
from ottla.wire.messages.topics.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)

TopicAnswer = DescribeTopicPartitionsResponse.Topic
PartitionAnswer = TopicAnswer.Partition
Cursor = DescribeTopicPartitionsResponse.Cursor

_TOPICS_PER_SLICE = limits.PARTITIONS_DESCRIBED_PER_SLICE


@handles(
    DescribeTopicPartitionsRequest,
    needs=Needs(
        guard="describe_topic_partitions",
        asks=(on_topic(AclOperation.DESCRIBE),),
        operations=(Operations(AclResourceType.TOPIC, "topics", "name", "topic_authorized_operations"),),
    ),
)
def describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, context: Context
) -> Answer[DescribeTopicPartitionsResponse]:
    return context.runtime.slices.answer(_describing(request, context))


def _describing(
    request: DescribeTopicPartitionsRequest, context: Context
) -> Generator[None, None, DescribeTopicPartitionsResponse]:
    """Describe a page. The number of described partitions is bounded; the number of unknown topics in the request is
    not.
    """
    state = context.member.state
    named = dict.fromkeys(topic.name for topic in request.topics)
    cursor = request.cursor
    if cursor is not None and (cursor.partition_index < 0 or (named and cursor.topic_name not in named)):
        # The cursor must name a topic of the request and a valid partition.
        wrong = (_missing(name, ErrorCode.INVALID_REQUEST, NOT_ASKED) for name in named)
        return DescribeTopicPartitionsResponse(topics=(yield from collected(wrong, _TOPICS_PER_SLICE)))
    is_seen = None if named else _view(context)
    first = cursor.topic_name if cursor is not None else ""
    left = max(1, min(context.settings[MAX_REQUEST_PARTITION_SIZE_LIMIT], request.response_partition_limit))
    answers: list[TopicAnswer] = []
    tally = Tally(limits.DECISIONS_PER_SLICE)
    for name in (yield from _in_order(named or state.topics, first)):
        if tally.is_full():
            yield
        topic = state.topics.get(name)
        if not named and (topic is None or (is_seen is not None and not is_seen(name))):
            continue
        if left == 0:
            return DescribeTopicPartitionsResponse(
                topics=answers, next_cursor=Cursor(topic_name=name, partition_index=0)
            )
        if topic is None:
            invalid = topic_name_problem(name) is not None
            answers.append(
                _missing(name, ErrorCode.INVALID_TOPIC_EXCEPTION if invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            )
            continue
        start = cursor.partition_index if cursor is not None and name == first else 0
        answer = _describe(topic, start, left, context)
        answers.append(answer)
        left -= len(answer.partitions)
        if start + len(answer.partitions) < len(topic.partitions):
            following = Cursor(topic_name=name, partition_index=start + len(answer.partitions))
            return DescribeTopicPartitionsResponse(topics=answers, next_cursor=following)
    return DescribeTopicPartitionsResponse(topics=answers)


def _view(context: Context) -> Callable[[str], bool] | None:
    """Return what decides whether the client sees a topic that it has not named; None if it sees all."""
    decisions = context.decisions
    return None if decisions is None else partial(decisions.allows_now, AclOperation.DESCRIBE, AclResourceType.TOPIC)


def _in_order(names: Iterable[str], first: str) -> Generator[None, None, Iterator[str]]:
    """Return the names from `first` on, in their order. They are sorted in slices, and merged as they are taken."""
    every = list(names)
    runs = []
    for begin in range(0, len(every), limits.NAMES_SORTED_PER_SLICE):
        if begin:
            yield
        runs.append(sorted(name for name in every[begin : begin + limits.NAMES_SORTED_PER_SLICE] if name >= first))
    return merge(*runs)


def _missing(name: str, code: ErrorCode, operations: int = TOPIC_OPERATIONS) -> TopicAnswer:
    return TopicAnswer(
        error_code=code,
        name=name,
        topic_id=NO_ID,
        is_internal=is_internal(name),
        partitions=[],
        topic_authorized_operations=operations,
    )


def _describe(topic: Topic, start: int, limit: int, context: Context) -> TopicAnswer:
    view = ListenerView.of(context)
    return TopicAnswer(
        error_code=0,
        name=topic.name,
        topic_id=topic.id,
        is_internal=is_internal(topic.name),
        partitions=[_partition(state, view) for state in topic.partitions[start : start + limit]],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _partition(state: PartitionState, view: ListenerView) -> PartitionAnswer:
    return PartitionAnswer(
        error_code=0,
        partition_index=state.index,
        leader_id=state.leader if state.leader in view.reachable else -1,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        eligible_leader_replicas=list(state.elr),
        last_known_elr=list(state.last_known_elr),
        offline_replicas=view.offline(state),
    )
