"""ListOffsets (key 2): the offset for a timestamp, or for a special one such as earliest or latest.

v2 isolation level    v4 leader epochs    v7 max timestamp (-3)    v8 earliest local (-4)    v9 latest tiered (-5)
v10 a timeout for remote look-ups    v11 earliest pending upload (-6)

Other nodes ask for the times of unread records, too (`unread_from`), from which they compute the lag of groups.

A search for a record by its timestamp may have to decompress a batch. A worker does that
(`server/storage/time_searches.py`), and the connection waits for it; when the client disconnects, the search ends. The
connection also waits if an index has to be read from the disk first (`server/storage/cold_reads.py`).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from functools import partial

from ottla.log.files.disk import Cold, StorageError, in_a_hurry
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.replica.reading import TO_THE_END
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import CheckedItems, Needs, on_topic
from ottla.server.api.portions import Portions
from ottla.server.api.turns import keep_turn
from ottla.server.loop.later import Answer, Later, gather
from ottla.server.storage.time_searches import Search, Unfinished, search_here
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest, ListOffsetsResponse

log = logging.getLogger(__name__)

TopicAnswer = ListOffsetsResponse.TopicResponse
PartitionAnswer = TopicAnswer.PartitionResponse
PartitionAsk = ListOffsetsRequest.Topic.Partition

# The version that added each special timestamp; an older request may not use it.
_SPECIAL_SINCE = {-1: 0, -2: 0, -3: 7, -4: 8, -5: 9, -6: 11}

# Older clients do not know OFFSET_NOT_AVAILABLE; LEADER_NOT_AVAILABLE makes them retry as well.
_FIRST_VERSION_WITH_NOT_AVAILABLE = 5
_CONSUMER = -1
_NO_RECORD = -2
_DEBUGGER = -2  # may read from any replica


@handles(
    ListOffsetsRequest,
    needs=Needs(items=CheckedItems(on_topic(AclOperation.DESCRIBE), "topics.partitions", "topics.partitions")),
    portions=Portions("topics.partitions", "topics.partitions", limits.PARTITIONS_OPENED_PER_SLICE, changes=False),
)
def list_offsets(request: ListOffsetsRequest, context: Context) -> Answer[ListOffsetsResponse]:
    version = context.request_version
    seen = Counter((topic.name, ask.partition_index) for topic in request.topics for ask in topic.partitions)
    topics: dict[str, dict[int, PartitionAnswer]] = {}
    searches: list[Later[None]] = []
    for topic in request.topics:
        answers = topics.setdefault(topic.name, {})
        for ask in topic.partitions:
            answer = partial(_answer, topic.name, ask, request, context, version)
            if seen[topic.name, ask.partition_index] > 1:  # a duplicate is answered once, with an error
                answers[ask.partition_index] = _refusal(ask, ErrorCode.INVALID_REQUEST)
                continue
            # replaced by the result of the search
            answers[ask.partition_index] = _refusal(ask, ErrorCode.UNKNOWN_SERVER_ERROR)
            done: Later[None] = Later()
            settle = partial(answers.__setitem__, ask.partition_index)
            _search(search_here(context.storage.looks), answer, settle, context, done)
            if not done.done:
                searches.append(done)

    def respond(_: object) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            topics=[TopicAnswer(name=name, partitions=list(answers.values())) for name, answers in topics.items()]
        )

    return keep_turn(context, gather(searches), respond) if searches else respond(None)


def _search(
    search: Search,
    answer: Callable[[Search], PartitionAnswer],
    settle: Callable[[PartitionAnswer], None],
    context: Context,
    done: Later[None],
) -> None:
    """Search on the loop, continue in a worker if that takes long, or start again after a cold read.

    After a bug the search ends with the error that was stored before it began.
    """
    try:
        settle(answer(search))
    except Unfinished as unfinished:
        unfinished.go_on(context.storage.looks, context).then(
            lambda found: _search(found, answer, settle, context, done), done.fail
        )
    except Cold as cold:
        context.storage.cold.warm(cold, done, lambda: _search(search, answer, settle, context, done))
    except Exception:
        log.exception("an offset could not be looked up")
        done.fail()
    else:
        done.set(None)


def _answer(
    topic: str, ask: PartitionAsk, request: ListOffsetsRequest, context: Context, version: int, search: Search
) -> PartitionAnswer:
    try:
        return _look_up(topic, ask, request, context, version, search)
    except ApiError as error:
        code = error.code
        if code == ErrorCode.OFFSET_NOT_AVAILABLE and version < _FIRST_VERSION_WITH_NOT_AVAILABLE:
            code = ErrorCode.LEADER_NOT_AVAILABLE
        return _refusal(ask, code)


def _refusal(ask: PartitionAsk, code: ErrorCode) -> PartitionAnswer:
    return PartitionAnswer(partition_index=ask.partition_index, error_code=code)


def _look_up(
    topic: str, ask: PartitionAsk, request: ListOffsetsRequest, context: Context, version: int, search: Search
) -> PartitionAnswer:
    if ask.timestamp < 0 and version < _SPECIAL_SINCE.get(ask.timestamp, 1 << 15):
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    partition = context.storage.partitions.find(topic, ask.partition_index)
    try:
        with in_a_hurry(partition.log.directory):
            found = partition.list_offset(
                ask.timestamp,
                isolation=request.isolation_level if request.replica_id == _CONSUMER else TO_THE_END,
                current_leader_epoch=ask.current_leader_epoch,
                only_leader=request.replica_id != _DEBUGGER,
                search=search,
            )
        times = [partition.unread_since(offset) for offset in ask.unread_from[: limits.UNREAD_OFFSETS_MAX]]
    except StorageError as error:
        context.storage.partitions.storage_failed(partition, error)
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR) from error
    answer = PartitionAnswer(partition_index=ask.partition_index, error_code=0)
    if found is not None:
        answer.offset, answer.timestamp, answer.leader_epoch = found
    if ask.unread_from:
        answer.record_times_ms = [_NO_RECORD if time_ms is None else time_ms for time_ms in times]
    return answer
