"""Asking the coordinator whether the transactional batches of a produce may be written.

`server/txns/transactional.py` asks; this is what to ask for a produce, and what the answer (`server/txns/admitted.py`)
says.
"""

from __future__ import annotations

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.batch import check_request
from ottla.server.api.context import Context
from ottla.server.loop.later import Later
from ottla.server.txns.admitted import FIRST_VERSION_BY_ID, WITHOUT_ID, Admitted
from ottla.server.txns.transactional import Admission, admit, admit_patiently
from ottla.server.txns.verification import Refusals
from ottla.wire.messages.records.produce import ProduceRequest

# Clients know these from the coordinator only; as an answer to a produce they get one they ask again after.
_ASK_AGAIN = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NETWORK_EXCEPTION,
)


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
                partition.require_leader()
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
