"""Requests to the share coordinator for comparisons: about one group's share partitions of one topic, on one side."""

from typing import Any

from tests.support.requests.same import Plain, Side
from tests.support.waiting import until

from ottla.model.ids import uuid_text
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.shares.delete_share_group_state import DeleteShareGroupStateRequest
from ottla.wire.messages.shares.initialize_share_group_state import InitializeShareGroupStateRequest
from ottla.wire.messages.shares.read_share_group_state import ReadShareGroupStateRequest
from ottla.wire.messages.shares.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from ottla.wire.messages.shares.write_share_group_state import WriteShareGroupStateRequest

SHARE = 2
Batch = tuple[int, int, int, int]  # first, last, state, deliveries


class StateTalk:
    """Sends requests about one topic to one side, as one share group."""

    def __init__(self, side: Side, group: str, topic: str, partitions: int = 2) -> None:
        self.side = side
        self.group = group
        self.id = side.create(topic, partitions)
        key = f"{group}:{uuid_text(self.id)}:0"
        request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[key])
        until(lambda: side.call(request, 6), lambda found: found["coordinators"][0]["error_code"] == 0)
        for index in range(partitions):
            until(lambda index=index: self.summary(index), lambda found: _code(found) == 0)

    def initialize(self, index: int, epoch: int, start: int, topic_id: bytes | None = None) -> Plain:
        data = InitializeShareGroupStateRequest.InitializeStateData
        each = data.PartitionData(partition=index, state_epoch=epoch, start_offset=start)
        return self._call(InitializeShareGroupStateRequest, data(topic_id=topic_id or self.id, partitions=[each]), 0)

    def read(self, index: int, leader_epoch: int, topic_id: bytes | None = None) -> Plain:
        data = ReadShareGroupStateRequest.ReadStateData
        each = data.PartitionData(partition=index, leader_epoch=leader_epoch)
        return self._call(ReadShareGroupStateRequest, data(topic_id=topic_id or self.id, partitions=[each]), 0)

    def write(
        self,
        index: int,
        *batches: Batch,
        epoch: int = 3,
        leader_epoch: int = 0,
        start: int = -1,
        done: int = 0,
        topic_id: bytes | None = None,
        version: int = 1,
    ) -> Plain:
        data = WriteShareGroupStateRequest.WriteStateData
        names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
        each = data.PartitionData(
            partition=index,
            state_epoch=epoch,
            leader_epoch=leader_epoch,
            start_offset=start,
            delivery_complete_count=done,
            state_batches=[data.PartitionData.StateBatch(**dict(zip(names, batch, strict=True))) for batch in batches],
        )
        return self._call(WriteShareGroupStateRequest, data(topic_id=topic_id or self.id, partitions=[each]), version)

    def delete(self, index: int, topic_id: bytes | None = None) -> Plain:
        data = DeleteShareGroupStateRequest.DeleteStateData
        each = data.PartitionData(partition=index)
        return self._call(DeleteShareGroupStateRequest, data(topic_id=topic_id or self.id, partitions=[each]), 0)

    def summary(self, index: int, topic_id: bytes | None = None, version: int = 1) -> Plain:
        data = ReadShareGroupStateSummaryRequest.ReadStateSummaryData
        each = data.PartitionData(partition=index, leader_epoch=0)
        about = data(topic_id=topic_id or self.id, partitions=[each])
        return self._call(ReadShareGroupStateSummaryRequest, about, version)

    def _call(self, request: Any, about: Any, version: int) -> Plain:
        return self.side.call(request(group_id=self.group, topics=[about]), version)


def _code(answer: Plain) -> int:
    return int(answer["results"][0]["partitions"][0]["error_code"])
