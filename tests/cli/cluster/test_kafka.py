"""`ottla cluster` on a real Kafka of three nodes: what it plans, Kafka carries out."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest
from tests.cli.conftest import Run, invoke, started
from tests.support.processes.clusters import KafkaCluster, ProcessCluster, running
from tests.support.waiting import WAIT_S, until

from ottla.client.blocking.blocking import Blocking

pytestmark = pytest.mark.compat
Ottla = Callable[..., Run]


@pytest.fixture(scope="module")
def cluster(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    made = KafkaCluster(tmp_path_factory.mktemp("cluster"), racks={1: "a", 2: "b", 3: "b"}, heap="256m")
    with running(made) as started:
        yield started


@pytest.fixture
def ottla(cluster: ProcessCluster) -> Ottla:
    def run(*arguments: str, code: int | None = 0) -> Run:
        done = invoke(*arguments, env={"OTTLA_BOOTSTRAP": cluster.bootstrap})
        assert code in (done.code, None), f"exit code {done.code}\n{done.out}\n{done.err}"
        return done

    return run


def spread(ottla: Ottla) -> list[tuple[int, int]]:
    """How many replicas each broker has, and how many of them lead, as the broker that is asked knows it by now."""
    brokers = ottla("cluster", "status", "--json", code=None).json["brokers"]
    return [(each["replicas"], each["leaders"]) for each in brokers]


def healthy(ottla: Ottla) -> bool:
    return ottla("cluster", "status", code=None).code == 0


def test_balance_a_lopsided_topic(cluster: ProcessCluster, ottla: Ottla) -> None:
    with Blocking(cluster.bootstrap) as client:
        client.admin.topics.create("lopsided", 6, 2, {"min.insync.replicas": "1"})
    ottla("cluster", "reassign", *(f"lopsided:{index}=1,2" for index in range(6)), "--execute")
    with Blocking(cluster.bootstrap) as client:
        client.send_all("lopsided", [(None, bytes(1000))] * 300)
    until(lambda: spread(ottla), lambda found: found == [(6, 6), (6, 0), (0, 0)])
    done = ottla("cluster", "balance", "--execute", "--throttle", "100MB", "--json").json
    assert done["failed"] == {} and done["copied_bytes"] > 0
    # Rack a is broker 1 alone, and every partition keeps a replica in each rack.
    until(lambda: spread(ottla), lambda found: found == [(6, 2), (3, 2), (3, 2)])
    until(lambda: healthy(ottla))
    settings = ottla("topic", "describe", "lopsided", "--json").json[0]["settings"]
    assert not any("throttled" in name for name in settings)
    rate = ottla("config", "get", "broker", "1", "leader.replication.throttled.rate", code=1)
    assert "has no setting" in rate.err
    assert "Nothing to move" in ottla("cluster", "balance").err


def test_an_interrupted_move_goes_on(cluster: ProcessCluster, ottla: Ottla) -> None:
    with Blocking(cluster.bootstrap) as client:
        client.admin.topics.create("slow", 1, 1, {"min.insync.replicas": "1"})
    ottla("cluster", "reassign", "slow:0=1", "--execute")
    with Blocking(cluster.bootstrap) as client:
        client.send_all("slow", [(None, bytes(50_000))] * 40)
    words = ["cluster", "reassign", "slow:0=2", "--execute", "--throttle", "1kB", "-b", cluster.bootstrap]
    with started(*words) as process:
        moves = until(
            lambda: ottla("cluster", "reassign", "--list", "--json").json,
            lambda found: found or process.poll() is not None,
        )
        assert [(each["topic"], each["adding"], each["removing"]) for each in moves] == [("slow", [2], [1])]
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 130 and "goes on by itself" in err and "Traceback" not in err
    assert "`ottla cluster reassign --unthrottle` takes it off" in err
    # The same command, in less of a hurry to be slow, goes on with it to the end.
    ottla("cluster", "reassign", "slow:0=2", "--execute", "--throttle", "1GB")
    topic = ottla("topic", "describe", "slow", "--json").json[0]
    assert topic["partitions"][0]["replicas"] == [2] and topic["partitions"][0]["leader"] == 2
    assert not any("throttled" in name for name in topic["settings"])


def test_drain_and_a_broker_for_another_machine(cluster: ProcessCluster, ottla: Ottla) -> None:
    ottla("cluster", "drain", "3", "--execute")
    until(lambda: spread(ottla)[2], lambda found: found == (0, 0))
    until(lambda: healthy(ottla))
    text = ottla("cluster", "add-broker", "--listen", "10.0.0.4:9092", "--rack", "c").out
    voters = ",".join(f"{each}@{cluster.controller_address(each)}" for each in cluster.ids)
    assert f"controller.quorum.voters={voters}" in text and "node.id=4\n" in text and "broker.rack=c\n" in text
    quorum = ottla("cluster", "quorum").lines
    assert len(quorum) == 4 and sum("leader" in line for line in quorum) == 1


def test_features_and_voters(ottla: Ottla) -> None:
    levels = {each["feature"]: each for each in ottla("cluster", "features", "--json").json}
    newest = levels["group.version"]["max"]
    assert "it would be possible" in ottla("cluster", "features", "group.version=0", "--downgrade", "--dry-run").err
    ottla("cluster", "features", "group.version=0", code=1)  # downgrades are asked for by name
    ottla("cluster", "features", "group.version=0", "--downgrade")
    ottla("cluster", "features", f"group.version={newest}")
    ottla("cluster", "features", "group.version=x", code=2)
    # A quorum whose voters are in the property files.
    assert "votes already" in ottla("cluster", "add-voter", "1", "--listen", "127.0.0.1:1", code=1).err
    assert "does not take part" in ottla("cluster", "remove-voter", "9", code=1).err
    assert ottla("cluster", "remove-voter", "1", code=1).err.startswith("error:")
