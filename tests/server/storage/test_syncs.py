"""No fsync on the loop of a node that serves: everything here makes files last, and none of it on the loop's thread."""

import errno
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.server.talk import eventually
from tests.support.ports import free_ports
from tests.support.requests.raw import RawConnection
from tests.support.syncs import SyncsOnLoops

from ottla.client.admin.topics import NewTopic
from ottla.client.blocking.blocking import Blocking
from ottla.log.files import checkpoint
from ottla.log.files.disk import StorageError
from ottla.replica.partition import Partition
from ottla.server.storage.opening import Opening
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.topics.alter_replica_log_dirs import AlterReplicaLogDirsRequest

HASTY = {
    "log.cleaner.backoff.ms": 50,
    "log.retention.check.interval.ms": 100,
    "log.flush.offset.checkpoint.interval.ms": 100,
    "replica.high.watermark.checkpoint.interval.ms": 100,
    "log.segment.delete.delay.ms": 0,
    "metadata.log.max.snapshot.interval.ms": 300,
    "offsets.topic.num.partitions": 1,
    "controller.quorum.election.timeout.ms": 300,
    "controller.quorum.fetch.timeout.ms": 1000,
}


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> SyncsOnLoops:
    return SyncsOnLoops(monkeypatch)


def live_through(bootstrap: str, replicas: int, sync_count: Callable[[], int]) -> None:
    """Topics come, are written to in every way, compacted, cut short, configured, and go."""
    with Blocking(bootstrap) as client:
        topics = client.admin.topics
        plain = {"internal.segment.bytes": "5000", "flush.messages": "10"}
        compacted = plain | {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
        topics.create_each(
            [
                NewTopic("plain", 2, replicas, configs=plain),
                NewTopic("durable", 1, replicas, configs={"ottla.fsync.before.ack": "true"}),
                NewTopic("compacted", 1, replicas, configs=compacted),
            ]
        )
        for number in range(60):
            for name in ("plain", "durable", "compacted"):
                client.send(name, b"%d " % number * 100, key=b"k%d" % (number % 3))
        client.flush()
        topics.delete_records("plain", {0: -1})
        before = sync_count()
        eventually(lambda: sync_count() > before + 10, "checkpoints, cleaning and snapshots go on")
        topics.delete("plain")


def test_a_node_alone(ottla_broker_factory: Callable[..., EmbeddedBroker], syncs: SyncsOnLoops) -> None:
    broker = ottla_broker_factory(**HASTY)
    live_through(broker.bootstrap, 1, lambda: syncs.elsewhere)
    eventually(lambda: "compacted 0 " in (broker.data_dir / "cleaner-offset-checkpoint").read_text(), "it is compacted")
    broker.stop()
    assert not syncs.found and syncs.elsewhere > 20


def test_a_topic_that_is_made_anew_under_its_name(
    ottla_broker_factory: Callable[..., EmbeddedBroker], syncs: SyncsOnLoops
) -> None:
    """What checkpoints on disk say of the old one must not be believed of the new one."""
    broker = ottla_broker_factory(**HASTY | {"log.flush.offset.checkpoint.interval.ms": 60_000})
    with Blocking(broker.bootstrap) as client:
        for _ in range(3):
            client.admin.topics.create("t", 1, 1)
            client.send("t", b"x")
            client.flush()
            client.admin.topics.delete_records("t", {0: 1})
            client.admin.topics.delete("t")
    broker.stop()
    assert not syncs.found, syncs.found[0]


def test_a_log_that_could_not_be_recovered_at_the_start(
    ottla_broker_factory: Callable[..., EmbeddedBroker], syncs: SyncsOnLoops, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = ottla_broker_factory(**HASTY)
    with Blocking(broker.bootstrap) as client:
        client.admin.topics.create("t", 1, 1, configs={"ottla.fsync.before.ack": "true"})
        client.send("t", b"x")
        client.flush()
    broker.stop()
    for name in (checkpoint.CLEAN_SHUTDOWN, checkpoint.RECOVERY_POINTS):  # as a crash leaves it
        (broker.data_dir / name).unlink()

    def failing(opening: Opening) -> Partition:
        raise StorageError(errno.EIO, f"{opening.name} cannot be read")

    with monkeypatch.context() as broken:
        broken.setattr(Opening, "open", failing)
        broker.start()
    with Blocking(broker.bootstrap) as client:
        client.send("t", b"y")
        client.flush()
    assert broker.node is not None and broker.node.partitions.find("t", 0).high_watermark == 2
    broker.stop()
    assert not syncs.found, syncs.found[0]


@pytest.mark.parametrize("durable", ["false", "true"])
def test_a_replica_that_moves_to_another_directory(
    tmp_path: Path, ottla_broker_factory: Callable[..., EmbeddedBroker], syncs: SyncsOnLoops, durable: str
) -> None:
    homes = [str(tmp_path / name) for name in ("one", "two")]
    broker = ottla_broker_factory(**HASTY | {"log.dirs": ",".join(homes)})
    with Blocking(broker.bootstrap) as client:
        client.admin.topics.create("t", 1, 1, configs={"ottla.fsync.before.ack": durable})
        client.send("t", b"x")
        client.flush()
        there = next(home for home in homes if not Path(home, "t-0").exists())
        with RawConnection(broker.bootstrap) as connection:
            directory = AlterReplicaLogDirsRequest.AlterReplicaLogDir
            topic = directory.AlterReplicaLogDirTopic(name="t", partitions=[0])
            connection.call(AlterReplicaLogDirsRequest(dirs=[directory(path=there, topics=[topic])]), 2)
        sent = 1
        while not Path(there, "t-0").exists():
            client.send("t", b"x")
            client.flush()
            sent += 1
        client.send("t", b"x")
        client.flush()
    assert broker.node is not None and broker.node.partitions.find("t", 0).high_watermark == sent + 1
    broker.stop()
    assert not syncs.found, syncs.found[0]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[list[EmbeddedBroker]]:
    """Three nodes, each on a loop of its own, in this process."""
    ports = free_ports(6)
    voters = ",".join(f"{id}@127.0.0.1:{ports[id - 1]}" for id in (1, 2, 3))
    brokers = []
    for id in (1, 2, 3):
        settings = {
            **HASTY,
            "node.id": id,
            "process.roles": "broker,controller",
            "listeners": f"PLAINTEXT://127.0.0.1:{ports[id + 2]},CONTROLLER://127.0.0.1:{ports[id - 1]}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": voters,
        }
        brokers.append(EmbeddedBroker(tmp_path / str(id), settings))
    together(broker.start for broker in brokers)
    yield brokers
    together(broker.stop for broker in brokers)


def together(calls: Iterator[Callable[[], object]]) -> None:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)


def test_three_nodes(cluster: list[EmbeddedBroker], syncs: SyncsOnLoops) -> None:
    """The watch begins when they run; then one after the other is lost and comes back, so that there are elections."""
    bootstrap = ",".join(broker.bootstrap for broker in cluster)
    live_through(bootstrap, 3, lambda: syncs.elsewhere)
    for broker in cluster:
        before = max(each.node.member.quorum.epoch for each in cluster if each.node is not None)
        leads = broker.node is not None and broker.node.member.quorum.is_leader
        broker.stop()
        others = [each for each in cluster if each is not broker]
        if leads:
            eventually(lambda: all(each.node.member.quorum.epoch > before for each in others), "another leads")  # type: ignore[union-attr]  # noqa: B023
        broker.start()
    assert not syncs.found, syncs.found[0]


def test_a_node_that_begins_with_a_snapshot(tmp_path: Path, syncs: SyncsOnLoops) -> None:
    """It comes so late that nobody has the beginning of the metadata any more."""
    ports = free_ports(3)
    known = {"controller.listener.names": "CONTROLLER", "controller.quorum.voters": f"1@127.0.0.1:{ports[0]}"}
    first = {
        **HASTY,
        **known,
        "node.id": 1,
        "process.roles": "broker,controller",
        "metadata.log.max.record.bytes.between.snapshots": 500,
        "listeners": f"PLAINTEXT://127.0.0.1:{ports[1]},CONTROLLER://127.0.0.1:{ports[0]}",
    }
    late = {"node.id": 2, "process.roles": "broker", "listeners": f"PLAINTEXT://127.0.0.1:{ports[2]}"}

    def journal(id: int, kind: str) -> list[str]:
        return sorted(path.name for path in (tmp_path / str(id)).glob(f"**/__cluster_metadata-0/*.{kind}"))

    with EmbeddedBroker(tmp_path / "1", first) as broker, Blocking(broker.bootstrap) as client:
        for number in range(200):
            client.admin.topics.create(f"t{number}", 1, 1)
            if journal(1, "log") and journal(1, "log")[0] > f"{0:020d}.log":
                break
        with EmbeddedBroker(tmp_path / "2", {**HASTY, **known, **late}):
            assert journal(2, "checkpoint") and journal(2, "log")[0] > f"{0:020d}.log", "it got a snapshot"
    assert not syncs.found, syncs.found[0]
