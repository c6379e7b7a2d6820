"""Real faults of a cluster of three nodes make the alerts of deploy/monitoring fire, and clear when they are over.

Meanwhile a writer writes, a group reads, and every query of dashboards is asked: none may be refused, all are answered.

A minute of the rules passes in a second here.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from scripts.monitoring.alerts import alerts
from tests.cli.conftest import invoke
from tests.compat.metrics.load import TOPIC, Load, Panels
from tests.compat.metrics.public_queries import OF_CLUSTERS, QUERIES
from tests.compat.metrics.test_dashboard import chosen, queries
from tests.compat.metrics.watching import PACE, MeteredCluster, Watched, watched
from tests.server.security.secured import plain_jaas
from tests.server.talk import produce
from tests.support import tools
from tests.support.ports import free_ports
from tests.support.requests.raw import Closed, RawConnection
from tests.support.waiting import WAIT_S, until

from ottla import Blocking, ProducerOptions
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest

ELSEWHERE = {
    "OttlaDiskFills",  # test_disk_alert.py
    "OttlaMetadataBehind",  # test_isolation_alert.py
    "OttlaTwoActiveControllers",  # test_load_alerts.py
    "OttlaEventLoopSaturated",
}
# Panels of what this cluster does not have.
ABSENT = ("Share groups", "Throttled", "Errors of the registry", "Requests of the registry", "Subjects")
COORDINATED = ("__consumer_offsets", "__transaction_state")
PAUSED, COMPANION, BROKEN = 1, 2, 3  # ids of the nodes
DESCRIPTORS = 600  # of the node that will have too few
PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "ottla.open.files.max": "64",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,LOGIN:SASL_PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.login.plain.sasl.jaas.config": plain_jaas(),
    "connection.failed.authentication.delay.ms": "1",
}


class FragileCluster(MeteredCluster):
    """Each node has a listener for logins and two data directories; one has few descriptors."""

    def __init__(self, directory: Path) -> None:
        self.logins = [f"127.0.0.1:{port}" for port in free_ports(3)]
        super().__init__(directory, properties=PROPERTIES)
        limited = ["sh", "-c", f'ulimit -n {DESCRIPTORS} && exec "$@"', "sh"]
        self.nodes[BROKEN].prefix = limited

    def settings_of(self, id: int, directory: Path) -> dict[str, str]:
        settings = super().settings_of(id, directory)
        login = f",LOGIN://{self.logins[id - 1]}"
        return settings | {
            "listeners": settings["listeners"] + login,
            "advertised.listeners": settings["advertised.listeners"] + login,
            "log.dirs": f"{settings['log.dirs']},{self.second_directory(id)}",
        }

    def second_directory(self, id: int) -> Path:
        return self.directory / f"second-{id}"


@pytest.mark.slow
def test_faults_make_alerts_fire_and_clear(tmp_path: Path) -> None:
    tools.require(tools.missing_prometheus())
    cluster = FragileCluster(tmp_path / "cluster")
    drawn = {f"{panel}: {legend}": chosen(expression) for panel, expression, legend in queries()}
    asked = {title: query for title, query in drawn.items() if not title.startswith(ABSENT)} | QUERIES | OF_CLUSTERS
    with watched(tmp_path, cluster) as watching:
        for internal in COORDINATED:  # by a node that is not paused: what it tells must not be missing now and then
            placed = [[COMPANION, BROKEN, PAUSED]]
            watching.create(internal, {"cleanup.policy": "compact"}, num_partitions=1, replica_assignment=placed)
        watching.create(TOPIC, {"flush.messages": "1"}, num_partitions=3, replication_factor=3)
        with Load(cluster.bootstrap) as load, Panels(watching.prometheus, asked) as panels:
            go_through_faults(watching, cluster)
            load.all_read()
            assert not panels.refused
            until(lambda: panels.unanswered, lambda left: not left)
            assert panels.rounds > 1
    assert len(load.acknowledged) > 100


def go_through_faults(watched: Watched, cluster: FragileCluster) -> None:
    lose_a_directory(watched, cluster)
    with (
        transaction_left_open(cluster),
        group_that_stopped(cluster),
        descriptors_used_up(cluster),
        node_paused_again_and_again(cluster),
    ):
        of_clients = {
            "OttlaTransactionOpen",
            "OttlaGroupLagGrows",
            "OttlaFileDescriptors",
            "OttlaEventLoopSlow",
            "OttlaAuthenticationFailures",
        }
        watched.until_fire(of_clients | {"OttlaDirectoryOffline"}, lambda: log_in_badly(cluster))
    watched.until_clear(of_clients)

    watched.create("single", num_partitions=1, replica_assignment=[[BROKEN]])
    watched.create("risky", {"min.insync.replicas": "1"}, num_partitions=1, replica_assignment=[[COMPANION, BROKEN]])
    watched.create("strict", {"min.insync.replicas": "3"}, num_partitions=1, replication_factor=3)
    cluster.kill(BROKEN)
    of_one_node = {
        "OttlaNodeDown",
        "OttlaBrokerFenced",
        "OttlaPartitionsOffline",
        "OttlaUnderMinIsr",
        "OttlaUnderReplicated",
        "OttlaRequestErrors",
    }
    watched.until_fire(of_one_node, lambda: write_to_too_few(cluster))

    cluster.kill(COMPANION)
    watched.until_fire({"OttlaNoActiveController"})

    repair_the_directory(cluster)
    cluster.start_node(BROKEN)
    elect_what_is_not_in_sync(cluster)
    watched.until_fire({"OttlaUncleanElection"})
    cluster.start_node(COMPANION)
    watched.until_clear({alert.name for alert in alerts(PACE)})
    assert watched.fired >= {alert.name for alert in alerts(PACE)} - ELSEWHERE


def lose_a_directory(watched: Watched, cluster: FragileCluster) -> None:
    path = cluster.second_directory(BROKEN)
    shutil.rmtree(path)
    path.write_bytes(b"not a directory any more")
    watched.create("placed", num_partitions=6, replication_factor=3)


def elect_what_is_not_in_sync(cluster: FragileCluster) -> None:
    """As soon as the node that is back is not fenced any more."""
    words = ["cluster", "elect", "--unclean", "risky:0", "-b", cluster.address(BROKEN)]
    until(lambda: invoke(*words).code == 0 and cluster.leader_of("risky") == BROKEN)


def repair_the_directory(cluster: FragileCluster) -> None:
    cluster.second_directory(BROKEN).unlink()


@contextmanager
def transaction_left_open(cluster: FragileCluster) -> Iterator[None]:
    with Blocking(cluster.bootstrap, ProducerOptions(transactional_id="tx")) as client, client.transaction():
        client.send("in-a-transaction", b"x")
        yield


@contextmanager
def group_that_stopped(cluster: FragileCluster) -> Iterator[None]:
    """At the end it has read everything."""
    with Blocking(cluster.bootstrap) as client:
        client.send("unread", b"x", partition=0)
        client.flush()
        client.admin.groups.set_offsets("stopped", {TopicPartition("unread", 0): 0})
        yield
        client.admin.groups.set_offsets("stopped", {TopicPartition("unread", 0): 1})


@contextmanager
def descriptors_used_up(cluster: FragileCluster) -> Iterator[None]:
    with ExitStack() as stack:
        for _ in range(DESCRIPTORS):
            stack.enter_context(socket.create_connection(("127.0.0.1", cluster.ports[BROKEN])))
        yield


@contextmanager
def node_paused_again_and_again(cluster: FragileCluster) -> Iterator[None]:
    """It has its pauses in short turns, so that its scrapes do not time out and its session lives."""
    enough = Event()

    def pause() -> None:
        while not enough.wait(0.25):
            cluster.pause(PAUSED)
            enough.wait(0.5)
            cluster.resume(PAUSED)

    pausing = Thread(target=pause)
    pausing.start()
    try:
        yield
    finally:
        enough.set()
        pausing.join()


def log_in_badly(cluster: FragileCluster) -> None:
    with RawConnection(cluster.logins[COMPANION - 1]) as connection:
        connection.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        connection.call(SaslAuthenticateRequest(auth_bytes=b"\0alice\0guessed"), 2)


def write_to_too_few(cluster: FragileCluster) -> None:
    """While the leadership moves it may fail in other ways."""
    leader = cluster.leader_of("strict")
    if leader not in cluster.running:
        return
    try:
        with cluster.connect(leader, WAIT_S) as connection:
            error, _ = produce(connection, "strict", [b"x"], timeout_ms=1_000)
    except (OSError, Closed):
        return
    assert error != ErrorCode.NONE
