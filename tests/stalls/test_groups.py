"""A classic group of 2,000 members: they join, are assigned, one more joins, and all of them vanish.

And a consumer group of very many members and partitions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.server.talk import create, eventually
from tests.stalls.measuring.measure import BUDGET_MS, Callback, MeasuredNode, best_of
from tests.support.requests.raw import RawConnection

from ottla.groups.classic.group import ClassicGroup, ClassicState
from ottla.groups.classic.rebalance import ClassicSessionEnded
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result, Timer
from ottla.wire.compile import encoder
from ottla.wire.frame import request_frame
from ottla.wire.journal.consumer_protocol import ConsumerProtocolSubscription
from ottla.wire.message import Request
from ottla.wire.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.groups.join_group import JoinGroupRequest
from ottla.wire.messages.groups.sync_group import SyncGroupRequest

MEMBERS = 2_000
PER_CONNECTION = 50  # fewer than may be in flight
JOIN, SYNC = 3, 3  # before members need an id first
ASSIGNMENT = bytes(100)


def subscription() -> bytes:
    out = bytearray((0).to_bytes(2, "big"))
    encoder(ConsumerProtocolSubscription, 0)(ConsumerProtocolSubscription(topics=["t"]), out, [])
    return bytes(out)


@dataclass(frozen=True)
class EndSessions:
    """What the clock does when nobody is heard of any more."""

    group: str

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, Any]:
        group = view.state.groups[self.group]
        assert isinstance(group, ClassicGroup)
        ended = [ClassicSessionEnded(self.group, id) for id in group.members]
        return Result(timers=[Timer(("session", each.group_id, each.member_id), now_ms, each) for each in ended])


class Crowd:
    """Members that share connections, as nobody does: all that counts is how much is asked at once."""

    def __init__(self, node: MeasuredNode, group: str) -> None:
        self.node = node
        self.group = group
        self.joined: list[Any] = [None] * MEMBERS  # what each was told last
        self._metadata = subscription()
        self._connections = [node.connect() for _ in range(MEMBERS // PER_CONNECTION)]

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    @property
    def host(self) -> Any:
        return self.node.node.rooms.coordinators.all.groups.coordinators.host_of(self.group)

    @property
    def members(self) -> ClassicGroup:
        found = self.host.machine.view.state.groups[self.group]
        assert isinstance(found, ClassicGroup)
        return found

    def is_there(self) -> bool:
        """Whether the coordinator is."""
        answer: Any = self._connections[0].call(FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group]), 4)
        return not answer.coordinators[0].error_code

    def join(self) -> None:
        for number, told in enumerate(self.joined):
            self._send(number, self.joining(told.member_id if told is not None else ""), JOIN)
        self.joined = [self._receive(number, JoinGroupRequest, JOIN) for number in range(MEMBERS)]
        assert not any(told.error_code for told in self.joined)

    def joining(self, member_id: str) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=45_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequest.Protocol(name="range", metadata=self._metadata)],
        )

    def sync(self) -> None:
        (leader,) = (number for number, told in enumerate(self.joined) if told.leader == told.member_id)
        followers = [number for number in range(MEMBERS) if number != leader]
        for number in followers:
            self._send(number, self._syncing(number), SYNC)
        eventually(lambda: len(self.members.pending_sync) == 1, "all but the leader ask")
        self._send(leader, self._syncing(leader), SYNC)
        # What shares a connection with the leader is answered in the order in which it was sent.
        last = leader - leader % PER_CONNECTION + PER_CONNECTION
        for number in (*(each for each in followers if each < last), leader, *range(last, MEMBERS)):
            told = self._receive(number, SyncGroupRequest, SYNC)
            assert (told.error_code, bytes(told.assignment)) == (0, ASSIGNMENT)

    def _syncing(self, number: int) -> SyncGroupRequest:
        told = self.joined[number]
        members = [each.member_id for each in told.members]
        return SyncGroupRequest(
            group_id=self.group,
            generation_id=told.generation_id,
            member_id=told.member_id,
            assignments=[SyncGroupRequest.Assignment(member_id=id, assignment=ASSIGNMENT) for id in members],
        )

    def _send(self, number: int, request: Request, version: int) -> None:
        self._of(number).send(request_frame(request, version, 1, "member"))

    def _receive(self, number: int, request: type[Request], version: int) -> Any:
        connection = self._of(number)
        return connection.decode(request.key, version, connection.receive(), 1)

    def _of(self, number: int) -> RawConnection:
        return self._connections[number // PER_CONNECTION]


@pytest.fixture
def crowds(tmp_path: Path) -> Iterator[Callable[[], Crowd]]:
    """Crowds of groups of their own."""
    settings = {"offsets.topic.num.partitions": 1, "group.initial.rebalance.delay.ms": 300}
    names = count()
    with MeasuredNode(tmp_path, settings) as node, ExitStack() as stack:
        yield lambda: stack.enter_context(closing(Crowd(node, f"crowd-{next(names)}")))


def test_a_group_of_very_many(crowds: Callable[[], Crowd]) -> None:
    best = costs_of(crowds())
    for _ in range(2):  # a busy machine
        if max(best.values()).cpu_ms <= BUDGET_MS:
            break
        best = {what: min(best[what], cost) for what, cost in costs_of(crowds()).items()}
    assert {what: cost for what, cost in best.items() if cost.cpu_ms > BUDGET_MS} == {}


def costs_of(crowd: Crowd) -> dict[str, Callback]:
    node = crowd.node
    eventually(crowd.is_there, "a coordinator")
    costs = {"all join": node.cost(crowd.join), "all are assigned": node.cost(crowd.sync)}
    with node.connect() as connection:

        def one_more() -> None:
            connection.send(request_frame(crowd.joining(""), JOIN, 1, "member"))
            eventually(lambda: len(crowd.members.members) == MEMBERS + 1, "it is there")
            crowd.join()
            told: Any = connection.decode(JoinGroupRequest.key, JOIN, connection.receive(), 1)
            assert told.error_code == 0

        costs["one more joins"] = node.cost(one_more)

    def vanish() -> None:
        node.call(lambda: crowd.host.submit(EndSessions(crowd.group), lambda _: None))
        eventually(lambda: crowd.members.state is ClassicState.EMPTY, "nobody is left")

    return costs | {"all vanish": node.cost(vanish)}


CONSUMERS, PARTITIONS = 750, 10_000
INTERVAL_MS = 400


def test_a_consumer_group_of_very_many_partitions(tmp_path: Path) -> None:
    """The last who joins makes everybody's assignment another one."""
    settings = {"offsets.topic.num.partitions": 1, "group.consumer.assignment.interval.ms": INTERVAL_MS}
    with MeasuredNode(tmp_path, settings) as node, node.connect() as connection:
        create(connection, "wide", PARTITIONS)

        def is_there() -> bool:
            answer: Any = connection.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
            return not answer.coordinators[0].error_code

        def join(number: int) -> None:
            request = ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id=f"m{number}",
                member_epoch=0,
                rebalance_timeout_ms=45_000,
                subscribed_topic_names=["wide"],
                topic_partitions=[],
            )
            answer: Any = connection.call(request, 1)
            assert answer.error_code == 0, answer

        eventually(is_there, "a coordinator")
        for number in range(CONSUMERS):
            join(number)
        numbers = count(CONSUMERS)
        group = node.node.rooms.coordinators.all.groups.coordinators.host_of("g").machine.view.state.groups["g"]

        def attempt() -> Callback:
            time.sleep(2 * INTERVAL_MS / 1000)
            before = group.assignment_epoch
            cost = node.cost(lambda: join(next(numbers)))
            assert group.assignment_epoch > before
            return cost

        worst = best_of(attempt)
        assert worst.cpu_ms <= BUDGET_MS, worst
