"""The batches of a produce that must be looked into before they are appended (`log/look.py`).

Short looks are taken at once (`first_look`). For the others the request keeps its turn on the connection, which is
held: a worker looks into one batch after the other (`server/storage/batch_looks.py`), and each is appended as soon as
its look is done. The request's other batches are in their logs by then; later requests of the connection wait, as with
Kafka.

The state may change during the look, so the batch is then checked like any other (does the partition exist, is it led
here, is the batch the next of its producer). If its topic has other settings by now, it is looked into again. A
transactional batch has to be admitted by the gate again, so that no marker comes between the coordinator's answer and
the append.

The decompressed size and the number of records of all batches of one request are bounded. A batch that is too large by
itself is refused (MESSAGE_TOO_LARGE); one that is too large only together with the others has to be sent again.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

from ottla.log.inspection import Inspector
from ottla.log.look import TIME_REFUSED, Look, dated_ahead, needed, unpacked_bytes_max
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.records.batch import CODEC_MASK, BatchHeader, check, check_client, read_header
from ottla.replica.partition import Partition
from ottla.server.api.context import Context
from ottla.server.loop.later import Later
from ottla.server.txns.verdict import WITHOUT_ID, Verdict
from ottla.wire.messages.records.produce import ProduceRequest, ProduceResponse

TopicData = ProduceRequest.TopicProduceData
PartitionResponse = ProduceResponse.TopicProduceResponse.PartitionProduceResponse

log = logging.getLogger(__name__)

T = TypeVar("T")


class LookNeeded(NamedTuple):
    """A batch that has to be looked into."""

    partition: Partition
    header: BatchHeader
    topic: TopicData
    data: TopicData.PartitionProduceData
    answers: list[PartitionResponse]
    at: int  # the index of its answer in `answers`


class Produce(Protocol):
    """The produce whose batches are looked into."""

    def admit(self, topic: TopicData) -> Later[Verdict]:
        """Return whether the transactional batch may be appended."""

    def append(self, topic: TopicData, verdict: Verdict, look: Look, again: list[LookNeeded]) -> PartitionResponse:
        """Append the batch with the findings of its look. If it needs another look, put it into `again`."""


def first_look(
    partition: Partition, records: memoryview, header: BatchHeader, context: Context
) -> tuple[bool, Look | None]:
    """Return whether the batch can be appended (or refused) now, and the findings of its look, if it needed one."""
    where = partition.log
    config, now_ms = where.config, context.runtime.now_ms()
    if (
        not partition.is_leader
        or not needed(config, header)
        or header.size_bytes > where.batch_bytes_max
        or (header.max_timestamp - now_ms > config.timestamp_after_max_ms and not config.log_append_time)
    ):
        return True, None
    try:
        check(records, 0, header)
        check_client(header)
    except ApiError:
        return True, None
    look = context.storage.looks.here(records, header, config, now_ms, where.name)
    return look is not None, look


def name_dated(error: ApiError, partition: Partition, records: memoryview, now_ms: int, context: Context) -> ApiError:
    """Return the refusal of a batch with timestamps too far in the future; for a small batch, with the faulty records.

    The header is enough to refuse the batch; the records are named because Kafka does so.
    """
    header = read_header(records)
    if len(records) > limits.DATED_BYTES_MAX:
        return error
    if not context.storage.looks.allow(limits.LOOKED_AT_UNPACKED_BYTES // 4):
        return error
    found = dated_ahead(records, header, partition.log.config, now_ms)
    return ApiError(error.code, TIME_REFUSED, tuple(found)) if found else error


class ProduceLooks:
    """Has the batches of one request looked into, one after the other. `done` is set when the last is appended or
    refused.
    """

    def __init__(self, waiting: list[LookNeeded], context: Context, produce: Produce) -> None:
        self.done: Later[None] = Later()
        self._waiting = deque(waiting)
        self._context = context
        self._produce = produce
        self._left_bytes = unpacked_bytes_max(sum(each.header.size_bytes for each in waiting))
        self._left_records = limits.LOOKED_INTO_RECORDS_MAX

    def begin(self) -> Later[None]:
        self._next()
        return self.done

    def _next(self) -> None:
        while self._waiting:
            each = self._waiting[0]
            if each.header.count <= self._left_records or self._left_records == limits.LOOKED_INTO_RECORDS_MAX:
                self._look(each)
                return
            self._turn_away(each)
        self.done.set(None)

    def _look(self, each: LookNeeded) -> None:
        packed = each.header.attributes & CODEC_MASK
        alone_bytes = unpacked_bytes_max(each.header.size_bytes)
        limit_bytes = min(alone_bytes, self._left_bytes) if packed else alone_bytes

        def looked(look: Look) -> None:
            self._left_records -= each.header.count
            if packed:
                self._left_bytes -= limit_bytes if look.beyond_limit else look.unpacked_bytes
            if look.beyond_limit and limit_bytes < alone_bytes:
                self._turn_away(each)
                self._next()
            else:
                self._admit(each, look)

        where = each.partition.log
        config = where.config

        def look(inspector: Inspector | None) -> None:
            assert each.data.records is not None, "check_request refuses null records"
            now_ms = self._context.runtime.now_ms()
            make = partial(Look, each.data.records, each.header, config, now_ms, where.name, inspector=inspector)
            self._context.storage.looks.take(make, limit_bytes, self._surely(looked))

        if config.contract is None:
            look(None)
        else:
            self._context.inspector(each.partition, config.contract).then(self._surely(look), self.done.fail)

    def _turn_away(self, each: LookNeeded) -> None:
        if each.header.producer_id >= 0:
            each.partition.log.producers.note_refusal(each.header)
        answer = each.answers[each.at]
        answer.error_code = ErrorCode.NOT_ENOUGH_REPLICAS
        answer.error_message = "The request's other batches hold too many records; send this one again."
        self._waiting.popleft()

    def _admit(self, each: LookNeeded, look: Look) -> None:
        alone = TopicData(name=each.topic.name, topic_id=each.topic.topic_id, partition_data=[each.data])
        settle = self._surely(partial(self._settle, each, alone, look))
        if each.header.is_transactional:
            self._produce.admit(alone).then(settle, self.done.fail)
        else:
            settle(WITHOUT_ID)

    def _settle(self, each: LookNeeded, alone: TopicData, look: Look, verdict: Verdict) -> None:
        again: list[LookNeeded] = []
        each.answers[each.at] = self._produce.append(alone, verdict, look, again)
        if again:  # the topic has other settings by now
            self._waiting[0] = again[0]._replace(answers=each.answers, at=each.at)
        else:
            self._waiting.popleft()
        self._next()

    def _surely(self, step: Callable[[T], None]) -> Callable[[T], None]:
        """Wrap a step: if it raises, the produce fails, so that the client does not wait for an answer for ever."""

        def attempt(value: T) -> None:
            try:
                step(value)
            except Exception:
                log.exception("a batch of %s that was looked into failed", self._context.connection.remote_address)
                self.done.fail()

        return attempt
