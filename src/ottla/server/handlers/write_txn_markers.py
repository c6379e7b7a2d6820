"""WriteTxnMarkers (key 27): write the ends of transactions into partitions that this node leads.

Brokers that coordinate transactions send it, and admins who abort a transaction that hangs.

v2 transaction version (KIP-890)
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.control import EndTxnMarker
from ottla.server.answer import Answer, gather
from ottla.server.context import Context
from ottla.server.dispatch import handles
from ottla.server.markers import write_marker
from ottla.server.portions import Portions
from ottla.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

MarkerResult = WriteTxnMarkersResponse.WritableTxnMarkerResult
TopicResult = MarkerResult.WritableTxnMarkerTopicResult
PartitionResult = TopicResult.WritableTxnMarkerPartitionResult


@handles(
    WriteTxnMarkersRequest,
    portions=Portions(
        "markers.topics.partition_indexes", "markers.topics.partitions", limits.PARTITIONS_OPENED_PER_SLICE
    ),
)
def write_txn_markers(request: WriteTxnMarkersRequest, context: Context) -> Answer[WriteTxnMarkersResponse]:
    wanted = []
    written = []
    for marker in request.markers:
        end = EndTxnMarker(marker.transaction_result, marker.coordinator_epoch)
        for topic in marker.topics:
            for index in topic.partition_indexes:
                where = TopicPartition(topic.name, index)
                wanted.append((marker.producer_id, where))
                written.append(
                    write_marker(
                        context.services,
                        where,
                        marker.producer_id,
                        marker.producer_epoch,
                        end,
                        marker.transaction_version,
                    )
                )

    def respond(errors: Sequence[ApiError | None]) -> WriteTxnMarkersResponse:
        """By producer, then by topic, as Kafka puts them."""
        results: dict[int, dict[str, list[PartitionResult]]] = {}
        for (producer_id, where), error in zip(wanted, errors, strict=True):
            code = error.code if error is not None else ErrorCode.NONE
            partitions = results.setdefault(producer_id, {}).setdefault(where.topic, [])
            partitions.append(PartitionResult(partition_index=where.partition, error_code=code))
        return WriteTxnMarkersResponse(
            markers=[
                MarkerResult(
                    producer_id=producer_id,
                    topics=[TopicResult(name=name, partitions=partitions) for name, partitions in topics.items()],
                )
                for producer_id, topics in results.items()
            ]
        )

    return gather(written).map(respond)
