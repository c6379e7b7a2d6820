"""Transactions: list, describe, find hanging transactions, abort."""

from collections.abc import Iterable
from typing import NamedTuple

from ottla.client.admin.asking import ask_every_broker, one_by_one
from ottla.client.admin.topics import ActiveProducer, TopicAdmin
from ottla.client.checks import checked_names, checked_number, checked_partition
from ottla.client.cluster import Cluster
from ottla.client.coordinator import CoordinatorKind, call_once
from ottla.client.errors import check, error_code
from ottla.client.outcomes import Outcomes
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerEpoch, ProducerId, TopicPartition
from ottla.wire.messages.txns.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.txns.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.txns.list_transactions import ListTransactionsRequest
from ottla.wire.messages.txns.write_txn_markers import WriteTxnMarkersRequest

_NO_TRANSACTION = -1
_FENCING_TIMEOUT_MS = 60_000
_IN_64_BITS = {"at_least": -limits.INT64_MAX, "at_most": limits.INT64_MAX}
_ID = "the transactional id"
Marker = WriteTxnMarkersRequest.WritableTxnMarker


class TransactionListing(NamedTuple):
    """A transactional id in a list of transactions."""

    transactional_id: str
    producer_id: int
    state: str


class TransactionDescription(NamedTuple):
    """A transactional id with its current transaction; `started_ms` is None between transactions."""

    transactional_id: str
    state: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    timeout_ms: int
    started_ms: int | None
    partitions: tuple[TopicPartition, ...]


class TransactionAdmin:
    """Operations on transactions."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def all(
        self, states: Iterable[str] = (), producer_ids: Iterable[int] = (), *, running_ms: int = -1
    ) -> list[TransactionListing]:
        """Return the transactions of all brokers, sorted; with `running_ms`, only those that have been open at least
        so long.
        """
        answers = await self.all_each(states, producer_ids, running_ms=running_ms)
        return sorted(each for listed in answers.all().values() for each in listed)

    async def all_each(
        self, states: Iterable[str] = (), producer_ids: Iterable[int] = (), *, running_ms: int = -1
    ) -> Outcomes[int, list[TransactionListing]]:
        """Return the transactions by coordinating broker; a broker that cannot be reached has a failed outcome."""
        request = ListTransactionsRequest(
            state_filters=checked_names(states, "a state"),
            producer_id_filters=[checked_number(each, "the id of a producer", **_IN_64_BITS) for each in producer_ids],
            duration_filter=checked_number(running_ms, "running_ms", **_IN_64_BITS),
        )
        answers = await ask_every_broker(self._cluster, request, lambda each: each.error_code)
        for unknown in (each.unknown_state_filters for each in answers.found.values()):
            if unknown:
                raise ApiError(ErrorCode.INVALID_REQUEST, f"there is no transaction state {', '.join(unknown)}")
        found = {
            node_id: [
                TransactionListing(each.transactional_id, each.producer_id, each.transaction_state)
                for each in answer.transaction_states
            ]
            for node_id, answer in answers.found.items()
        }
        return Outcomes(found, answers.failed)

    async def describe(self, transactional_id: str) -> TransactionDescription:
        """Return the state of a transactional id. Raises TRANSACTIONAL_ID_NOT_FOUND."""
        answer = await call_once(
            self._cluster,
            transactional_id,
            CoordinatorKind.TRANSACTION,
            DescribeTransactionsRequest(transactional_ids=[transactional_id]),
            lambda each: each.transaction_states[0].error_code,
        )
        (found,) = answer.transaction_states
        check(found.error_code, f"there is no transactional id {transactional_id!r}")
        started_ms = found.transaction_start_time_ms
        return TransactionDescription(
            found.transactional_id,
            found.transaction_state,
            found.producer_id,
            found.producer_epoch,
            found.transaction_timeout_ms,
            None if started_ms == _NO_TRANSACTION else started_ms,
            tuple(sorted(TopicPartition(each.topic, index) for each in found.topics for index in each.partitions)),
        )

    async def describe_each(self, transactional_ids: Iterable[str]) -> Outcomes[str, TransactionDescription]:
        """Describe several transactional ids, each at its own coordinator, with an outcome per id."""
        return await one_by_one(checked_names(transactional_ids, _ID), self.describe)

    async def abort(self, transactional_id: str) -> None:
        """Abort the open transaction and fence the current producer of the id, as a new producer with that id would."""
        await self.describe(transactional_id)  # raises if the id does not exist: InitProducerId would create it
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=_FENCING_TIMEOUT_MS,
            producer_id=NO_PRODUCER_ID,
            producer_epoch=NO_PRODUCER_EPOCH,
        )
        answer = await call_once(
            self._cluster,
            transactional_id,
            CoordinatorKind.TRANSACTION,
            request,
            lambda each: each.error_code,
        )
        check(answer.error_code)

    async def abort_each(self, transactional_ids: Iterable[str]) -> Outcomes[str, None]:
        """Abort the transactions of several ids, with an outcome per id."""
        return await one_by_one(checked_names(transactional_ids, _ID), self.abort)

    async def abort_in(self, partition: TopicPartition, start_offset: int) -> ActiveProducer:
        """Abort a hanging transaction in one partition, which its coordinator does not know, by its first offset
        there.
        """
        partition = checked_partition(partition)
        checked_number(start_offset, "start_offset", at_least=0, at_most=limits.INT64_MAX)
        asked: ActiveProducer | None = None

        async def attempt() -> ActiveProducer:
            nonlocal asked
            for producer in await TopicAdmin(self._cluster).producers(partition):
                if producer.current_txn_start_offset == start_offset:
                    asked = producer
                    await self._write_abort(partition, producer)
                    return producer
            if asked is not None:  # an earlier attempt has written the marker, but its response was lost
                return asked
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"no open transaction of {partition.topic}-{partition.partition} begins there",
            )

        return await self._cluster.retry(attempt, seeking=True)

    async def _write_abort(self, partition: TopicPartition, producer: ActiveProducer) -> None:
        topic = Marker.WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])
        marker = Marker(
            producer_id=ProducerId(producer.producer_id),
            producer_epoch=ProducerEpoch(producer.producer_epoch),
            transaction_result=False,
            topics=[topic],
            coordinator_epoch=max(producer.coordinator_epoch, 0),
        )
        node_id, _ = await self._cluster.leader(partition)
        request = WriteTxnMarkersRequest(markers=[marker])
        answer = await self._cluster.ask_leader(node_id, [partition.topic], request)
        for each in (at for result in answer.markers for found in result.topics for at in found.partitions):
            if error_code(each.error_code).retriable:
                self._cluster.metadata.mark_stale(partition.topic)
            check(each.error_code)
