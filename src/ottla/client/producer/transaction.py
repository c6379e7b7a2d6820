"""Transactions of a producer: records of many partitions and a group's offsets become visible together or not at all.

States of the transactional id, as this client sees them:

    unknown --init--> idle --begin--> open --commit--> idle
                                      open --(a record failed, the broker refused)--> broken --abort--> idle
    any --(another producer took the id)--> fenced, for good
    any end that was interrupted --> unknown: the next `begin` takes the id anew, which ends what was left open

Rules:
- Where the cluster has finalised transaction.version 2 (KIP-890), partitions and groups join by being written to, and
  every end returns the next epoch. Otherwise they are added first (AddPartitionsToTxn, AddOffsetsToTxn), and older
  request versions are used throughout, because the broker takes the rules from the version of a request.
- No EndTxn is sent for a transaction without writes.
- `commit` delivers the buffered records first; if a record of the transaction failed, it aborts and raises the failure.
"""

import asyncio
from collections.abc import Callable, Mapping
from enum import Enum
from types import TracebackType
from typing import NamedTuple, TypeVar

from ottla.client.cluster import Cluster
from ottla.client.connection import Connection
from ottla.client.consumer.group_metadata import GroupMetadata
from ottla.client.consumer.group_offsets import OffsetAndMetadata, asked_positions
from ottla.client.coordinator import Coordinator, CoordinatorKind
from ottla.client.errors import ClientError, ProducerFenced, TransactionAborted, UnsupportedApi, error_code
from ottla.client.producer.options import ProducerOptions
from ottla.client.producer.sender import Sender
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import LeaderEpoch, ProducerEpoch, ProducerId, ProducerIdentity, TopicPartition
from ottla.wire.message import Request, Response
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.txns.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.txns.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from ottla.wire.messages.txns.add_partitions_to_txn import Topic as AddedTopic
from ottla.wire.messages.txns.end_txn import EndTxnRequest, EndTxnResponse
from ottla.wire.messages.txns.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.txns.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

R = TypeVar("R", bound=Response)
# Offsets to commit: the next offset to read, or (offset, leader epoch, metadata) such as `OffsetAndMetadata`.
Offsets = Mapping[TopicPartition, "int | tuple[int, int, str]"]

# The errors of partitions that were refused.
Errors = Mapping[TopicPartition, ErrorCode]

_FEATURE, _IMPLICIT_LEVEL = "transaction.version", 2
# The first versions with which a write adds its partition to the transaction (KIP-890; no field marks them), and with
# which the end returns an epoch.
IMPLICIT_SINCE: dict[type[Request[Response]], int] = {
    ProduceRequest: 12,
    TxnOffsetCommitRequest: 5,
    EndTxnRequest: EndTxnResponse.since("producer_epoch"),
}
_ADD_PARTITIONS_MAX = AddPartitionsToTxnRequest.since("transactions") - 1  # later versions are for brokers
_FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)


class TransactionStatus(Enum):
    """The state of the transactional id."""

    UNKNOWN = "unknown"
    IDLE = "idle"
    OPEN = "open"
    BROKEN = "broken"
    ENDING = "ending"
    FENCED = "fenced"


class OpenTransaction(NamedTuple):
    """A transactional id as one producer took it over, in a form that another process can use.

    The other process ends the open transaction (`producer.handover`), or continues with the id (`adopt`).
    """

    transactional_id: str
    producer_id: ProducerId
    epoch: ProducerEpoch
    implicit: bool  # partitions join by being written to: a transaction ends by the rules by which it was opened


class ProducerTransactions:
    """The transactional id of one producer; the sender's `Gate`."""

    def __init__(self, cluster: Cluster, sender: Sender, options: ProducerOptions) -> None:
        assert options.transactional_id is not None
        self.transactional_id = options.transactional_id
        self.produce_version_max: int | None = None
        self.aborting = False
        self.is_open = False  # the state is OPEN; read for every record
        self._timeout_ms = options.transaction_timeout_ms
        self._cluster = cluster
        self._sender = sender
        self._coordinator = Coordinator(cluster, self.transactional_id, CoordinatorKind.TRANSACTION)
        self._groups: dict[str, Coordinator] = {}
        self._state = TransactionStatus.UNKNOWN
        self._failure: Exception | None = None  # why the transaction can only be aborted
        self._implicit = False  # partitions join by being written to
        self._written = False  # the brokers know of the current transaction
        self._hole = False  # the sequence cannot continue with the current epoch
        self._partitions: dict[TopicPartition, None] = {}  # partitions that were added explicitly
        self._joining: dict[TopicPartition, None] = {}
        self._adding: asyncio.Task[None] | None = None
        sender.gate = self

    def close(self) -> None:
        if self._adding is not None:
            self._adding.cancel()
        self._coordinator.close()
        for coordinator in self._groups.values():
            coordinator.close()

    # --- states -------------------------------------------------------------------------------------------------

    def _move(self, state: TransactionStatus) -> None:
        self._state = state
        self.is_open = state is TransactionStatus.OPEN

    def check_open(self) -> None:
        """Raise the error because of which no record can be sent, if there is one."""
        if self._state is TransactionStatus.FENCED:
            raise self._fenced()
        if self._failure is not None:
            raise self._failure
        if self._state is not TransactionStatus.OPEN:
            raise RuntimeError("no transaction is open: use `async with producer.transaction()`")

    def _fenced(self) -> ProducerFenced:
        return ProducerFenced(
            ErrorCode.PRODUCER_FENCED,
            f"another producer uses the transactional id {self.transactional_id!r}, or the transaction timed out",
        )

    def _raise(self, code: ErrorCode, during: str, of: str = "") -> None:
        """Raise the coordinator's permanent error, and change the state accordingly."""
        if code in _FENCED:
            self._move(TransactionStatus.FENCED)
            self._sender.fail_waiting(self._fenced())
            raise self._fenced()
        error = ApiError(code, f"{during} of {self.transactional_id!r}: {of}{code.message}")
        if self._state is TransactionStatus.OPEN:
            self._move(TransactionStatus.BROKEN)
            self._failure = error
        raise error

    def _raise_first(self, errors: Errors, during: str) -> None:
        """Raise the deciding error of refused partitions, if there is one: none of the partitions was added."""
        at, code = _deciding(errors)
        if code:
            others = len(errors) - 1
            more = f" (and {others} other{'s' if others > 1 else ''})" if others else ""
            self._raise(code, during, f"{at}{more}: ")

    async def init(self) -> None:
        """Take over the transactional id, unless that was done."""
        if self._state is TransactionStatus.FENCED:
            raise self._fenced()
        if self._state is not TransactionStatus.UNKNOWN:
            return
        request = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=self._timeout_ms)
        answer = await self._coordinator.call(request, error_of=lambda each: each.error_code)
        if answer.error_code:
            self._raise(error_code(answer.error_code), "start")
        self._implicit = joins_by_writing(await self._coordinator.connection())
        self.produce_version_max = None if self._implicit else IMPLICIT_SINCE[ProduceRequest] - 1
        self._sender.identity = ProducerIdentity(answer.producer_id, answer.producer_epoch)
        self._hole = False
        self._move(TransactionStatus.IDLE)

    async def begin(self) -> None:
        if self._state is TransactionStatus.UNKNOWN:
            # Partitions that an interrupted end was still adding must not become part of the new transaction.
            if self._adding is not None:
                self._adding.cancel()
                await asyncio.wait([self._adding])
            await self._sender.discard(TransactionAborted("the transaction was interrupted"))
        await self.init()
        if self._state is not TransactionStatus.IDLE:
            raise RuntimeError("a transaction is open already")
        self._failure, self._written, self.aborting = None, False, False
        self._partitions.clear()
        self._move(TransactionStatus.OPEN)

    async def commit(self) -> None:
        try:
            if self._state in (TransactionStatus.OPEN, TransactionStatus.BROKEN):
                await self._sender.flush()
            if self._failure is None:
                self.check_open()
                await self._end(committed=True)
                return
        except BaseException:
            self._interrupted()
            raise
        failure = self._failure
        await self.abort()
        raise failure

    async def hand_over(self) -> OpenTransaction:
        """Deliver the buffered records and return the open transaction for another process to end; this producer lets
        it go.
        """
        try:
            await self._sender.flush()
            self.check_open()
            return self._snapshot()
        finally:
            self._interrupted()

    def _snapshot(self) -> OpenTransaction:
        return OpenTransaction(self.transactional_id, *self._sender.identity, self._implicit)

    async def take(self) -> OpenTransaction:
        """Take over the transactional id and return it for another process to adopt."""
        await self.init()
        return self._snapshot()

    def adopt(self, taken: OpenTransaction) -> None:
        """Continue with an id that another process took over (`take`), and with which nothing was written since."""
        assert taken.transactional_id == self.transactional_id
        if self._state is not TransactionStatus.UNKNOWN:
            raise RuntimeError("this producer has taken its transactional id already")
        self._implicit = taken.implicit
        self.produce_version_max = None if self._implicit else IMPLICIT_SINCE[ProduceRequest] - 1
        self._sender.identity = ProducerIdentity(taken.producer_id, taken.epoch)
        self._move(TransactionStatus.IDLE)

    async def abort(self) -> None:
        """Abort the transaction; buffered records are not sent."""
        if self._state is TransactionStatus.FENCED:
            raise self._fenced()
        if self._state not in (TransactionStatus.OPEN, TransactionStatus.BROKEN):
            raise RuntimeError("no transaction is open")
        self._move(TransactionStatus.BROKEN)
        self.aborting = True
        try:
            await self._sender.discard(TransactionAborted("the transaction was aborted"))
            await self._end(committed=False)
        except BaseException:
            self._interrupted()
            raise

    def _interrupted(self) -> None:
        """Note that the end of the transaction is unknown: taking the id over again settles it one way or the other."""
        if self._state in (TransactionStatus.OPEN, TransactionStatus.BROKEN, TransactionStatus.ENDING):
            self._move(TransactionStatus.UNKNOWN)
            self._failure, self.aborting = None, True

    async def _end(self, *, committed: bool) -> None:
        self._move(TransactionStatus.ENDING)
        if self._adding is not None:  # EndTxn must not overtake it
            await asyncio.wait([self._adding])
        if self._written:
            await self._end_txn(committed=committed)
        self._failure, self.aborting = None, False
        renew = self._hole and not (self._implicit and self._written)
        self._hole = False
        self._move(TransactionStatus.UNKNOWN if renew else TransactionStatus.IDLE)

    async def _end_txn(self, *, committed: bool) -> None:
        producer_id, epoch = self._sender.identity
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=committed,
        )
        answer = await self._call(self._coordinator, request, lambda each: each.error_code)
        if answer.error_code:
            self._raise(error_code(answer.error_code), "commit" if committed else "abort")
        if self._implicit:
            self._sender.identity = ProducerIdentity(answer.producer_id, answer.producer_epoch)

    async def _call(self, coordinator: Coordinator, request: Request[R], error_of: Callable[[R], int]) -> R:
        since = IMPLICIT_SINCE.get(type(request))
        at_most = since - 1 if since is not None and not self._implicit else None
        return await coordinator.call(request, error_of=error_of, at_most=at_most)

    # --- the sender's gate --------------------------------------------------------------------------------------

    def admits(self, partition: TopicPartition) -> bool:
        if self._implicit:
            self._written = True
            return True
        if partition in self._partitions:
            return True
        self._joining[partition] = None
        if self._adding is None:
            self._adding = asyncio.create_task(self._add_partitions())
        return False

    def failed(self, error: Exception, *, hole: bool) -> None:
        self._hole |= hole
        if self._state is TransactionStatus.OPEN:
            self._move(TransactionStatus.BROKEN)
            self._failure = error

    async def _add_partitions(self) -> None:
        try:
            while self._joining and not self.aborting:
                joining, self._joining = self._joining, {}
                await self._add(joining)
                self._partitions |= joining
        except (ApiError, ClientError) as error:
            self.failed(error, hole=False)
            self._sender.fail_waiting(error)
        finally:
            self._joining.clear()
            self._adding = None
            self._sender.wake()

    async def _add(self, partitions: dict[TopicPartition, None]) -> None:
        producer_id, epoch = self._sender.identity
        topics: dict[str, AddedTopic] = {}
        for name, index in partitions:
            topics.setdefault(name, AddedTopic(name=name, partitions=[])).partitions.append(index)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=list(topics.values()),
        )
        self._written = True  # from here on the coordinator may have an open transaction
        answer = await self._coordinator.call(
            request,
            error_of=lambda each: _deciding(_added_errors(each))[1],
            at_most=_ADD_PARTITIONS_MAX,
        )
        self._raise_first(_added_errors(answer), "transaction")

    # --- offsets ------------------------------------------------------------------------------------------------

    async def send_offsets(self, offsets: Offsets, group: GroupMetadata) -> None:
        """Commit a group's offsets as part of the transaction."""
        self.check_open()
        positions = asked_positions(offsets)
        if not positions:
            return
        producer_id, epoch = self._sender.identity
        self._written = True
        if not self._implicit:
            joining = AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=producer_id,
                producer_epoch=epoch,
                group_id=group.group_id,
            )
            added = await self._call(self._coordinator, joining, lambda each: each.error_code)
            if added.error_code:
                self._raise(error_code(added.error_code), "transaction")
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group.group_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            generation_id=group.generation_id,
            member_id=group.member_id,
            group_instance_id=group.group_instance_id,
            topics=_offset_topics(positions),
        )
        coordinator = self._groups.get(group.group_id)
        if coordinator is None:
            coordinator = Coordinator(self._cluster, group.group_id, CoordinatorKind.GROUP)
            self._groups[group.group_id] = coordinator
        answer = await self._call(coordinator, request, lambda each: _deciding(_offset_errors(each))[1])
        self._raise_first(_offset_errors(answer), "offsets")


class Transaction:
    """One transaction, as a block: `async with producer.transaction() as txn`. Records are sent by the producer."""

    def __init__(self, transactions: ProducerTransactions) -> None:
        self._transactions = transactions
        self._ended = False

    async def __aenter__(self) -> "Transaction":
        await self._transactions.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ended:
            return
        if error is None:
            await self.commit()
            return
        try:
            await self.abort()
        except ProducerFenced as fenced:
            raise fenced from error
        except (ApiError, ClientError):
            # The caller gets the exception that ended the block. The transaction ends with the begin of the next one,
            # or when the coordinator aborts it after its timeout.
            return

    async def send_offsets(self, offsets: Offsets, group: GroupMetadata | str) -> None:
        """Commit a group's offsets if and when the transaction commits.

        `group` is `consumer.group_metadata()`, so that a consumer that was removed from its group cannot commit; or a
        plain group id, whose membership is not checked.
        """
        await self._transactions.send_offsets(offsets, GroupMetadata(group) if isinstance(group, str) else group)

    async def commit(self) -> None:
        """Deliver the buffered records and commit, before the end of the block."""
        self._ended = True
        await self._transactions.commit()

    async def abort(self) -> None:
        """Abort, before the end of the block."""
        self._ended = True
        await self._transactions.abort()


def joins_by_writing(connection: Connection) -> bool:
    """Return whether the cluster has finalised transaction.version 2 (KIP-890) and this client supports it."""
    answer = connection.api_versions
    level = (
        next((each.max_version_level for each in answer.finalized_features if each.name == _FEATURE), 0)
        if answer
        else 0
    )
    try:
        return level >= _IMPLICIT_LEVEL and all(
            connection.version_of(api) >= since for api, since in IMPLICIT_SINCE.items()
        )
    except UnsupportedApi:
        return False


def _deciding(errors: Errors) -> tuple[TopicPartition | None, ErrorCode]:
    """Return the partition whose error decides: a permanent error rather than a transient one (a retry would not help,
    since all partitions are in one request), and either rather than OPERATION_NOT_ATTEMPTED.
    """

    def weight(code: ErrorCode) -> int:
        return 2 if code == ErrorCode.OPERATION_NOT_ATTEMPTED else int(code.retriable)

    return min(errors.items(), key=lambda each: weight(each[1]), default=(None, ErrorCode.NONE))


def _added_errors(answer: AddPartitionsToTxnResponse) -> Errors:
    return {
        TopicPartition(topic.name, each.partition_index): error_code(each.partition_error_code)
        for topic in answer.results_by_topic_v3_and_below
        for each in topic.results_by_partition
        if each.partition_error_code
    }


def _offset_errors(answer: TxnOffsetCommitResponse) -> Errors:
    return {
        TopicPartition(topic.name, each.partition_index): error_code(each.error_code)
        for topic in answer.topics
        for each in topic.partitions
        if each.error_code
    }


def _offset_topics(positions: Mapping[TopicPartition, OffsetAndMetadata]) -> list[TxnOffsetCommitRequest.Topic]:
    topics: dict[str, TxnOffsetCommitRequest.Topic] = {}
    for (name, index), (offset, leader_epoch, metadata) in sorted(positions.items()):
        topics.setdefault(name, TxnOffsetCommitRequest.Topic(name=name, partitions=[])).partitions.append(
            TxnOffsetCommitRequest.Topic.Partition(
                partition_index=index,
                committed_offset=offset,
                committed_leader_epoch=LeaderEpoch(leader_epoch),
                committed_metadata=metadata,
            )
        )
    return list(topics.values())
