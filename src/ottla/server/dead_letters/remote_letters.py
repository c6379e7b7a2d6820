"""Dead letters for partitions that other nodes lead: sent with Produce requests, one batch per partition at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ottla.log.inspection import Placed
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.replica.partition import ACKS_ALL
from ottla.server.loop.later import Later
from ottla.server.peers.peer_requests import Outbox, PeerRequests
from ottla.wire.messages.records.produce import ProduceRequest, ProduceResponse


class RemoteBatch:
    """A batch that is being sent to a partition that another node leads. For waiters it looks like a partition with
    this batch as its only record.
    """

    __slots__ = ("cuts", "high_watermark", "records")

    counts_later = True  # so that a producer with acks=1 waits for it, too: until it is stored, only memory has it

    def __init__(self, records: bytearray) -> None:
        self.records: bytearray | None = records  # None once the batch is stored or refused
        self.cuts = 0
        self.high_watermark = 0

    def settle(self, answer: ProduceResponse | ApiError) -> None:
        codes = [ErrorCode.NETWORK_EXCEPTION] if isinstance(answer, ApiError) else _codes(answer)
        self.records = None
        if codes == [ErrorCode.NONE]:
            self.high_watermark = 1
        else:
            self.cuts += 1


class RemotePartition(NamedTuple):
    node_id: int
    topic_id: bytes
    topic: str
    index: int  # type: ignore[assignment]  # hides tuple.index


class RemoteLetters:
    """`notify` is called with each batch when it is stored or refused."""

    def __init__(self, peers: PeerRequests, notify: Callable[[RemoteBatch], None]) -> None:
        self._peers = peers
        self._notify = notify
        # One at a time: a Produce request can have only one batch per partition.
        self._outbox: Outbox[RemotePartition, RemoteBatch] = Outbox(self._send, lambda each: each, items_max=1)

    def put(self, to: RemotePartition, batches: list[bytearray]) -> list[Placed]:
        """Send the batches soon. Raises ApiError if too many batches wait for the same partition already."""
        if self._outbox.waiting(to) >= limits.DEAD_LETTER_BATCHES_WAITING_MAX:
            # Producers with acks=0 do not wait for their letters, so a limit must protect this node's memory.
            raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, f"The leader of {to.topic}-{to.index} does not keep up.")
        return [self._put(to, RemoteBatch(batch)) for batch in batches]

    def _put(self, to: RemotePartition, batch: RemoteBatch) -> Placed:
        self._outbox.put(to, batch)
        return Placed(batch, 0, 1)

    def _send(self, to: RemotePartition, batches: list[RemoteBatch]) -> Later[None]:
        (batch,) = batches
        assert batch.records is not None, "it is sent once"
        data = ProduceRequest.TopicProduceData(
            name=to.topic,
            topic_id=to.topic_id,
            partition_data=[
                ProduceRequest.TopicProduceData.PartitionProduceData(index=to.index, records=memoryview(batch.records))
            ],
        )
        request = ProduceRequest(acks=ACKS_ALL, timeout_ms=limits.COORDINATOR_REQUEST_MS, topic_data=[data])

        def answered(answer: ProduceResponse | ApiError) -> None:
            batch.settle(answer)
            self._notify(batch)

        return self._peers.ask(to.node_id, request, "letters").map(answered)


def _codes(answer: ProduceResponse) -> list[int]:
    return [each.error_code for topic in answer.responses for each in topic.partition_responses]
