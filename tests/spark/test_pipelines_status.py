"""What is told about pipelines, and what pipelines are told: through a topic of a real node. No Spark."""

import os
import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ottla.client.blocking import Blocking
from ottla.model.resources import Resource
from ottla.spark.pipelines.replay import parse_from
from ottla.spark.pipelines.status import TOPIC, Board, Status
from ottla.testing.broker import Broker

NOW = 1_700_000_000_000


@pytest.fixture
def client(ottla_broker: Broker) -> Iterator[Blocking]:
    with Blocking(ottla_broker.bootstrap) as made:
        yield made


def running(name: str, run: str = "r1") -> Status:
    return Status(name=name, run=run, state="running", updated_ms=NOW, queries=[{"query": name, "lag": 3}])


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
    board.follow()
    assert not board.is_told_to_stop("a", "old")  # before it began to listen
    asking.ask_to_stop(running("a", "other"))
    asking.ask_to_stop(running("b", "r1"))
    assert not board.is_told_to_stop("a", "r1")
    asking.ask_to_stop(running("a", "r1"))
    assert board.is_told_to_stop("a", "r1")
    assert not board.is_told_to_stop("a", "r1")
    assert board.all(NOW) == {}  # commands are no statuses


@pytest.mark.parametrize("junk", [b"junk", b"[]", b"{}", b'{"name": "x", "run": 1, "state": "running"}', b"\xff"])
def test_what_others_write_there_is_nobodys_status(client: Blocking, junk: bytes) -> None:
    board = Board(client)
    board.ensure()
    board.publish(running("a"))
    board.follow()
    for key in (b"x", b"a/stop", b"\xff"):
        client.send(TOPIC, junk, key)
    assert list(board.all(NOW)) == ["a"]
    assert not board.is_told_to_stop("a", "r1")


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
