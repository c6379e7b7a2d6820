"""Classic groups through a running node: time, broken connections, disks that are slow or fail, many members."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from tests.server.talk import TOPIC, alter, eventually
from tests.support.requests.classic import Actor, Crowd
from tests.support.requests.raw import RawConnection
from tests.support.requests.same import Side

from ottla.log.files.disk import StorageError
from ottla.model.errors import ErrorCode
from ottla.server.ports.os_disk import OsFile
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.groups.describe_groups import DescribeGroupsRequest

OFFSETS = "__consumer_offsets"
SETTINGS = {
    "offsets.topic.num.partitions": 1,
    "connections.max.idle.ms": -1,
    "group.initial.rebalance.delay.ms": 0,
    "group.max.size": 60,
}
GROUP = "g"
Factory = Callable[..., EmbeddedBroker]


@pytest.fixture
def broker(ottla_broker_factory: Factory) -> EmbeddedBroker:
    return ottla_broker_factory(**SETTINGS)


@pytest.fixture
def crowd(broker: EmbeddedBroker) -> Iterator[Crowd]:
    side = Side("ottla", broker.bootstrap)
    with Crowd(side, GROUP, 9) as crowd:
        yield crowd
    side.close()


def state(crowd: Crowd) -> tuple[str, int]:
    """The group's state, and how many members it has."""
    request = DescribeGroupsRequest(groups=[GROUP], include_authorized_operations=False)
    (group,) = crowd.side.call(request, 6)["groups"]
    return group["group_state"], len(group["members"])


def is_in(crowd: Crowd, *wanted: object) -> Callable[[], bool]:
    return lambda: state(crowd) == wanted


def settled(first: Actor, *others: Actor) -> None:
    """All are members of a stable group that `first` leads."""
    first.join()
    for other in others:
        other.start_join()
    if others:
        first.join()
    for other in others:
        other.answer()
        other.send(other.syncs())
    assignments = {each.member_id: each.name.encode() for each in (first, *others)}
    for actor in (first, *others):
        answer = actor.call(actor.syncs(assignments)) if actor is first else actor.answer()
        assert (answer["error_code"], answer["assignment"]) == (0, actor.name.encode())


def test_sessions_end(broker: EmbeddedBroker, crowd: Crowd) -> None:
    anna, bert = crowd.actor("anna"), crowd.actor("bert")
    settled(anna, bert)
    for _ in range(3):
        broker.clock.advance("20s")
        assert anna.heartbeat()["error_code"] == bert.heartbeat()["error_code"] == 0
    broker.clock.advance("20s")
    assert anna.heartbeat()["error_code"] == 0
    broker.clock.advance("11s")
    eventually(is_in(crowd, "PreparingRebalance", 1), "the end of a session")
    assert bert.heartbeat()["error_code"] == ErrorCode.UNKNOWN_MEMBER_ID
    assert anna.heartbeat()["error_code"] == ErrorCode.REBALANCE_IN_PROGRESS
    broker.clock.advance("31s")
    eventually(is_in(crowd, "Empty", 0), "the end of the other")


def test_first_rebalance_waits_for_members(ottla_broker_factory: Factory) -> None:
    broker = ottla_broker_factory(**SETTINGS | {"group.initial.rebalance.delay.ms": 60_000})
    side = Side("ottla", broker.bootstrap)
    with Crowd(side, GROUP, 9) as crowd:
        actors = [crowd.actor(f"m{at}", rebalance_timeout_ms=100_000) for at in range(3)]
        actors[0].start_join()
        actors[1].start_join()
        broker.clock.advance("61s")  # one more came: it goes on waiting, but no longer than the rebalance timeout
        actors[2].start_join()
        assert state(crowd) == ("PreparingRebalance", 3)
        broker.clock.advance("41s")
        assert [actor.answer()["generation_id"] for actor in actors] == [1, 1, 1]
    side.close()


def test_broken_connection_while_a_join_waits(crowd: Crowd) -> None:
    """The member stays; when it comes back it replaces its former request, and the group goes on."""
    anna, bert = crowd.actor("anna"), crowd.actor("bert")
    settled(anna)
    bert.start_join()
    bert.close()
    assert state(crowd) == ("PreparingRebalance", 2)
    again = crowd.actor("bert")
    again.member_id = bert.member_id
    again.send(again.joins())
    assert anna.join()[-1]["generation_id"] == 2
    assert again.answer()["generation_id"] == 2
    again.close()
    assert anna.call(anna.syncs({anna.member_id: b"all"}))["assignment"] == b"all"
    assert state(crowd) == ("Stable", 2)


def test_pipelined_joins_are_answered_in_order(crowd: Crowd) -> None:
    anna, bert = crowd.actor("anna"), crowd.actor("bert")
    settled(anna)
    bert.start_join()
    bert.send(bert.joins())
    eventually(lambda: bert._connection.has_answer(), "the answer to the first")
    assert bert.answer()["error_code"] == ErrorCode.REBALANCE_IN_PROGRESS
    anna.join()
    assert bert.answer()["error_code"] == 0


def test_fifty_members(crowd: Crowd) -> None:
    actors = [crowd.actor(f"m{at}") for at in range(50)]
    settled(*actors)
    assert state(crowd) == ("Stable", 50)
    for actor in reversed(actors):
        actor.send(actor.joins(protocols={"range": b"another"}))
    assert {actor.answer()["generation_id"] for actor in actors} == {3}


def test_group_is_full(crowd: Crowd) -> None:
    actors = [crowd.actor(f"m{at}") for at in range(60)]
    settled(*actors)
    late = crowd.actor("late")
    assert late.call(late.joins())["error_code"] == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert actors[0].heartbeat()["error_code"] == 0


# --- the journal


class Gate:
    """Holds up the syncs of the groups' journal, or makes them fail."""

    def __init__(self) -> None:
        self.waiting = 0
        self.failures: list[StorageError] = []
        self.open = threading.Event()
        self.open.set()
        self._sync = OsFile.sync

    def __call__(self, file: OsFile) -> None:
        if file.path.startswith(OFFSETS) and file.path.endswith(".log"):
            self.waiting += 1
            assert self.open.wait(30)
            if self.failures:
                raise self.failures.pop()
        self._sync(file)


@pytest.fixture
def gate(broker: EmbeddedBroker, crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    with RawConnection(broker.bootstrap) as connection:
        alter(connection, TOPIC, OFFSETS, ottla_fsync_before_ack="true")
    found = Gate()
    monkeypatch.setattr(OsFile, "sync", lambda file: found(file))
    yield found
    found.open.set()


def test_assignments_are_durable_before_they_are_told(crowd: Crowd, gate: Gate) -> None:
    anna, bert = crowd.actor("anna"), crowd.actor("bert")
    settled(anna, bert)
    anna.start_join()
    bert.send(bert.joins())
    assert anna.answer()["generation_id"] == bert.answer()["generation_id"] == 3
    gate.open.clear()
    gate.waiting = 0
    bert.send(bert.syncs())
    anna.send(anna.syncs({anna.member_id: b"A", bert.member_id: b"B"}))
    eventually(lambda: gate.waiting, "the journal's sync")
    assert not anna._connection.has_answer()
    assert not bert._connection.has_answer()
    gate.open.set()
    assert (anna.answer()["assignment"], bert.answer()["assignment"]) == (b"A", b"B")


def test_journal_that_cannot_be_written(crowd: Crowd, gate: Gate) -> None:
    """What was not made durable did not happen: the members are told, and the last stable generation is back."""
    anna = crowd.actor("anna")
    settled(anna)
    anna.join()
    gate.failures = [StorageError(5, "no")]
    refused = anna.call(anna.syncs({anna.member_id: b"lost"}))
    assert refused["error_code"] in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    anna.generation = 1
    # A heartbeat would not do: while the coordinator loads, heartbeats are answered without an error, as by Kafka.
    eventually(lambda: anna.call(anna.syncs())["assignment"] == b"anna", "the coordinator")
    assert anna.join()[-1]["generation_id"] == 2
    assert anna.call(anna.syncs({anna.member_id: b"kept"}))["assignment"] == b"kept"


def test_nobody_notices_a_restart(ottla_broker_factory: Factory) -> None:
    broker = ottla_broker_factory(**SETTINGS)
    side = Side("ottla", broker.bootstrap)
    with Crowd(side, GROUP, 9) as crowd:
        anna, bert = crowd.actor("anna"), crowd.actor("bert", group_instance_id="b")
        settled(anna, bert)
        side.close()
        broker.restart()
    side = Side("ottla", broker.bootstrap)
    with Crowd(side, GROUP, 9) as crowd:
        assert state(crowd) == ("Stable", 2)
        for before in (anna, bert):
            after = crowd.actor(before.name, **before.joining)
            after.member_id, after.generation = before.member_id, before.generation
            assert after.heartbeat()["error_code"] == 0
            assert after.call(after.syncs())["assignment"] == before.name.encode()
        broker.clock.advance("29s")
        assert state(crowd) == ("Stable", 2)
        broker.clock.advance("2s")
        eventually(is_in(crowd, "Empty", 0), "the end of their sessions")
    side.close()
