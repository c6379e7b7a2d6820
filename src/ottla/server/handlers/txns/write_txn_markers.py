"""WriteTxnMarkers (key 27): write transaction markers to partitions that this node leads.

It is sent by transaction coordinators, and by admin clients that abort a hanging transaction.

v2 transaction version (KIP-890)
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from ottla.machine.stepped import in_one_go
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import ProducerId, TopicPartition
from ottla.records.control import EndTxnMarker
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.loop.later import Answer, Large, Later, Sliced, gather
from ottla.server.loop.slices import Slices
from ottla.server.txns.marker_writer import COST_PER_SLICE, MarkerWriter
from ottla.wire.messages.txns.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

MarkerResult = WriteTxnMarkersResponse.WritableTxnMarkerResult
TopicResult = MarkerResult.WritableTxnMarkerTopicResult
PartitionResult = TopicResult.WritableTxnMarkerPartitionResult


Written = list[tuple[ProducerId, TopicPartition, Later[ApiError | None]]]


@handles(
    WriteTxnMarkersRequest,
    needs=Needs(
        (on_cluster(AclOperation.ALTER, instead=AclOperation.CLUSTER_ACTION),),
        mirror="markers.topics.partition_indexes > markers.topics.partitions:partition_index",
        unnoted="coordinators send it for each transaction",
    ),
)
def write_txn_markers(request: WriteTxnMarkersRequest, context: Context) -> Answer[WriteTxnMarkersResponse]:
    """Write markers in slices, then wait for all replicas together: a slow partition delays no other."""
    written = context.runtime.slices.answer(_written(request, context.transactions.marker_writer))
    if isinstance(written, Sliced):
        return Sliced(_answer(written, context.runtime.slices), changes=True)
    return _outcomes(written).map(lambda errors: in_one_go(_response(written, errors)))


async def _answer(writing: Sliced[Written], slices: Slices) -> Large[WriteTxnMarkersResponse]:
    done = await writing
    written = done.response if isinstance(done, Large) else done
    return Large(await slices.finish(_response(written, await _outcomes(written))))


def _outcomes(written: Written) -> Later[list[ApiError | None]]:
    return gather([later for _, _, later in written])


def _written(request: WriteTxnMarkersRequest, writer: MarkerWriter) -> Generator[None, None, Written]:
    written: Written = []
    left = COST_PER_SLICE
    for marker in request.markers:
        end = EndTxnMarker(marker.transaction_result, marker.coordinator_epoch)
        producer_id, epoch, version = marker.producer_id, marker.producer_epoch, marker.transaction_version
        for topic in marker.topics:
            for index in topic.partition_indexes:
                if left <= 0:
                    yield
                    left = COST_PER_SLICE
                where = TopicPartition(topic.name, index)
                left -= writer.cost(where)
                written.append((producer_id, where, writer.write(where, producer_id, epoch, end, version)))
    return written


def _response(written: Written, errors: Sequence[ApiError | None]) -> Generator[None, None, WriteTxnMarkersResponse]:
    """Return the results by producer, then by topic, in Kafka's order."""
    results: dict[ProducerId, dict[str, list[PartitionResult]]] = {}
    for number, ((producer_id, where, _), error) in enumerate(zip(written, errors, strict=True), 1):
        code = error.code if error is not None else ErrorCode.NONE
        partitions = results.setdefault(producer_id, {}).setdefault(where.topic, [])
        partitions.append(PartitionResult(partition_index=where.partition, error_code=code))
        if not number % limits.ELEMENTS_PER_STEP:
            yield
    return WriteTxnMarkersResponse(
        markers=[
            MarkerResult(
                producer_id=producer_id,
                topics=[TopicResult(name=name, partitions=partitions) for name, partitions in topics.items()],
            )
            for producer_id, topics in results.items()
        ]
    )
