"""Coordinators on a live node, when something goes wrong in the middle."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.server.talk import eventually
from tests.support.requests.raw import Closed, RawConnection

from ottla.groups.group import Committer
from ottla.groups.offsets.commit import CommitOffsets, NewOffset
from ottla.groups.offsets.fetch import FetchOffsets
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Loaded, Result
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.limits import REQUEST_ELEMENTS_MAX
from ottla.server.coordination.host import Host
from ottla.server.coordination.hosts import Coordinators
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.groups.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest

T = TypeVar("T")
WHERE = TopicPartition("x", 0)


def commit(offset: int) -> CommitOffsets:
    return CommitOffsets("g", Committer("", None, -1, 9), (NewOffset(WHERE, offset, -1, None),))


@dataclass(frozen=True)
class Spoilt:
    """What it writes can be read, what it wants noted cannot."""

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, Any]:
        return Result(commit(6).decide(view, now_ms).records, notes=[object()])


class Inside:
    """Runs things on the broker's own loop."""

    def __init__(self, broker: EmbeddedBroker) -> None:
        self.broker = broker

    def do(self, what: Callable[[], T]) -> T:
        outcome: Future[T] = Future()

        def run() -> None:
            try:
                outcome.set_result(what())
            except Exception as error:
                outcome.set_exception(error)

        loop = self.broker._thread.loop
        assert loop is not None
        loop.call_soon_threadsafe(run)
        return outcome.result(30)

    def ask(self, command: Any) -> Any:
        """The group coordinator's reply."""
        loop = self.broker._thread.loop
        assert loop is not None

        async def asked() -> Any:
            return await self.groups.submit("g", command)

        return asyncio.run_coroutine_threadsafe(asked(), loop).result(30)

    @property
    def groups(self) -> Coordinators[Any]:
        assert self.broker.node is not None
        return self.broker.node.rooms.coordinators.all.groups.coordinators

    @property
    def host(self) -> Host[Any]:
        return self.groups.host_of("g")


@pytest.fixture(params=["at once", "synced first"])
def inside(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Inside]:
    """A broker with the groups' journal; commits count at once, or after a sync."""
    broker = EmbeddedBroker(tmp_path, {"ottla.fsync.before.ack": str(request.param == "synced first").lower()}).start()
    with RawConnection(broker.bootstrap) as connection:
        connection.call(FindCoordinatorRequest(key="g", key_type=0), 3)
    yield Inside(broker)
    broker.stop()


def test_an_answer_that_cannot_be_taken_hurts_nobody_else(inside: Inside, caplog: pytest.LogCaptureFixture) -> None:
    answers: list[Any] = []

    def refuse(value: Any) -> None:
        raise ValueError("no room")

    def both() -> None:
        inside.groups.submit("g", commit(1)).map(refuse)
        inside.groups.submit("g", commit(2)).then(answers.append, pytest.fail)

    if inside.broker.settings["ottla.fsync.before.ack"] == "true":
        inside.do(both)
    assert inside.ask(commit(3)) == [ErrorCode.NONE]
    assert inside.ask(commit(4)) == [ErrorCode.NONE]
    if inside.broker.settings["ottla.fsync.before.ack"] == "true":
        assert answers == [[ErrorCode.NONE]]
        assert "an answer could not be made" in caplog.text


def test_a_change_that_was_only_half_made_is_made_from_the_journal(inside: Inside) -> None:
    assert inside.ask(commit(5)) == [ErrorCode.NONE]
    half = inside.host.machine
    with pytest.raises(KeyError):
        inside.ask(Spoilt())
    assert inside.host.machine is not half
    found = inside.ask(FetchOffsets("g", (WHERE,)))
    assert found.of(WHERE).offset == 6
    assert inside.ask(commit(7)) == [ErrorCode.NONE]


def test_what_a_coordinator_begins_with_is_tried_again(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    assert inside.ask(commit(5)) == [ErrorCode.NONE]
    refusals = 2

    def begin(machine: Any, command: Any, now_ms: int) -> Any:
        nonlocal refusals
        if type(command).__name__ == "Loaded" and refusals:
            refusals -= 1
            raise ApiError(ErrorCode.MESSAGE_TOO_LARGE)
        return decide(machine, command, now_ms)

    machine = type(inside.host.machine)
    decide = machine.decide
    monkeypatch.setattr(machine, "decide", begin)
    inside.do(lambda: inside.host.reload("was told to"))
    while isinstance(found := inside.ask(FetchOffsets("g", (WHERE,))), ApiError):
        assert found.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        inside.broker.clock.advance("1s")
    assert found.of(WHERE).offset == 5
    assert refusals == 0
    assert inside.do(lambda: inside.host._runner.next_deadline_ms) is not None


def test_a_request_that_names_too_many_is_not_answered(tmp_path: Path) -> None:
    """Each name costs time and memory: more than anybody needs close the connection, and hurt nobody else."""
    with EmbeddedBroker(tmp_path) as broker:
        good, bad = RawConnection(broker.bootstrap), RawConnection(broker.bootstrap)
        with pytest.raises(Closed):
            bad.call(DescribeGroupsRequest(groups=["x"] * (REQUEST_ELEMENTS_MAX + 1)), 5)
        assert len(good.call(DescribeGroupsRequest(groups=["x"] * 100), 5).groups) == 100
        good.close()
        bad.close()


def test_a_coordinator_that_begins_anew_twice_is_taken_up_once(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    for offset in range(5):
        assert not isinstance(inside.ask(commit(offset)), ApiError)
    monkeypatch.setattr(limits, "COORDINATOR_LOAD_BYTES", 1)  # one batch per turn of the loop
    taken_up: list[Any] = []
    carry_out = Host._carry_out

    def noting(host: Any, command: Any, reply: Any) -> None:
        if isinstance(command, Loaded):
            taken_up.append(host.index)
        carry_out(host, command, reply)

    monkeypatch.setattr(Host, "_carry_out", noting)
    host = inside.groups.host_of("g")
    inside.do(lambda: (host.reload("once"), host.reload("and again")))
    eventually(lambda: inside.do(lambda: host.active), "it is loaded")
    for _ in range(10):
        inside.do(lambda: None)  # whatever else was to come has had its turn
    assert taken_up == [host.index]


def cut(host: Host[Any], offset: int) -> None:
    """Truncate the journal as a failed write or sync does, but tell nobody: waiters are told in a later turn."""
    partition = host.partition
    partition.cuts += 1
    partition.log.truncate_to(offset)
    partition.high_watermark = partition.told_high_watermark = min(partition.high_watermark, offset)


def test_no_command_is_decided_on_records_that_were_cut(inside: Inside) -> None:
    assert inside.ask(commit(5)) == [ErrorCode.NONE]
    kept = inside.do(lambda: inside.host.partition.log.next_offset)
    assert inside.ask(commit(6)) == [ErrorCode.NONE]
    answers: list[Any] = []

    def cut_then_submit() -> int:
        cut(inside.host, kept)
        inside.host.submit(commit(7), answers.append)
        return inside.host.partition.log.next_offset

    assert inside.do(cut_then_submit) == kept
    assert [answer.code for answer in answers] == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    while isinstance(found := inside.ask(FetchOffsets("g", (WHERE,))), ApiError):
        assert found.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert found.of(WHERE).offset == 5


def test_no_timer_is_decided_on_records_that_were_cut(inside: Inside) -> None:
    assert inside.ask(commit(5)) == [ErrorCode.NONE]
    kept = inside.do(lambda: inside.host.partition.log.next_offset)
    assert inside.ask(commit(6)) == [ErrorCode.NONE]

    def cut_then_wake() -> int:
        host = inside.host
        host._runner._set("due", 0, commit(7))
        cut(host, kept)
        host._wake()
        return host.partition.log.next_offset

    assert inside.do(cut_then_wake) == kept
