"""The partitions of a scripted broker: they append like a broker does, sequence numbers included, or fail on demand."""

from collections import deque
from typing import Any

from tests.client.scripted import CLOSE, ScriptedBroker, metadata

from ottla.model.errors import ErrorCode
from ottla.records.batch import BatchHeader, headers, stamp
from ottla.records.record import Record, records
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ottla.wire.messages.records.produce import ProduceRequest, ProduceResponse
from ottla.wire.messages.topics.metadata import MetadataRequest
from ottla.wire.messages.txns.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

# What a script may say about the next Produce: append and answer, append and hang up, hang up, or an error code.
APPEND, APPEND_AND_CLOSE, JUST_CLOSE = "append", "append and close", "just close"


class ScriptedPartitions:
    """One topic `t`; `script` holds what becomes of the next Produce requests, in order (then all go well)."""

    def __init__(self, broker: ScriptedBroker, partitions: int = 1) -> None:
        self.logs: dict[int, bytearray] = {index: bytearray() for index in range(partitions)}
        self.ends = dict.fromkeys(range(partitions), 0)
        self.starts = dict.fromkeys(range(partitions), 0)
        # (partition, producer) -> (first sequence, record count, base offset) of the last five batches, as in Kafka
        self.sequences: dict[tuple[int, int], deque[tuple[int, int, int]]] = {}
        self.script: deque[str | ErrorCode] = deque()
        self.next_producer_id = 100
        self.max_batch_bytes = 1 << 20
        broker.answers |= {
            MetadataRequest: metadata(broker, partitions),
            InitProducerIdRequest: self.init_producer_id,
            ProduceRequest: self.produce,
            FetchRequest: self.fetch,
            ListOffsetsRequest: self.list_offsets,
        }

    def records(self, partition: int = 0) -> list[Record]:
        data = memoryview(self.logs[partition])
        return [record for position, _ in headers(data) for record in records(data, position)]

    def values(self, partition: int = 0) -> list[bytes | None]:
        return [record.value for record in self.records(partition)]

    def init_producer_id(self, request: InitProducerIdRequest) -> InitProducerIdResponse:
        self.next_producer_id += 1
        return InitProducerIdResponse(
            throttle_time_ms=0, error_code=0, producer_id=self.next_producer_id, producer_epoch=0
        )

    # --- produce ------------------------------------------------------------------------------------------------

    def produce(self, request: ProduceRequest, version: int) -> Any:
        act = self.script.popleft() if self.script else APPEND
        if act == JUST_CLOSE:
            return CLOSE
        topics = []
        for topic in request.topic_data:
            results = []
            for each in topic.partition_data:
                code, offset = act, -1
                if not isinstance(act, ErrorCode):
                    code, offset = self.append(each.index, bytes(each.records or b""))
                results.append(
                    ProduceResponse.TopicProduceResponse.PartitionProduceResponse(
                        index=each.index, error_code=int(code), base_offset=offset
                    )
                )
            topics.append(
                ProduceResponse.TopicProduceResponse(
                    name=topic.name, topic_id=topic.topic_id, partition_responses=results
                )
            )
        if act == APPEND_AND_CLOSE:
            return CLOSE
        return None if request.acks == 0 else ProduceResponse(responses=topics)

    def append(self, partition: int, data: bytes) -> tuple[ErrorCode, int]:
        batch = bytearray(data)
        ((_, header),) = headers(memoryview(batch))
        if len(batch) > self.max_batch_bytes:
            return ErrorCode.MESSAGE_TOO_LARGE, -1
        if header.producer_id >= 0:
            code, offset = self._check_sequence(partition, header)
            if code or offset >= 0:
                return code, offset
        offset = self.ends[partition]
        stamp(memoryview(batch), 0, offset, 0)
        self.logs[partition] += batch
        self.ends[partition] += header.count
        known = self.sequences.setdefault((partition, header.producer_id), deque(maxlen=5))
        known.append((header.base_sequence, header.count, offset))
        return ErrorCode.NONE, offset

    def _check_sequence(self, partition: int, header: BatchHeader) -> tuple[ErrorCode, int]:
        known = self.sequences.get((partition, header.producer_id))
        if known is None:
            return ErrorCode.NONE, -1  # a producer that is not known may begin anywhere, as in Kafka
        if known[-1][0] + known[-1][1] == header.base_sequence:
            return ErrorCode.NONE, -1
        for sequence, count, offset in known:
            if (sequence, count) == (header.base_sequence, header.count):
                return ErrorCode.NONE, offset
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1

    # --- fetch --------------------------------------------------------------------------------------------------

    def fetch(self, request: FetchRequest, version: int) -> FetchResponse:
        answer = FetchResponse.FetchableTopicResponse
        return FetchResponse(
            throttle_time_ms=0,
            responses=[
                answer(
                    topic=topic.topic,
                    topic_id=topic.topic_id,
                    partitions=[self._read(each) for each in topic.partitions],
                )
                for topic in request.topics
            ],
        )

    def _read(self, wanted: FetchRequest.Topic.Partition) -> FetchResponse.FetchableTopicResponse.PartitionData:
        index, offset = wanted.partition, wanted.fetch_offset
        in_range = self.starts[index] <= offset <= self.ends[index]
        data = memoryview(bytes(self.logs[index]))
        found = next((position for position, header in headers(data) if header.next_offset > offset), len(data))
        return FetchResponse.FetchableTopicResponse.PartitionData(
            partition_index=index,
            error_code=0 if in_range else int(ErrorCode.OFFSET_OUT_OF_RANGE),
            high_watermark=self.ends[index],
            aborted_transactions=None,
            records=data[found : found + wanted.partition_max_bytes] if in_range else b"",
        )

    def list_offsets(self, request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
        kind = ListOffsetsResponse.TopicResponse
        topics = []
        for topic in request.topics:
            partitions = []
            for each in topic.partitions:
                offset = {-1: self.ends, -2: self.starts}.get(each.timestamp, {}).get(each.partition_index)
                if offset is None:
                    later = [r for r in self.records(each.partition_index) if r.timestamp >= each.timestamp]
                    offset = later[0].offset if later else -1
                partitions.append(
                    kind.PartitionResponse(partition_index=each.partition_index, error_code=0, offset=offset)
                )
            topics.append(kind(name=topic.name, partitions=partitions))
        return ListOffsetsResponse(throttle_time_ms=0, topics=topics)
