"""What is told about pipelines, and what pipelines are told: through a topic of a real node. No Spark."""

import contextlib
import os
import socket
from asyncio import Future
from collections.abc import Iterator
from dataclasses import replace
from threading import Event
from typing import Any, cast

import pytest
from tests.support.waiting import until

from ottla.client.blocking.blocking import Blocking
from ottla.client.errors import ConnectionLost
from ottla.client.options import wall_clock_ms
from ottla.model.resources import Resource
from ottla.spark.pipelines import run
from ottla.spark.pipelines.definition import PipelineError
from ottla.spark.pipelines.load import Pipeline
from ottla.spark.pipelines.replay import parse_from
from ottla.spark.pipelines.starting import starting
from ottla.spark.pipelines.status import TOPIC, Board, PipelineStatus, RunNotice
from ottla.spark.pipelines.status_publisher import StatusPublisher, impatient
from ottla.testing.broker import EmbeddedBroker

NOW = 1_700_000_000_000


@pytest.fixture
def client(ottla_broker: EmbeddedBroker) -> Iterator[Blocking]:
    with Blocking(ottla_broker.bootstrap) as made:
        yield made


def running(name: str, run: str = "r1") -> PipelineStatus:
    return PipelineStatus(name=name, run=run, state="running", updated_ms=NOW, queries=[{"query": name, "lag": 3}])


def test_the_latest_status_of_each_counts(client: Blocking) -> None:
    board = Board(client)
    assert board.all(NOW) == {}  # also before anybody has made the topic
    board.ensure()
    board.ensure()
    board.publish(running("b"))
    board.publish(running("a"))
    board.publish(replace(running("a"), state="stopped"))
    found = board.all(NOW)
    assert [(name, status.state) for name, status in found.items()] == [("a", "stopped"), ("b", "running")]
    assert found["b"].queries == [{"query": "b", "lag": 3}]
    settings = client.admin.configs.describe(Resource.topic(TOPIC))
    assert next(each.value for each in settings if each.name == "cleanup.policy") == "compact"


def test_one_that_is_not_heard_of_is_lost() -> None:
    status = running("a")
    assert status.seen_at(NOW + 4 * status.beat_ms).state == "running"
    assert status.seen_at(NOW + 4 * status.beat_ms + 1).state == "lost"
    assert replace(status, state="stopped").seen_at(NOW + 10**9).state == "stopped"


def test_a_driver_of_this_machine_that_is_gone_is_known_at_once() -> None:
    here = replace(running("a"), host=socket.gethostname())
    assert not replace(here, pid=os.getpid()).is_dead_here
    assert replace(here, pid=2**22 + 1).is_dead_here
    assert not replace(here, pid=2**22 + 1, host="elsewhere").is_dead_here


def test_a_stop_is_for_one_run(client: Blocking) -> None:
    board, asking = Board(client), Board(client)
    board.ensure()
    asking.ask_to_stop(running("a", "old"))
    board.claim(running("a", "old"))
    assert board.listen("a", "old") == RunNotice()  # before it began to listen
    asking.ask_to_stop(running("a", "other"))
    asking.ask_to_stop(running("b", "r1"))
    assert board.listen("a", "r1") == RunNotice()
    asking.ask_to_stop(running("a", "r1"))
    assert board.listen("a", "r1") == RunNotice(stop=True)
    assert board.listen("a", "r1") == RunNotice()
    assert board.all(NOW) == {}  # commands and claims are no statuses


def test_a_command_is_heard_although_reading_failed_on_the_way(
    client: Blocking, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = Board(client)
    board.ensure()
    board.claim(running("a", "r1"))
    board.ask_to_stop(running("a", "r1"))
    board.publish(running("b"))
    read = client.read

    def failing(*given: Any, **named: Any) -> Iterator[Any]:
        yield next(iter(read(*given, **named)))  # the command
        raise ConnectionLost("in the middle")

    with monkeypatch.context() as broken:
        broken.setattr(client, "read", failing)
        with pytest.raises(ConnectionLost):
            board.listen("a", "r1")
    assert board.listen("a", "r1") == RunNotice(stop=True)


def test_of_two_claims_the_later_counts(client: Blocking) -> None:
    one, other = Board(client), Board(client)
    one.ensure()
    one.claim(replace(running("a", "r1"), host="here", pid=1))
    other.claim(replace(running("a", "r2"), host="there", pid=2))
    one.publish(running("a", "r1"))
    assert one.listen("a", "r1") == RunNotice(replaced_by="there (process 2)")
    assert other.listen("a", "r2") == RunNotice()


def test_commands_are_heard_in_a_topic_that_was_made_anew(client: Blocking) -> None:
    board = Board(client)
    board.ensure()
    for _ in range(5):
        board.publish(running("a"))
    board.claim(running("a", "r1"))
    client.admin.topics.delete(TOPIC)
    board.ensure()
    board.ask_to_stop(running("a", "r1"))
    assert board.listen("a", "r1") == RunNotice(stop=True)


def test_a_publisher_tells_and_hears(client: Blocking) -> None:
    Board(client).ensure()
    stopped = Event()
    status = replace(running("a", "r1"), state="starting")
    publisher = StatusPublisher(client, status, stopped.set)
    publisher.start()
    assert Board(client).all(wall_clock_ms())["a"].state == "starting"
    assert publisher.tell_now(replace(status, state="running"))
    assert Board(client).all(wall_clock_ms())["a"].state == "running"
    Board(client).ask_to_stop(status)
    assert stopped.wait(60)
    publisher.tell(replace(status, state="stopped"))
    publisher.close()
    assert Board(client).all(wall_clock_ms())["a"].state == "stopped"
    assert (publisher.away, publisher.replaced_by) == (None, None)


def test_a_publisher_that_was_replaced_says_nothing_more(client: Blocking) -> None:
    Board(client).ensure()
    stopped = Event()
    publisher = StatusPublisher(client, running("a", "r1"), stopped.set)
    publisher.start()
    Board(client).claim(replace(running("a", "r2"), host="there", pid=2))
    Board(client).publish(replace(running("a", "r2"), updated_ms=wall_clock_ms()))
    assert stopped.wait(60)
    publisher.tell(replace(running("a", "r1"), state="stopped"))
    publisher.close()
    assert publisher.replaced_by == "there (process 2)"
    assert Board(client).all(wall_clock_ms())["a"].run == "r2"


def test_a_publisher_ends_although_its_broker_does_not_answer(
    client: Blocking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call that it waits for ends with its client."""
    Board(client).ensure()
    own = impatient(client)
    publisher = StatusPublisher(own, running("a", "r1"), lambda: None)
    publisher.start()

    async def never() -> Any:
        await Future()

    monkeypatch.setattr(Board, "listen", lambda self, name, run: own.run(never()))
    until(lambda: publisher._thread.is_alive())
    publisher.away = "no answer"
    publisher.close()
    own.close(discard=True)
    until(lambda: not publisher._thread.is_alive())


def test_a_publisher_goes_on_after_an_error_that_nobody_thought_of(
    client: Blocking, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Board(client).ensure()
    stopped, failed = Event(), Event()
    listen = Board.listen

    def failing_once(self: Board, name: str, run: str) -> RunNotice:
        if not failed.is_set():
            failed.set()
            raise LookupError("nobody thought of this")
        return listen(self, name, run)

    monkeypatch.setattr(Board, "listen", failing_once)
    publisher = StatusPublisher(client, running("a", "r1"), stopped.set)
    publisher.start()
    assert failed.wait(60)
    Board(client).ask_to_stop(running("a", "r1"))
    assert stopped.wait(60)
    publisher.close()
    assert "nobody thought of this" in caplog.text


def test_a_run_that_may_not_have_its_name_leaves_no_client(client: Blocking, monkeypatch: pytest.MonkeyPatch) -> None:
    Board(client).ensure()
    Board(client).publish(replace(running("a"), host="there", updated_ms=wall_clock_ms()))
    own = impatient(client)
    monkeypatch.setattr(run, "impatient", lambda client: own)
    pipeline = Pipeline("a", "a.py", (), ())
    runner = run.PipelineRun(pipeline, cast("Any", None), client, run.Settings("c"), run_id="r2", identity=running("a"))
    with pytest.raises(PipelineError, match="pipeline a runs already, on there"):
        runner.claim()
    assert own._loop.is_closed


@pytest.mark.parametrize("junk", [b"junk", b"[]", b"{}", b'{"name": "x", "run": 1, "state": "running"}', b"\xff"])
def test_what_others_write_there_is_nobodys_status(client: Blocking, junk: bytes) -> None:
    board = Board(client)
    board.ensure()
    board.publish(running("a"))
    board.claim(running("a"))
    for key in (b"x", b"a/stop", b"a/claim", b"\xff"):
        client.send(TOPIC, junk, key)
    assert list(board.all(NOW)) == ["a"]
    assert board.listen("a", "r1") == RunNotice()


def test_where_a_replay_begins(client: Blocking) -> None:
    client.admin.topics.create("orders", 2)
    client.send_all("orders", [(None, b"x")] * 3)
    (first, second) = (end for _, end in client.admin.topics.bounds("orders").values())
    assert parse_from("earliest", client, NOW).options(["orders"]) == {"startingOffsets": "earliest"}
    offsets = f'{{"orders": {{"0": {min(2, first)}, "1": {min(2, second)}}}}}'
    assert parse_from("2", client, NOW).options(["orders"]) == {"startingOffsets": offsets}
    assert parse_from("2h", client, NOW).time_ms == NOW - 7_200_000
    assert parse_from("2026-01-31T12:00:00+00:00", client, NOW).time_ms == 1_769_860_800_000
    with pytest.raises(ValueError, match="neither earliest"):
        parse_from("yesterday", client, NOW)


def test_why_a_start_failed_is_told_unless_a_run_goes_on(client: Blocking) -> None:
    board = Board(client)
    said: list[dict[str, Any]] = []
    identity = PipelineStatus("shop", "new", "starting", host="here", checkpoint="/c")

    def start(before: PipelineStatus | None, *then: PipelineStatus) -> PipelineStatus:
        with contextlib.suppress(PipelineError), starting(client, identity, before, said.append):
            for each in then:
                board.publish(each)
            raise PipelineError("there is no topic 'x'", "shop.py", 7)
        return board.all(NOW)["shop"]

    found = start(None)
    assert (found.state, found.error, found.host) == ("failed", "shop.py:7: there is no topic 'x'", "here")
    assert said == [{"event": "failed", "pipeline": "shop", "error": found.error}]
    last = replace(running("shop"), state="stopped", generation=3, late={"/c": 5})
    board.publish(last)
    found = start(last)
    assert (found.state, found.generation, found.late) == ("failed", 3, {"/c": 5}), "the next run needs them"

    now_ms = wall_clock_ms()
    elsewhere = replace(running("shop", "r2"), host="elsewhere", updated_ms=now_ms)
    board.publish(elsewhere)
    assert start(elsewhere) == elsewhere, "it goes on"
    claimed = replace(running("shop", "r3"), state="failed", error="told by itself")
    assert start(elsewhere, claimed).error == "told by itself"
    assert len(said) == 2
