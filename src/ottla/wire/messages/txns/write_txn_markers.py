"""WriteTxnMarkers (key 27): the transaction coordinator tells partition leaders to write commit or abort markers.

v2   request + transaction_version
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Bool, Int8, Int16, Int32, ProducerEpoch, ProducerId, String


class WriteTxnMarkersRequest(Request["WriteTxnMarkersResponse"], key=27, versions="1-2", flexible="1+"):
    class WritableTxnMarker(Struct):
        producer_id: ProducerId
        producer_epoch: ProducerEpoch
        transaction_result: Bool

        class WritableTxnMarkerTopic(Struct):
            name: String
            partition_indexes: list[Int32]

        topics: list[WritableTxnMarkerTopic]
        coordinator_epoch: Int32
        transaction_version: Int8 = on("2+", 0)

    markers: list[WritableTxnMarker]


class WriteTxnMarkersResponse(Response, key=27, versions="1-2", flexible="1+"):
    class WritableTxnMarkerResult(Struct):
        producer_id: ProducerId

        class WritableTxnMarkerTopicResult(Struct):
            name: String

            class WritableTxnMarkerPartitionResult(Struct):
                partition_index: Int32
                error_code: Int16

            partitions: list[WritableTxnMarkerPartitionResult]

        topics: list[WritableTxnMarkerTopicResult]

    markers: list[WritableTxnMarkerResult]
