"""The share coordinator's own APIs: the same answers as a real Kafka, for good and bad input."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.compat.conftest import Names, versions_of
from tests.support.requests.same import Both, Plain, Side
from tests.support.requests.share_state import SHARE, StateTalk
from tests.support.waiting import until

from ottla.model.ids import uuid_text
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.shares.delete_share_group_state import DeleteShareGroupStateRequest
from ottla.wire.messages.shares.initialize_share_group_state import InitializeShareGroupStateRequest
from ottla.wire.messages.shares.read_share_group_state import ReadShareGroupStateRequest
from ottla.wire.messages.shares.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from ottla.wire.messages.shares.write_share_group_state import WriteShareGroupStateRequest
from ottla.wire.messages.topics.delete_topics import DeleteTopicsRequest

UNKNOWN_ID = bytes(range(16))


def test_a_life(both: Both, new_name: Names) -> None:
    topic, group = new_name("topic"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        talk = StateTalk(side, group, topic)
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
        talk = StateTalk(side, group, topic)
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
        talk = StateTalk(side, group, topic)
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


def test_overlaps_of_every_kind(both: Both, new_name: Names) -> None:
    """Many writes by chance. Kafka does not always join equal neighbours, so single offsets are compared."""
    topic, group = new_name("topic"), new_name("group")

    def offsets(answer: Plain) -> Plain:
        batches = answer["results"][0]["partitions"][0]["state_batches"]
        return {
            offset: (batch["delivery_state"], batch["delivery_count"])
            for batch in batches
            for offset in range(batch["first_offset"], batch["last_offset"] + 1)
        }

    def script(side: Side) -> Iterator[Plain]:
        rng = random.Random(7)
        talk = StateTalk(side, group, topic, partitions=1)
        yield talk.initialize(0, 0, 0)
        for number in range(60):
            firsts = [rng.randrange(40) for _ in range(rng.randrange(1, 5))]
            ranges = [(at, at + rng.randrange(9), rng.choice((0, 2, 4)), rng.randrange(1, 4)) for at in firsts]
            start = number // 4 if rng.random() < 0.2 else -1
            yield talk.write(0, *ranges, epoch=0, start=start)
            yield offsets(talk.read(0, 0))

    both.same(script)


@pytest.mark.parametrize("version", versions_of(WriteShareGroupStateRequest))
def test_odd_writes(both: Both, new_name: Names, version: int) -> None:
    topic, group = new_name("topic"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        talk = StateTalk(side, group, topic)
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
        talk = StateTalk(side, group, topic)
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
        talk = StateTalk(side, group, topic)
        yield talk.initialize(0, 3, 0)
        yield talk.write(0, (0, 4, 2, 1))
        side.call(DeleteTopicsRequest(topic_names=[topic], timeout_ms=5000), 5)
        side.settle()
        yield until(lambda: talk.read(0, 0), lambda found: "uninitialized" in str(found))
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
        talk = StateTalk(side, group, topic, partitions=1)
        key = KEYS[case].format(group=group, id=uuid_text(talk.id))
        for version in (4, 5, 6):
            answer = side.call(FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[key]), version)
            answer["coordinators"][0]["key"] = "KEY"
            yield answer

    both.same(script)
