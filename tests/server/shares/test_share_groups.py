"""Share groups on a live node: sessions by the clock, restarts, a journal that is pruned, and what deletions leave."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.server.talk import eventually
from tests.support.requests.same import Plain, Side
from tests.support.requests.share_state import StateTalk
from tests.support.requests.shares import ShareTalk

from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest

SETTINGS = {
    "offsets.topic.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "share.coordinator.snapshot.update.records.per.snapshot": 3,
}
EARLIEST, LATEST = -2, -1


@pytest.fixture
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path_factory.mktemp("groups"), SETTINGS) as broker:
        yield broker


@pytest.fixture
def side(broker: EmbeddedBroker) -> Iterator[Side]:
    side = Side("ottla", broker.bootstrap)
    yield side
    side.close()


def offset(side: Side, timestamp: int) -> int:
    """The first or the next offset of the share coordinator's journal."""
    topic = ListOffsetsRequest.Topic
    asked = topic(name="__share_group_state", partitions=[topic.Partition(partition_index=0, timestamp=timestamp)])
    found = side.call(ListOffsetsRequest(replica_id=-1, topics=[asked]), 7)
    return int(found["topics"][0]["partitions"][0]["offset"])


def members(group: ShareTalk) -> Plain:
    return [each["member_id"] for each in group.describe()["groups"][0]["members"]]


def test_whoever_is_silent_is_gone(broker: EmbeddedBroker, side: Side) -> None:
    side.create("orders")
    group = ShareTalk(side, "shop", **{"share.session.timeout.ms": "50000"})
    epoch = group.join("anna", "orders")["member_epoch"]
    broker.clock.advance("49s")
    assert group.beat("anna", epoch)["error_code"] == 0
    broker.clock.advance("49s")
    assert members(group) == ["anna"]
    broker.clock.advance("2s")
    eventually(lambda: members(group) == [], "the end of the session")
    assert group.beat("anna", epoch)["error_code"] == 25  # UNKNOWN_MEMBER_ID


def test_a_restart_is_not_noticed(broker: EmbeddedBroker, side: Side) -> None:
    side.create("orders", 3)
    group = ShareTalk(side, "shop")
    joined = group.join("anna", "orders")
    described, offsets = group.describe(), group.offsets()
    broker.restart()
    again = Side("ottla", broker.bootstrap)
    again.ids = side.ids
    group.side = again
    assert group.describe() == described and group.offsets() == offsets
    beat = group.beat("anna", joined["member_epoch"])
    assert (beat["error_code"], beat["member_epoch"], beat["assignment"]) == (0, joined["member_epoch"], None)
    again.close()


def test_the_journal_is_pruned_and_enough_of_it_is_left(broker: EmbeddedBroker, side: Side) -> None:
    talk = StateTalk(side, "shop", "orders")
    for index in range(2):
        talk.initialize(index, 3, 0)
    for at in range(20):
        talk.write(0, (at, at, 2, 1), done=at + 1)
    assert offset(side, EARLIEST) == 0
    # One partition is quiet: only when it has a new snapshot can the journal be cut. The first look, five minutes after
    # the coordinator began, may be a moment too early for a partition that was written after that.
    for _ in range(2):
        broker.clock.advance("6m")
        assert offset(side, LATEST) > 20
    eventually(lambda: offset(side, LATEST) - offset(side, EARLIEST) <= 5, "a pruned journal")
    before = [talk.read(index, 0) for index in range(2)]
    assert before[0]["results"][0]["partitions"][0]["state_batches"][0]["last_offset"] == 19
    broker.restart()
    again = Side("ottla", broker.bootstrap)
    again.ids = side.ids
    talk.side = again
    assert [talk.read(index, 0) for index in range(2)] == before
    # It goes on from where it is: nothing that is needed is cut.
    talk.write(0, (20, 20, 2, 1), done=21)
    broker.clock.advance("9m")
    last = talk.read(0, 0)["results"][0]["partitions"][0]["state_batches"]
    assert (last[0]["first_offset"], last[0]["last_offset"]) == (0, 20)
    again.close()


def test_a_deleted_group_leaves_nothing(broker: EmbeddedBroker, side: Side) -> None:
    side.create("orders", 2)
    group = ShareTalk(side, "shop")
    group.alter({"orders": {0: 3, 1: 4}})
    assert [each["start_offset"] for each in group.offsets()["groups"][0]["topics"][0]["partitions"]] == [3, 4]
    assert group.delete()["results"][0]["error_code"] == 0
    found = group.offsets({"orders": [0, 1]})["groups"][0]["topics"][0]["partitions"]
    assert [each["start_offset"] for each in found] == [-1, -1]
    # A group of the same name begins like any other.
    assert group.join("anna", "orders")["assignment"]["topic_partitions"][0]["partitions"] == [0, 1]
