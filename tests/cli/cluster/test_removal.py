"""Any node of a local cluster may go, the active controller's too, while a producer goes on; a sole voter, too."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.cli.conftest import Run, invoke
from tests.support.processes.local_cluster import LocalCluster
from tests.support.waiting import WAIT_S, until

from ottla import Admin, Producer
from ottla.cli.nodes.local_cluster import define, found_nodes
from ottla.client.blocking.blocking import Blocking

TOPIC = "t"
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


def ottla(cluster: LocalCluster, *arguments: str, code: int | None = 0) -> Run:
    done = invoke(*arguments, env={"OTTLA_BOOTSTRAP": cluster.bootstrap})
    assert code is None or done.code == code, f"exit code {done.code}\n{done.out}\n{done.err}"
    return done


def voters(cluster: LocalCluster) -> tuple[int, set[int]]:
    """(who leads the quorum, who votes in it)."""
    found = ottla(cluster, "cluster", "quorum", "--json").json
    (leader,) = [each["node"] for each in found if each["role"] == "leader"]
    return leader, {each["node"] for each in found if each["role"] != "observer"}


async def comes(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while True:
            if holds():
                return
            await asyncio.sleep(0.01)


def healthy(cluster: LocalCluster) -> bool:
    return ottla(cluster, "cluster", "status", code=None).code == 0


def stored(cluster: LocalCluster) -> list[int]:
    with Blocking(cluster.bootstrap) as client:
        return sorted(int(record.value or b"-1") for record in client.read(TOPIC))


async def while_producing(bootstrap: str, work: Callable[[Callable[[int], Awaitable[None]]], Awaitable[None]]) -> int:
    """Produce 0, 1, 2 … with acks=all, one after the other, while `work` is done, and some more; how many it were.
    `work` may wait until so many more have been acknowledged."""
    count = 0

    async with Producer(bootstrap) as producer:

        async def produce() -> None:
            nonlocal count
            while True:
                await producer.send(TOPIC, str(count).encode())
                count += 1

        producing = asyncio.create_task(produce())

        async def more(records: int) -> None:
            wanted = count + records
            await comes(lambda: producing.done() or count >= wanted)

        try:
            await more(20)
            await work(more)
            await more(20)
            assert not producing.done(), producing.exception()
        finally:
            producing.cancel()
            await asyncio.gather(producing, return_exceptions=True)
    return count


def test_the_node_of_the_active_controller_goes(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path / "data", "--brokers", "4")
    data = ("--data", str(cluster.directory))
    try:
        ottla(cluster, "topic", "create", TOPIC, "--partitions", "4")
        leader, before = voters(cluster)
        assert before == {1, 2, 3}
        shown = ottla(cluster, "cluster", "remove-broker", str(leader), *data)
        assert "node 4 takes its seat" in shown.err and voters(cluster)[1] == before, "a dry run changes nothing"

        async def remove(_: object) -> None:
            command = ("cluster", "remove-broker", str(leader), "--execute", *data)
            done = await asyncio.to_thread(ottla, cluster, *command)
            assert "node 4 votes" in done.err and f"node {leader} no longer votes" in done.err
            assert f"broker {leader} is forgotten" in done.err

        count = asyncio.run(while_producing(cluster.bootstrap, remove))
        cluster.wait_for(f"node-{leader} │ stopping")
        until(lambda: cluster.node_pid(leader) is None)
        left = [each for each in (1, 2, 3, 4) if each != leader]
        status = ottla(cluster, "cluster", "status", "--json").json
        assert [each["id"] for each in status["brokers"]] == left and status["healthy"]
        assert voters(cluster)[1] == set(left) and set(stored(cluster)) >= set(range(count))

        # Three nodes keep everything three times: no other one can go.
        refused = ottla(cluster, "cluster", "remove-broker", str(left[0]), "--execute", *data, code=1)
        assert f"broker {left[0]} cannot go" in refused.err and voters(cluster)[1] == set(left)

        assert cluster.stop() == 0
        cluster = LocalCluster(tmp_path / "data")
        until(lambda: healthy(cluster))
        assert voters(cluster)[1] == set(left) and set(stored(cluster)) >= set(range(count))
        assert "defined broker 5" in ottla(cluster, "cluster", "add-broker", "--voter", *data).err
        assert voters(cluster)[1] == {*left, 5}
    finally:
        cluster.stop()


def test_a_sole_voter_hands_its_partitions_over(tmp_path: Path) -> None:
    """When it is gone nobody can be told anything any more, so the other broker has to know before."""
    cluster = LocalCluster(tmp_path / "data", "--brokers", "2")
    data = ("--data", str(cluster.directory))
    try:
        assert voters(cluster) == (1, {1})
        ottla(cluster, "topic", "create", TOPIC, "--partitions", "4", "--replication-factor", "2")

        async def stop(more: Callable[[int], Awaitable[None]]) -> None:
            pid = cluster.node_pid(1)
            assert pid is not None
            os.kill(pid, signal.SIGTERM)
            await comes(lambda: cluster.node_pid(1) is None)
            await more(20)
            async with Admin(cluster.nodes()[2].address) as admin:
                found = (await admin.topics.describe(TOPIC)).partitions
                assert [(each.leader, each.isr) for each in found] == [(2, (2,))] * 4

        count = asyncio.run(while_producing(cluster.bootstrap, stop))
        assert cluster.stop() == 0
        cluster = LocalCluster(tmp_path / "data")
        until(lambda: healthy(cluster))
        assert set(stored(cluster)) >= set(range(count))

        # The only voter goes for good: its seat is taken first.
        ottla(cluster, "topic", "delete", TOPIC, "--yes")
        done = ottla(cluster, "cluster", "remove-broker", "1", "--execute", *data)
        assert "node 2 takes its seat" in done.err and "broker 1 is forgotten" in done.err
        refused = ottla(cluster, "cluster", "remove-broker", "2", "--execute", *data, code=1)
        assert "node 2 is the only" in refused.err
    finally:
        cluster.stop()


def test_fixed_voters_of_an_older_release(tmp_path: Path) -> None:
    """Its files name the voters. It goes on as it is, and may be changed to voters that change."""
    directory, data = tmp_path / "data", ("--data", str(tmp_path / "data"))
    nodes = define(tmp_path / "new", 3, None, ("127.0.0.1", 0))
    fixed = ",".join(f"{each.node_id}@{each.controller_address}" for each in nodes)
    directory.mkdir()
    for node in nodes:
        values = node.values | {"controller.quorum.voters": fixed, "log.dirs": str(directory / node.name)}
        del values["controller.quorum.bootstrap.servers"]
        lines = [f"{name}={value}" for name, value in values.items()]
        path = directory / node.path.name
        path.write_text("\n".join(lines) + "\n")
        assert invoke("format", str(path), "--cluster-id", CLUSTER_ID).code == 0
    cluster = LocalCluster(directory)
    try:
        ottla(cluster, "topic", "create", TOPIC, "--partitions", "3", "--replication-factor", "1")
        refused = ottla(cluster, "cluster", "remove-broker", "2", "--execute", *data, code=1)
        assert "the voters of this cluster are fixed" in refused.err and "kraft.version=1" in refused.err
        refused = ottla(cluster, "cluster", "remove-voter", "2", code=1)
        assert "the voters of this cluster are fixed" in refused.err
        # Every voter tells each new leader what it supports, a moment after that began.
        raised = ("cluster", "features", "kraft.version=1")
        until(lambda: "finalised kraft.version 1" in ottla(cluster, *raised, code=None).err)
        done = ottla(cluster, "cluster", "remove-broker", "2", "--execute", *data)
        assert "2 voters are left: none of them may fail" in done.err and "broker 2 is forgotten" in done.err
        assert [each.node_id for each in found_nodes(directory)] == [1, 3]
        assert cluster.stop() == 0
        cluster = LocalCluster(directory)
        until(lambda: healthy(cluster))
        assert voters(cluster)[1] == {1, 3}
        pid = cluster.node_pid(3)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        cluster.wait_for("node-3 ended")
        # The other one gives up after a while, and then nobody can be asked; which is said.
        until(lambda: "no controller leads" in ottla(cluster, "cluster", "quorum", code=None).err)
    finally:
        cluster.stop()
