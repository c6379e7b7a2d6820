"""`ottla up --brokers 3` and `ottla cluster` on it: a cluster that loses a node, gains one, and gives it back."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.conftest import Run, invoke, started
from tests.support.processes.local_cluster import LocalCluster, is_alive
from tests.support.processes.node import OttlaNode
from tests.support.waiting import WAIT_S, until, until_async

from ottla.client.admin import Admin
from ottla.client.admin.topics import NewTopic
from ottla.client.blocking.blocking import Blocking
from ottla.cluster.balance.loads import ReplicaMove
from ottla.model.ids import TopicPartition
from ottla.operations.cluster.throttle import NOTHING, Throttles, find, hand_over, slow_down

Ottla = Callable[..., Run]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("up") / "data"


@pytest.fixture(scope="module")
def local(directory: Path) -> Iterator[LocalCluster]:
    """Three nodes; the tests of this module run in order and leave three healthy ones behind."""
    cluster = LocalCluster(directory, "--brokers", "3", "--set", "num.partitions=6")
    yield cluster
    cluster.stop()


@pytest.fixture
def ottla(local: LocalCluster) -> Ottla:
    def run(*arguments: str, code: int | None = 0) -> Run:
        done = invoke(*arguments, env={"OTTLA_BOOTSTRAP": local.bootstrap})
        assert code is None or done.code == code, f"exit code {done.code}\n{done.out}\n{done.err}"
        return done

    return run


def healthy(ottla: Ottla) -> bool:
    return ottla("cluster", "status", code=None).code == 0


def values(local: LocalCluster, topic: str) -> list[bytes]:
    with Blocking(local.bootstrap) as client:
        return sorted(record.value or b"" for record in client.read(topic))


def test_three_brokers_and_their_files(local: LocalCluster, ottla: Ottla) -> None:
    nodes = local.nodes()
    assert list(nodes) == [1, 2, 3]
    assert local.bootstrap == ",".join(each.address for each in nodes.values())
    assert {each.values["process.roles"] for each in nodes.values()} == {"broker,controller"}
    assert nodes[2].values["min.insync.replicas"] == "2" and nodes[2].values["num.partitions"] == "6"
    ottla("topic", "create", "kept")
    ottla("produce", "kept", *(str(number) for number in range(40)))
    status = ottla("cluster", "status", "--json").json
    assert status["healthy"] and status["problems"] == {} and status["partitions"] == 6
    assert [(each["id"], each["fenced"], each["leaders"], each["replicas"]) for each in status["brokers"]] == [
        (1, False, 2, 6),
        (2, False, 2, 6),
        (3, False, 2, 6),
    ]
    quorum = ottla("cluster", "quorum", "--json").json
    assert sorted(each["role"] for each in quorum) == ["leader", "voter", "voter"]
    assert status["controller"] in (1, 2, 3)
    assert ottla("cluster", "balance").err.count("Nothing to move.") == 1


def test_what_is_read_counts_as_load(local: LocalCluster, ottla: Ottla) -> None:
    stopped = threading.Event()
    with Blocking(local.bootstrap) as client:
        hot = next(iter(client.read("kept"))).partition
    partitions = ottla("topic", "describe", "kept", "--json").json[0]["partitions"]
    leader = next(str(each["leader"]) for each in partitions if each["partition"] == hot)

    def read() -> None:
        with Blocking(local.bootstrap) as client:
            while not stopped.is_set():
                assert list(client.read("kept", hot))

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        try:
            plan = ottla("cluster", "balance", "--sample", "1s", "--json").json
            shown = ottla("cluster", "balance", "--sample", "1s").out
        finally:
            stopped.set()
        reading.result()
    rates = {broker: each["rate"] for broker, each in plan["before"].items()}
    assert rates.pop(leader) > 0 and set(rates.values()) == {0}, "nobody writes, and one of them is read from"
    assert "traffic" in shown.splitlines()[0]


def test_a_node_that_dies_is_reported_and_may_be_started_again(local: LocalCluster, ottla: Ottla) -> None:
    pid = local.node_pid(2)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    local.wait_for("node-2 ended with -9")
    until(lambda: not healthy(ottla))
    ottla("produce", "kept", "written while one is away")
    # Whichever broker is asked, each knows it a moment after the controller.
    problems = until(
        lambda: ottla("cluster", "status", "--json", code=1).json["problems"],
        lambda found: found.get("fenced_brokers") == ["2"] and len(found.get("under_replicated", ())) == 6,
    )
    assert "offline" not in problems and "under_min_isr" not in problems
    shown = until(lambda: ottla("cluster", "status", code=1).out, lambda out: "fenced" in out)
    assert "under replicated" in shown
    node = OttlaNode(local.directory / "started")
    node._arguments = [str(local.nodes()[2].path)]
    node.start()
    try:
        until(lambda: healthy(ottla))
        # Who led before does not lead by itself; the balancer sees that, or one asks for it.
        ottla("cluster", "elect")
        until(
            lambda: [each["leaders"] for each in ottla("cluster", "status", "--json", code=None).json["brokers"]],
            lambda leaders: leaders == [2, 2, 2],
        )
    finally:
        node.stop()
    assert len(values(local, "kept")) == 41


def test_it_goes_on_while_nodes_that_were_started_by_hand_run(tmp_path: Path) -> None:
    """Each of its own nodes dies once; it ends after the last one that was started again."""
    cluster = LocalCluster(tmp_path / "data", "--brokers", "2")
    by_hand = []
    try:
        for node_id in (1, 2):
            pid = cluster.node_pid(node_id)
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            cluster.wait_for(f"node-{node_id} ended with -9")
            node = OttlaNode(tmp_path / f"started-{node_id}")
            node._arguments = [str(cluster.nodes()[node_id].path)]
            node.start()
            by_hand.append(node)
        with Blocking(cluster.bootstrap) as client:
            assert client.send("t", b"v").offset == 0
        assert "no node is left" not in cluster.lines and is_alive(cluster.pid)
        for node in reversed(by_hand):  # the controller last
            node.stop()
        cluster.wait_for("no node is left")
    finally:
        for node in by_hand:
            node.stop()
        cluster.stop()


def test_restart(local: LocalCluster, directory: Path, ottla: Ottla) -> None:
    """The same command finds the same cluster; a killed parent takes its nodes along."""
    before = ottla("cluster", "status", "--json", code=None).json
    pids = [local.node_pid(1), local.node_pid(3)]
    assert local.node_pid(2) is None
    local.kill()
    until(lambda: not any(is_alive(pid) for pid in pids if pid is not None))
    again = LocalCluster(directory)
    local.__dict__.update(again.__dict__)
    until(lambda: healthy(ottla))
    after = ottla("cluster", "status", "--json").json
    assert after["cluster_id"] == before["cluster_id"] and len(after["brokers"]) == 3
    assert len(values(local, "kept")) == 41


def test_a_broker_comes_and_goes(local: LocalCluster, ottla: Ottla) -> None:
    data = ("--data", str(local.directory))
    assert "defined broker 4" in ottla("cluster", "add-broker", *data).err
    local.wait_for("ready")
    until(lambda: len(ottla("cluster", "status", "--json").json["brokers"]) == 4)
    plan = ottla("cluster", "balance", "--json").json
    assert plan["after"]["4"]["replicas"] == 4 and not plan["executed"] and len(plan["partitions"]) >= 4
    assert "4" not in {str(each) for at in _replicas(ottla) for each in at}, "a dry run changes nothing"
    done = ottla("cluster", "balance", "--execute", "--throttle", "10MiB", "--at-once", "2")
    assert "moves are done" in done.err
    status = ottla("cluster", "status", "--json").json
    assert [each["replicas"] for each in status["brokers"]] == [5, 5, 4, 4] or sorted(
        each["replicas"] for each in status["brokers"]
    ) == [4, 4, 5, 5]
    assert max(each["leaders"] for each in status["brokers"]) <= 2
    topic = ottla("topic", "describe", "kept", "--json").json[0]
    assert "leader.replication.throttled.replicas" not in topic["settings"]

    assert "would be stopped" in ottla("cluster", "remove-broker", "4", *data).err
    gone = ottla("cluster", "remove-broker", "4", "--execute", *data)
    assert "broker 4 is forgotten" in gone.err
    status = ottla("cluster", "status", "--json").json
    assert [(each["id"], each["replicas"]) for each in status["brokers"]] == [(1, 6), (2, 6), (3, 6)]
    assert sorted(local.nodes()) == [1, 2, 3] and len(values(local, "kept")) == 41


def _replicas(ottla: Ottla, topic: str = "kept") -> list[list[int]]:
    return [each["replicas"] for each in ottla("topic", "describe", topic, "--json").json[0]["partitions"]]


def test_moves_by_hand(local: LocalCluster, ottla: Ottla, tmp_path: Path) -> None:
    shown = ottla("cluster", "reassign", "kept:0=3,2")
    assert "kept-0" in shown.out and "add --execute" in shown.err
    ottla("cluster", "reassign", "kept:0=3,2", "--execute")
    assert _replicas(ottla)[0] == [3, 2]
    leaders = [each["leader"] for each in ottla("topic", "describe", "kept", "--json").json[0]["partitions"]]
    assert leaders[0] == 3
    file = tmp_path / "moves.json"
    file.write_text('{"version": 1, "partitions": [{"topic": "kept", "partition": 0, "replicas": [1, 2, 3]}]}')
    ottla("cluster", "reassign", "--file", str(file), "--execute")
    assert _replicas(ottla)[0] == [1, 2, 3]
    assert ottla("cluster", "reassign", "--list", "--json").json == []
    assert "Nothing moves" in ottla("cluster", "reassign", "--cancel").err
    assert "there is no partition kept-9" in ottla("cluster", "reassign", "kept:9=1", code=1).err
    assert "there is no broker 8" in ottla("cluster", "reassign", "kept:0=8", code=1).err
    assert "there is no broker 8" in ottla("cluster", "drain", "8", code=1).err


# --- throttles

SOURCES = "leader.replication.throttled.replicas"
RATE = "leader.replication.throttled.rate"


def throttle_of(ottla: Ottla, topic: str) -> str | None:
    settings = ottla("topic", "describe", topic, "--json").json[0]["settings"]
    return str(settings[SOURCES]) if SOURCES in settings else None


def has_rate(ottla: Ottla, broker: int) -> bool:
    return RATE in ottla("config", "get", "broker", str(broker)).out


@contextmanager
def moving_slowly(local: LocalCluster, ottla: Ottla) -> Iterator[subprocess.Popen[str]]:
    """A command that moves `slow` to and fro, which takes longer than anybody waits."""
    at = TopicPartition("slow", 0)
    with Blocking(local.bootstrap) as client:
        if at.topic not in client.admin.topics.names():
            client.admin.topics.create_each([NewTopic("slow", -1, -1, assignments={0: [1]})]).all()
            until(lambda: client.admin.topics.describe_each(["slow"]).found)
            client.send_all("slow", [(None, bytes(50_000))] * 40)
    there = _replicas(ottla, "slow")[0][0]
    words = ["cluster", "reassign", f"slow:0={3 - there}", "--execute", "--throttle", "1kB", "-b", local.bootstrap]
    with started(*words) as process:
        until(
            lambda: ottla("cluster", "reassign", "--list", "--json").json,
            lambda found: found or process.poll() is not None,
        )
        assert process.poll() is None
        yield process


def test_a_throttle_of_somebody_else_stays(local: LocalCluster, ottla: Ottla) -> None:
    """It used to be taken away by the next command, whoever had set it."""
    ottla("topic", "alter", "kept", f"{SOURCES}=0:1")
    ottla("config", "set", "broker", "2", f"{RATE}=1000000")
    ottla("cluster", "reassign", "kept:0=3,2", "--execute")
    moved = ottla("cluster", "reassign", "kept:0=1,2,3", "--execute", "--throttle", "10MiB")
    for whose in ("topic kept", "broker 2"):
        assert f"{whose} has a throttle that somebody else set" in moved.err
    until(lambda: throttle_of(ottla, "kept") == "0:1" and has_rate(ottla, 2) and not has_rate(ottla, 3))
    assert "interrupted" not in ottla("cluster", "status").err
    kept = ottla("cluster", "reassign", "--unthrottle")
    assert "has left a throttle" in kept.err and "broker 2 has a throttle that somebody else set: it stays" in kept.err
    until(lambda: throttle_of(ottla, "kept") == "0:1" and has_rate(ottla, 2))
    ottla("topic", "alter", "kept", "--unset", SOURCES)
    ottla("config", "set", "broker", "2", "--unset", RATE)


def test_a_move_that_is_interrupted_says_how_to_take_off_its_throttle(local: LocalCluster, ottla: Ottla) -> None:
    with moving_slowly(local, ottla) as process:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 128 + signal.SIGTERM and "goes on by itself" in err and "Traceback" not in err
    assert "throttled still: `ottla cluster reassign --unthrottle` takes it off" in err
    until(lambda: has_rate(ottla, 1) and has_rate(ottla, 2) and "2147483647:1" in (throttle_of(ottla, "slow") or ""))
    assert "took the throttle off slow" in ottla("cluster", "reassign", "--unthrottle").err
    until(lambda: not has_rate(ottla, 1) and not has_rate(ottla, 2) and throttle_of(ottla, "slow") is None)
    until(lambda: not ottla("cluster", "reassign", "--list", "--json").json)


def test_a_throttle_that_a_killed_command_left_behind(local: LocalCluster, ottla: Ottla) -> None:
    with moving_slowly(local, ottla) as process:
        process.kill()
        process.wait(WAIT_S)
    with Blocking(local.bootstrap) as client:
        client.admin.replicas.cancel([TopicPartition("slow", 0)])
        until(lambda: not client.admin.replicas.reassignments())
    left = "an interrupted command left its throttle on topic slow, broker 1, broker 2"
    until(lambda: left in ottla("cluster", "status").err)
    assert ottla("cluster", "status", "--json").json["throttle_left_behind"] is True
    assert "left its throttle on topic slow" in ottla("cluster", "balance").err
    assert has_rate(ottla, 1) and throttle_of(ottla, "slow") is not None, "a dry run changes nothing"
    ottla("cluster", "balance", "--leaders-only", "--execute")
    until(lambda: not has_rate(ottla, 1) and not has_rate(ottla, 2) and throttle_of(ottla, "slow") is None)
    assert ottla("cluster", "status", "--json").json["throttle_left_behind"] is False
    ottla("topic", "delete", "slow", "--yes")


def test_a_throttle_goes_with_a_command_that_ends_before_anything_moves(local: LocalCluster, ottla: Ottla) -> None:
    until(lambda: healthy(ottla))
    move = ReplicaMove(TopicPartition("kept", 0), (1,), (2,), 100)

    told: list[str] = []

    async def test() -> None:
        async with Admin(local.bootstrap) as admin:
            known = await slow_down(admin, [move], 1000)
            assert known == Throttles({"kept": (1, 2)}, (1, 2), ())
            await until_async(lambda: find(admin), lambda found: found == known)
            await hand_over(admin, known, told.append)
            await until_async(lambda: find(admin), lambda found: found == NOTHING)

    asyncio.run(test())
    assert not told


def test_what_cannot_be_done(local: LocalCluster, ottla: Ottla) -> None:
    stays = ottla("cluster", "drain", "2", "--execute", code=1)
    assert "kept-0 cannot leave broker 2" in stays.err and "not everything can be moved" in stays.err
    ottla("cluster", "balance", "--leaders-only", "--execute")
    refused = ottla("cluster", "elect", "nothing:0", code=1)
    assert "nothing-0: UNKNOWN_TOPIC_OR_PARTITION" in refused.err and "elected" not in refused.err
    assert "there is no broker 9" in ottla("cluster", "balance", "--capacity", "9=2", code=1).err
    assert "each broker once" in ottla("cluster", "reassign", "kept:0=1,1", code=1).err
    assert "No such file" in ottla("cluster", "reassign", "--file", "nothing.json", code=1).err


def test_leaders_leave_for_a_restart(local: LocalCluster, ottla: Ottla) -> None:
    ottla("cluster", "drain", "3", "--leaders-only", "--execute")
    status = ottla("cluster", "status", "--json").json
    assert [(each["leaders"], each["replicas"]) for each in status["brokers"]] == [(3, 6), (3, 6), (0, 6)]
    done = ottla("cluster", "balance", "--leaders-only", "--execute", "--json").json
    assert done["executed"] and done["copied_bytes"] == 0 and done["failed"] == {}
    status = ottla("cluster", "status", "--json").json
    assert [each["leaders"] for each in status["brokers"]] == [2, 2, 2]


def test_a_reader_that_goes_away_cancels_no_move(local: LocalCluster, ottla: Ottla) -> None:
    """As with `| head -1`: it used to move nothing, and to say success."""
    ottla("cluster", "balance", "--leaders-only", "--execute")
    reading, writing = os.pipe()
    os.close(reading)
    words = ["cluster", "drain", "2", "--leaders-only", "--execute", "-b", local.bootstrap]
    done = subprocess.run(
        [sys.executable, "-m", "ottla", *words], stdout=writing, stderr=writing, timeout=120, check=False
    )
    os.close(writing)
    assert done.returncode == 0
    status = ottla("cluster", "status", "--json").json
    assert [each["leaders"] for each in status["brokers"]] == [3, 0, 3]


def test_the_end(local: LocalCluster) -> None:
    """Ctrl-C stops all nodes, at once and cleanly."""
    pids = [local.node_pid(each) for each in (1, 2, 3)]
    assert None not in pids
    assert local.stop() == 0
    assert local.lines[-1] == "stopped cleanly"
    assert not any(is_alive(pid) for pid in pids if pid is not None)
    assert all((local.directory / f"node-{each}" / ".kafka_cleanshutdown").exists() for each in (1, 2, 3))
