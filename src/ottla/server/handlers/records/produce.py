"""Produce (key 0): append one record batch to each of the named partitions.

Everything up to the append happens before the handler returns, or while the connection is held (`Context.hold`), so
batches of one connection stay in order. The answer waits only if it must: with acks=all until the high watermark has
passed the batch, with `ottla.fsync.before.ack` until the batch is synced, on a slow disk until it is written
(`server/storage/late_writes.py`). A partition that is not led here any more answers NOT_LEADER_OR_FOLLOWER to all
waiting produces, and names the leader (KIP-951). With acks=0 there is no answer; an error then closes the connection,
as with Kafka.

A transactional batch is appended when the gate has admitted it (`server/txns/gate.py`), and one that must be looked
into when that is done (`server/api/produce_looks.py`). Usually neither has to wait. A request that names very many
partitions is handled in portions (`server/api/wide_produce.py`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ottla.log.files.disk import StorageError
from ottla.machine.stepped import in_one_go
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import INTERNAL_TOPICS
from ottla.records.batch import BatchHeader, check_request
from ottla.replica.partition import ACKS_ALL, Partition
from ottla.security.acls import AclOperation
from ottla.server.api.acknowledging import (
    FIRST_VERSION_BY_ID,
    Pending,
    name_produce_leaders,
    turn_into_error,
    wait_for_placed,
    when_durable,
)
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_topic, on_transaction
from ottla.server.api.produce_looks import LookNeeded, ProduceLooks, first_look, name_dated
from ottla.server.api.turns import keep_turn
from ottla.server.api.unwritten_records import held_until_written
from ottla.server.api.wide_produce import is_wide, produce_in_portions, without_duplicates
from ottla.server.loop.later import Answer, Disconnect, Later
from ottla.server.txns.verdict import WITHOUT_ID, TransactionalBatch, Verdict
from ottla.wire.messages.records.produce import ProduceRequest, ProduceResponse

if TYPE_CHECKING:
    from ottla.log.look import Look

TopicData = ProduceRequest.TopicProduceData
TopicResponse = ProduceResponse.TopicProduceResponse
PartitionResponse = TopicResponse.PartitionProduceResponse
RecordError = PartitionResponse.BatchIndexAndErrorMessage


# Kafka includes the log start offset in every refusal by the log, except for these errors.
_LOG_START_UNTOLD = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


@handles(
    ProduceRequest,
    needs=Needs(guard="produce", asks=(on_topic(AclOperation.WRITE), on_transaction(AclOperation.WRITE))),
)
def produce(request: ProduceRequest, context: Context) -> Answer[ProduceResponse]:
    version = context.request_version
    topic_data = request.topic_data
    if len(topic_data) > 1 or (topic_data and len(topic_data[0].partition_data) > 1):
        if is_wide(topic_data):
            return produce_in_portions(request, context, lambda some: _admit(some, context, version))
        request.topic_data = in_one_go(without_duplicates(topic_data))
    return _admit(request, context, version)


def _admit(request: ProduceRequest, context: Context, version: int) -> Answer[ProduceResponse]:
    if request.transactional_id is None:
        return _produce(request, context, version, WITHOUT_ID)
    admitted = _ask_gate(request, request.topic_data, context, version)
    if admitted.done:
        return _produce(request, context, version, admitted.taken())
    return keep_turn(context, admitted, lambda verdict: _produce(request, context, version, verdict))


def _ask_gate(request: ProduceRequest, topic_data: list[TopicData], context: Context, version: int) -> Later[Verdict]:
    """Return which of the transactional batches may be appended. The append looks for their partitions again: while the
    gate waits, each of them may be closed, or led elsewhere.
    """
    assert request.transactional_id is not None, "without one, transactional batches are refused"
    batches = []
    for topic in topic_data:
        for data in topic.partition_data:
            try:
                header = check_request(data.records if data.records is not None else b"", version)
            except ApiError:
                continue  # the append refuses it with the same error
            if not header.is_transactional:
                continue
            partition = None
            with suppress(ApiError):
                found = _find(topic, data.index, context, version)
                found.require_leader()
                partition = found
            batches.append(TransactionalBatch(header, partition))
    return context.transactions.gate.admit_batches(request.transactional_id, batches, version)


def _find(topic: TopicData, index: int, context: Context, version: int) -> Partition:
    if version >= FIRST_VERSION_BY_ID:
        return context.storage.partitions.find_by_id(topic.topic_id, index)
    return context.storage.partitions.find(topic.name, index)


def _produce(request: ProduceRequest, context: Context, version: int, verdict: Verdict) -> Answer[ProduceResponse]:
    pending: list[Pending] = []
    to_look_into: list[LookNeeded] = []
    topics, failed = _append_all(request.topic_data, request.acks, context, version, verdict, pending, to_look_into)
    if not to_look_into:
        return _answer(topics, failed, pending, request, context, version)
    rest = _LookedInto(request, context, version, topics, pending)
    return keep_turn(context, ProduceLooks(to_look_into, context, rest).begin(), rest.answer)


class _LookedInto:
    """A produce with batches that a worker looks into before they are appended."""

    def __init__(
        self,
        request: ProduceRequest,
        context: Context,
        version: int,
        topics: list[TopicResponse],
        pending: list[Pending],
    ) -> None:
        self._request = request
        self._context = context
        self._version = version
        self._topics = topics
        self._pending = pending

    def admit(self, topic: TopicData) -> Later[Verdict]:
        """Ask the gate again, so that no marker comes between the coordinator's answer and the append."""
        return _ask_gate(self._request, [topic], self._context, self._version)

    def append(self, topic: TopicData, verdict: Verdict, look: Look, again: list[LookNeeded]) -> PartitionResponse:
        acks, context, version = self._request.acks, self._context, self._version
        (alone,), _ = _append_all([topic], acks, context, version, verdict, self._pending, again, look)
        return alone.partition_responses[0]

    def answer(self, _: None) -> Answer[ProduceResponse]:
        failed = any(each.error_code for topic in self._topics for each in topic.partition_responses)
        return _answer(self._topics, failed, self._pending, self._request, self._context, self._version)


def _append_all(
    topic_data: list[TopicData],
    acks: int,
    context: Context,
    version: int,
    verdict: Verdict,
    pending: list[Pending],
    to_look_into: list[LookNeeded],
    look: Look | None = None,
) -> tuple[list[TopicResponse], bool]:
    """Return the answer for each batch, and whether one was refused; `look` has the findings for the only batch, if it
    was looked into already.
    """
    topics: list[TopicResponse] = []
    failed = False
    for topic in topic_data:
        answers: list[PartitionResponse] = []
        for data in topic.partition_data:
            try:
                if not -1 <= acks <= 1:
                    raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS)
                partition = _find(topic, data.index, context, version)
                header = check_request(data.records if data.records is not None else b"", version)
                transaction = None
                if header.is_transactional:
                    verdict.check(partition, header)
                    transaction = verdict, header
                found = look
                if partition.log.looks_inside and (look is None or look.config is not partition.log.config):
                    assert data.records is not None, "check_request refuses null records"
                    ready, found = first_look(partition, data.records, header, context)
                    if not ready:
                        to_look_into.append(LookNeeded(partition, header, topic, data, answers, len(answers)))
                        answers.append(PartitionResponse(index=data.index, error_code=0, base_offset=-1))
                        continue
                answer = _append(partition, data.records, acks, context, pending, transaction, found)
                if answer.error_code:
                    failed = True
                answers.append(answer)
            except ApiError as error:
                failed = True
                answers.append(_refusal(data.index, error))
            except StorageError as error:
                failed = True
                context.storage.partitions.storage_failed(partition, error)
                answers.append(_refusal(data.index, ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))))
        topics.append(TopicResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers))
    return topics, failed


def _answer(
    topics: list[TopicResponse],
    failed: bool,
    pending: list[Pending],
    request: ProduceRequest,
    context: Context,
    version: int,
) -> Answer[ProduceResponse]:
    if failed:
        _count_failures(topics, context)
    if pending:
        unwritten = [(each.partition, each.end) for each in pending if isinstance(each.partition, Partition)]
        if any(partition.log.unwritten for partition, _ in unwritten):
            held_until_written(context, unwritten)
    if request.acks == 0:
        if failed:
            raise Disconnect("a produce with acks=0 failed")
        return None
    response = ProduceResponse(responses=topics)
    if pending:
        return when_durable(response, pending, request.timeout_ms, version, context)
    if failed:
        name_produce_leaders(response, version, context)
    return response


def _count_failures(topics: list[TopicResponse], context: Context) -> None:
    partitions = context.storage.partitions
    for topic in topics:
        held = partitions.by_name.get(topic.name) or partitions.by_id.get(topic.topic_id)
        if held is not None:
            held.failed_produces += sum(1 for each in topic.partition_responses if each.error_code)


def _append(
    partition: Partition,
    records: memoryview | None,
    acks: int,
    context: Context,
    pending: list[Pending],
    transaction: tuple[Verdict, BatchHeader] | None,
    look: Look | None,
) -> PartitionResponse:
    if partition.topic in INTERNAL_TOPICS:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {partition.topic}")
    if context.tenants.full is not None:
        context.tenants.check_write(partition.topic)
    assert records is not None, "check_request refuses null records"
    cuts = partition.cuts
    try:
        if transaction is not None:
            verdict, header = transaction
            verdict.check_first(partition, header)
        now_ms = context.runtime.now_ms()
        appended = partition.append(records, now_ms=now_ms, acks=acks, look=look)
    except ApiError as error:
        if error.code in _LOG_START_UNTOLD:
            raise
        if error.code == ErrorCode.INVALID_TIMESTAMP and not error.record_errors:
            error = name_dated(error, partition, records, now_ms, context)
        refusal = _refusal(partition.index, error)
        refusal.log_start_offset = partition.log.log_start_offset
        return refusal
    partition.produce_requests += 1
    partition.received_bytes += len(records)
    partition.received_records += appended.last_offset - appended.first_offset + 1
    answer = PartitionResponse(
        index=partition.index,
        error_code=0,
        base_offset=appended.first_offset,
        log_append_time_ms=appended.log_append_time,
        log_start_offset=appended.log_start_offset,
    )
    if partition.counts_at_once:
        context.storage.waiters.notify(partition)
    if partition.needs_sync:
        context.storage.syncer.request(partition)
    if partition.cuts != cuts:
        turn_into_error(answer, ErrorCode.KAFKA_STORAGE_ERROR)  # the sync could not even be started
    elif (acks and (acks == ACKS_ALL or partition.durable)) or partition.log.unwritten:
        end = appended.last_offset + 1
        if (partition.high_watermark if acks == ACKS_ALL else partition.own_end) < end:
            pending.append(Pending(partition, cuts, end, answer, acks == ACKS_ALL))
    if appended.placed:
        wait_for_placed(appended.placed, acks, pending, answer)
    return answer


def _refusal(index: int, error: ApiError) -> PartitionResponse:
    return PartitionResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        error_message=error.message,
        record_errors=[
            RecordError(batch_index=found.index, batch_index_error_message=found.message)
            for found in error.record_errors
        ],
    )
