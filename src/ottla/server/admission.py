"""Which batches of a produce may be written: those of transactions only if the coordinator says so.

`server/transactional.py` asks the coordinator; this is what to ask for a produce, and what its answer means for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.batch import BatchHeader, check_request
from ottla.replica.partition import Partition
from ottla.server.answer import Later
from ottla.server.context import Context
from ottla.server.transactional import Admission, admit, admit_patiently
from ottla.server.verification import Refusals
from ottla.wire.messages.produce import ProduceRequest

FIRST_VERSION_BY_ID = 13
# Clients know these from the coordinator only; as an answer to a produce they get one they ask again after.
_ASK_AGAIN = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NETWORK_EXCEPTION,
)


# Refusals after which the client sends the same batch again.
_COMES_AGAIN = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.CONCURRENT_TRANSACTIONS)


class Admitted:
    """What the coordinator said."""

    __slots__ = ("_everyone", "_new", "_refusals")

    def __init__(
        self,
        refusals: Mapping[TopicPartition, ApiError] | None = None,
        everyone: ApiError | None = None,
        new: Sequence[TopicPartition] = (),
    ) -> None:
        self._refusals = refusals or {}
        self._everyone = everyone
        self._new = new  # partitions that were added for this produce

    def check(self, partition: Partition, header: BatchHeader) -> None:
        """Raises ApiError if a transactional batch may not be written to the partition."""
        refusal = self._everyone or self._refusals.get(TopicPartition(partition.topic, partition.index))
        if refusal is not None:
            if refusal.code in _COMES_AGAIN:
                partition.log.producers.turned_away(header)
            raise refusal

    def check_first(self, partition: Partition, header: BatchHeader) -> None:
        """Raises ApiError if it is not the producer's first where it must be."""
        if self._new and (partition.topic, partition.index) in self._new:
            partition.log.producers.check_first(header, partition.log.next_offset)


# Without a transactional id nobody may write to a transaction.
WITHOUT_ID = Admitted(everyone=ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))


def admission(request: ProduceRequest, context: Context, version: int) -> Later[Admitted]:
    """Asks the coordinator about the partitions in which the producer's transaction is not yet."""
    producers, unknown = _found(request, context, version)
    settled: Later[Admitted] = Later()
    if request.transactional_id is None:
        settled.set(WITHOUT_ID)
        return settled
    if len(producers) > 1:
        message = "Transactional records contained more than one producer ID"
        settled.set(Admitted(everyone=ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, message)))
        return settled
    asks = Admission.of_produce(version)
    if not unknown:
        settled.set(Admitted())
        return settled
    (producer,) = producers
    id = request.transactional_id

    def ask() -> Later[Refusals]:
        return admit(context, id, *producer, unknown, asks)

    answered = admit_patiently(context, ask) if asks is Admission.ADD else ask()
    added = unknown if asks is Admission.ADD else []
    return answered.map(
        lambda refusals: Admitted({where: _told(code, asks) for where, code in refusals.items()}, new=added)
    )


def _found(
    request: ProduceRequest, context: Context, version: int
) -> tuple[dict[tuple[int, int], None], list[TopicPartition]]:
    """The producers (id and epoch) of the transactional batches, and the partitions that are new to them."""
    producers: dict[tuple[int, int], None] = {}
    unknown = []
    for topic in request.topic_data:
        for data in topic.partition_data:
            try:
                header = check_request(data.records if data.records is not None else b"", version)
                if not header.is_transactional:
                    continue
                producer = (header.producer_id, header.producer_epoch)
                producers[producer] = None
                partition = (
                    context.partitions.find_by_id(topic.topic_id, data.index)
                    if version >= FIRST_VERSION_BY_ID
                    else context.partitions.find(topic.name, data.index)
                )
            except ApiError:
                continue  # refused with this when it is its turn
            if not partition.log.producers.has_transaction(*producer):
                unknown.append(TopicPartition(partition.topic, partition.index))
    return producers, unknown


def _told(code: ErrorCode, asked: Admission) -> ApiError:
    if code == ErrorCode.INVALID_TXN_STATE:
        return ApiError(code, "Partition was not added to the transaction")
    if code in _ASK_AGAIN and not (code == ErrorCode.CONCURRENT_TRANSACTIONS and asked is Admission.ADD):
        return ApiError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"Unable to verify the partition has been added to the transaction. Underlying error: {code.name}",
        )
    return ApiError(code)
