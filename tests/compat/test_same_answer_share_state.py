"""The share coordinator's own APIs: the same answers as a real Kafka, for good and bad input."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.compat.conftest import Names, versions_of
from tests.support.same import Both, Plain, Side

from ottla.model.ids import uuid_text
from ottla.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from ottla.wire.messages.read_share_group_state import ReadShareGroupStateRequest
from ottla.wire.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from ottla.wire.messages.write_share_group_state import WriteShareGroupStateRequest

SHARE = 2
UNKNOWN_ID = bytes(range(16))
NOT_READY = (14, 15, 16)  # loading, not available, not the coordinator: a moment after the topic was made
Batch = tuple[int, int, int, int]  # first, last, state, deliveries


class Talk:
    """What a script says to one side about one topic, as one group."""

    def __init__(self, side: Side, group: str, topic: str, partitions: int = 2) -> None:
        self.side = side
        self.group = group
        self.id = side.create(topic, partitions)
        key = f"{group}:{uuid_text(self.id)}:0"
        request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[key])
        _until(lambda: side.call(request, 6), lambda found: found["coordinators"][0]["error_code"] == 0)
        for index in range(partitions):
            _until(lambda index=index: self.summary(index), lambda found: _code(found) not in NOT_READY)

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


def _until(ask: Callable[[], Plain], holds: Callable[[Plain], bool]) -> Plain:
    for _ in range(5000):
        found = ask()
        if holds(found):
            return found
    raise AssertionError(f"it stays so: {found}")


def _code(answer: Plain) -> int:
    return int(answer["results"][0]["partitions"][0]["error_code"])


def test_a_life(both: Both, new_name: Names) -> None:
    topic, group = new_name("topic"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        talk = Talk(side, group, topic)
        yield talk.summary(0)
        yield talk.initialize(0, 3, -1)
        yield talk.summary(0)
        yield talk.read(0, 0)
        yield talk.write(0, (10, 19, 0, 1), (20, 29, 2, 1), start=10, done=10)
        yield talk.read(0, -1)
        # Overlaps of every kind: the higher count wins, then the higher state.
        yield talk.write(0, (15, 24, 0, 2), done=5)
        yield talk.write(0, (12, 12, 4, 5), (29, 40, 0, 1), done=6)
        yield talk.write(0, (41, 50, 0, 1), done=6)
        yield talk.read(0, 0)
        yield talk.write(0, start=18, done=2)
        yield talk.read(0, 0)
        yield talk.summary(0)
        yield talk.summary(0, version=0)
        yield talk.read(1, 0)
        # Started anew: nothing is left.
        yield talk.initialize(0, 3, 7)
        yield talk.read(0, 0)
        yield talk.initialize(0, 4, 100)
        yield talk.summary(0)
        yield talk.delete(0)
        yield talk.delete(0)
        yield talk.summary(0)
        yield talk.read(0, 0)

    both.same(script)


def test_fencing(both: Both, new_name: Names) -> None:
    topic, group = new_name("topic"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        talk = Talk(side, group, topic)
        yield talk.initialize(0, 3, 0)
        yield talk.write(0, (0, 4, 2, 1), epoch=2)
        yield talk.write(0, (0, 4, 2, 1), epoch=-1)
        yield talk.write(0, (5, 5, 2, 1), epoch=9)
        yield talk.read(0, 5)
        yield talk.read(0, 4)
        yield talk.read(0, -1)
        yield talk.write(0, (6, 6, 2, 1), leader_epoch=4)
        yield talk.write(0, (6, 6, 2, 1), leader_epoch=4, epoch=1)
        yield talk.write(0, (7, 7, 2, 1), leader_epoch=-1)
        yield talk.write(0, (8, 8, 2, 1), leader_epoch=8)
        yield talk.read(0, 5)
        yield talk.summary(0)
        yield talk.initialize(0, 2, 0)
        yield talk.initialize(0, -1, 50)
        yield talk.summary(0)
        yield talk.read(0, 4)
        yield talk.write(0, (60, 60, 2, 1), leader_epoch=6, epoch=2)

    both.same(script)


def test_what_is_not_there(both: Both, new_name: Names) -> None:
    topic, group = new_name("topic"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        talk = Talk(side, group, topic)
        for index in (-1, 0, 2, 99):
            yield talk.write(index, (0, 1, 2, 1))
            yield talk.read(index, 0)
            if index:
                yield talk.initialize(index, 1, 0)
            yield talk.summary(index)
            yield talk.delete(index)
        for call in (talk.read, talk.summary, talk.delete):
            yield call(*((0, 0, UNKNOWN_ID) if call == talk.read else (0, UNKNOWN_ID)))
        yield talk.initialize(0, 1, 0, UNKNOWN_ID)
        yield talk.write(0, topic_id=UNKNOWN_ID)

    both.same(script)


@pytest.mark.parametrize("version", versions_of(WriteShareGroupStateRequest))
def test_odd_writes(both: Both, new_name: Names, version: int) -> None:
    topic, group = new_name("topic"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        talk = Talk(side, group, topic)
        yield talk.initialize(0, 0, 5)
        yield talk.write(0, version=version, epoch=0, done=-1)
        yield talk.write(0, (0, 3, 2, 1), (4, 6, 2, 1), start=5, epoch=0, version=version)
        yield talk.write(0, (100, 100, 9, -4), epoch=0, version=version)
        yield talk.write(0, start=3, epoch=0, version=version)
        yield talk.read(0, 0)
        yield talk.summary(0)

    both.same(script)


REQUESTS: dict[str, Any] = {
    "initialize": InitializeShareGroupStateRequest,
    "read": ReadShareGroupStateRequest,
    "write": WriteShareGroupStateRequest,
    "delete": DeleteShareGroupStateRequest,
    "summary": ReadShareGroupStateSummaryRequest,
}
DATA = {
    "initialize": "InitializeStateData",
    "read": "ReadStateData",
    "write": "WriteStateData",
    "delete": "DeleteStateData",
    "summary": "ReadStateSummaryData",
}


@pytest.mark.parametrize("name", REQUESTS)
def test_nothing_asked(both: Both, new_name: Names, name: str) -> None:
    topic, group = new_name("topic"), new_name("group")
    request = REQUESTS[name]
    data = getattr(request, DATA[name])

    def script(side: Side) -> Iterator[Plain]:
        talk = Talk(side, group, topic)
        version = request.versions[1]
        yield side.call(request(group_id="", topics=[]), version)
        yield side.call(request(group_id=group, topics=[]), version)
        yield side.call(request(group_id=group, topics=[data(topic_id=talk.id, partitions=[])]), version)
        fields = {"leader_epoch": 0, "state_epoch": 0, "start_offset": 0, "state_batches": []}
        names = {"initialize": ("state_epoch", "start_offset"), "read": ("leader_epoch",), "delete": ()}
        names |= {"summary": ("leader_epoch",), "write": tuple(fields)}
        each = data.PartitionData(partition=0, **{each: fields[each] for each in names[name]})
        yield side.call(request(group_id="", topics=[data(topic_id=talk.id, partitions=[each])]), version)

    both.same(script)


def test_a_topic_goes(both: Both, new_name: Names) -> None:
    topic, group = new_name("topic"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        talk = Talk(side, group, topic)
        yield talk.initialize(0, 3, 0)
        yield talk.write(0, (0, 4, 2, 1))
        side.call(DeleteTopicsRequest(topic_names=[topic], timeout_ms=5000), 5)
        side.settle()
        yield _until(lambda: talk.read(0, 0), lambda found: "uninitialized" in str(found))
        yield talk.summary(0)
        yield talk.initialize(0, 3, 0)

    both.same(script)


KEYS = {
    "a share partition": "{group}:{id}:0",
    "a group with colons": "a:b:{group}:{id}:12",
    "a negative partition": "{group}:{id}:-1",
    "a partition with a sign": "{group}:{id}:+1",
    "a colon too many": "{group}:{id}:0:",
    "no partition": "{group}:{id}",
    "no group": ":{id}:0",
    "a group of spaces": "  :{id}:0",
    "not an id": "{group}:topic:0",
    "not a number": "{group}:{id}:x",
    "a number too large": "{group}:{id}:2147483648",
    "nothing": "",
}


@pytest.mark.parametrize("case", KEYS)
def test_find_coordinator(both: Both, new_name: Names, case: str) -> None:
    topic, group = new_name("topic"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        talk = Talk(side, group, topic, partitions=1)
        key = KEYS[case].format(group=group, id=uuid_text(talk.id))
        for version in (4, 5, 6):
            answer = side.call(FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[key]), version)
            answer["coordinators"][0]["key"] = "KEY"
            yield answer

    both.same(script)
