"""Hundreds of groups that come and go in a hurry: nothing of them is left when they are gone."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.requests.raw import RawConnection

from ottla.testing.broker import EmbeddedBroker
from ottla.wire.frame import request_frame
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.groups.join_group import JoinGroupRequest
from ottla.wire.messages.groups.leave_group import LeaveGroupRequest
from ottla.wire.messages.groups.offset_commit import OffsetCommitRequest
from ottla.wire.messages.groups.sync_group import SyncGroupRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest

GROUPS = 300
ROUNDS = 3
WITHOUT_ID, WITH_ID = 3, 5  # versions of JoinGroup: from 4 on a member is given an id first


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    broker = EmbeddedBroker(tmp_path, {"offsets.retention.minutes": 1, "offsets.topic.num.partitions": 5}).start()
    with RawConnection(broker.bootstrap) as connection:
        topic = CreateTopicsRequest.CreatableTopic(
            name="t", num_partitions=1, replication_factor=1, assignments=[], configs=[]
        )
        connection.call(CreateTopicsRequest(topics=[topic], timeout_ms=5_000), 7)
        connection.call(FindCoordinatorRequest(key="g", key_type=0), 3)
    yield broker
    broker.stop()


def join(group: str, member: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000,
        member_id=member,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.Protocol(name="range", metadata=b"\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff")],
    )


class Crowd:
    """One life of each group, all kinds of them mixed."""

    def __init__(self, broker: EmbeddedBroker, rng: random.Random) -> None:
        self.broker = broker
        self.rng = rng
        self.connection = RawConnection(broker.bootstrap)
        self.left_behind: list[RawConnection] = []

    def play(self, group: str) -> None:
        how = self.rng.choice(["leave", "vanish", "never sync", "never come back", "hang up while joining", "commit"])
        if how == "never come back":
            answer: Any = self.connection.call(join(group), WITH_ID)
            assert answer.member_id
            return
        joined: Any = self.connection.call(join(group), WITHOUT_ID)
        if joined.error_code or how == "never sync":
            return
        self._sync(group, joined)
        if how in ("leave", "commit"):
            self._commit(group, joined)
        if how == "leave":
            self.connection.call(LeaveGroupRequest(group_id=group, member_id=joined.member_id), 2)
        if how == "hang up while joining":  # the first does not rejoin, so this one is parked
            other = RawConnection(self.broker.bootstrap)
            other.send(request_frame(join(group), WITHOUT_ID, 1, "gone"))
            self.left_behind.append(other)

    def _sync(self, group: str, joined: Any) -> None:
        member: str = joined.member_id
        mine = SyncGroupRequest.Assignment(member_id=member, assignment=b"all")
        request = SyncGroupRequest(
            group_id=group, generation_id=joined.generation_id, member_id=member, assignments=[mine]
        )
        assert self.connection.call(request, 3).error_code == 0  # type: ignore[attr-defined]

    def _commit(self, group: str, joined: Any) -> None:
        partition = OffsetCommitRequest.Topic.Partition(partition_index=0, committed_offset=1, committed_metadata="m")
        topic = OffsetCommitRequest.Topic(name="t", partitions=[partition])
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=joined.generation_id,
            member_id=joined.member_id,
            topics=[topic],
        )
        answer: Any = self.connection.call(request, 7)
        assert answer.topics[0].partitions[0].error_code == 0

    def go(self) -> None:
        self.connection.close()
        for each in self.left_behind:
            each.close()


def test_nothing_is_left_of_groups_that_are_gone(broker: EmbeddedBroker) -> None:
    rng = random.Random(5)
    for _ in range(ROUNDS):
        crowd = Crowd(broker, rng)
        for number in range(GROUPS):
            crowd.play(f"g{number}")
        crowd.go()
        broker.clock.advance("15s")  # sessions end
    broker.clock.advance("6m")  # so do those of members that never heard of their generation
    assert broker.node is not None
    hosts = list(broker.node.rooms.coordinators.all.groups.coordinators.hosts())
    assert sum(len(host.machine.view.state.groups) for host in hosts) > 0
    broker.clock.advance("30m")  # the offsets' time is over, and that of groups without any
    for host in hosts:
        runner = host._runner
        assert runner._parked == {}
        assert list(runner._held) == []
        assert [key for key in runner._timers if key != ("offsets", "expiry")] == []
        assert len(runner._deadlines) == len(runner._place) <= 1 + len(runner._timers)
        state = host.machine.view.state
        assert state.groups == {}
        assert list(state.offsets.groups()) == []
    assert broker.node.storage.waiters.count == 0
