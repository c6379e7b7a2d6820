"""One cluster of Ottla's nodes and Kafka's in which everything is encrypted and authenticated: by PLAIN, by SCRAM
between the brokers, and by certificates.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench.cluster.whole import create, until_in_sync
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from tests.compat.test_mixed_cluster import MIXES, PROPERTIES, QUORUM, members
from tests.server.security.secure_writers import PARTITIONS, Writers, by_partition, read
from tests.server.security.secured import (
    CERTIFICATES,
    GUARDED,
    PASSWORDS,
    PLAIN,
    SCRAM,
    Certificates,
    Way,
    log_in,
    secured,
)
from tests.support.processes.clusters import MixedCluster, ProcessCluster, running
from tests.support.processes.kafka import CLUSTER_ID
from tests.support.requests.raw import RawConnection
from tests.support.waiting import WAIT_S, until

from ottla.model.errors import ErrorCode
from ottla.security.acls import AclOperation, AclPermission, AclResourceType
from ottla.wire.messages.security.create_acls import CreateAclsRequest
from ottla.wire.messages.topics.alter_configs import AlterConfigsRequest
from ottla.wire.messages.topics.incremental_alter_configs import IncrementalAlterConfigsRequest

TOPICS = ["records", "transactions"]


# The nodes, and how they prove to each other who they are. In a quorum of both kinds each also votes for the other.
CLUSTERS = {f"PLAIN, {mix}": (words, PLAIN) for mix, words in MIXES.items()} | {
    "SCRAM, kafka broker under our controller": (MIXES["kafka broker under our controller"], SCRAM),
    "certificates, a quorum of both": (QUORUM, CERTIFICATES),
}


class SecureMixedCluster(MixedCluster):
    def __init__(self, directory: Path, words: tuple[str, ...], way: Way = PLAIN) -> None:
        self.certificates = Certificates.make(directory / "certificates")
        self._way = way
        twice = {"transaction.state.log.replication.factor": "2", "transaction.state.log.min.isr": "1"}
        super().__init__(directory, members(words), properties=PROPERTIES | GUARDED | twice)

    def settings_of(self, id: int, directory: Path) -> dict[str, str]:
        settings = secured(super().settings_of(id, directory), self._way, self.certificates, f"node-{id}")
        if id not in self.brokers:  # Kafka's controllers refuse a listener of brokers that they do not have
            settings.pop("security.inter.broker.protocol")
        return settings

    def start(self, timeout_s: float = 2 * WAIT_S) -> ProcessCluster:
        if self._way == SCRAM:
            self._add_users()
        return super().start(timeout_s)

    def _add_users(self) -> None:
        """Format the controller, which is ours, with the users."""
        users = self.directory / "users"
        users.write_text("".join(f"SCRAM-SHA-512=[name={name},password={word}]\n" for name, word in PASSWORDS.items()))
        path = self.data_directory(1).with_name("server.properties")
        words = ["format", str(path), "-t", CLUSTER_ID, "--add-scram", f"@{users}"]
        subprocess.run([sys.executable, "-m", "ottla", *words], check=True, capture_output=True)

    @property
    def ours(self) -> list[int]:
        """The brokers that are Ottla's."""
        return [id for id in self.brokers if self._members[id].kind == "ottla"]

    def renew(self, id: int) -> None:
        """Write another certificate to the file of a broker, and have it look at the file, as Kafka wants it."""
        store = self.certificates.node(f"node-{id}")["ssl.keystore.location"]
        name = f"listener.name.{self._way.protocol.lower()}.ssl.keystore.location"
        setting = ConfigEntry(name, store, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.BROKER, str(id), incremental_configs=[setting])
        admin = AdminClient(self.librdkafka())
        for outcome in admin.incremental_alter_configs([resource]).values():
            outcome.result(WAIT_S)

    def shown(self) -> set[str]:
        """The serial numbers of the certificates that brokers show."""
        found = set()
        for id in self.brokers:
            with RawConnection(self.address(id), tls=self.certificates.context) as connection:
                found.add(connection._socket.getpeercert()["serialNumber"])  # type: ignore[attr-defined]
        return found

    def connect(self, id: int, timeout_s: float) -> RawConnection:
        connection = RawConnection(self.address(id), timeout_s=timeout_s, tls=self.certificates.context)
        return log_in(connection) if self._way.brokers else connection

    def librdkafka(self) -> dict[str, str]:
        settings = {"bootstrap.servers": self.bootstrap, "security.protocol": self._way.protocol, "log_level": "0"}
        if not self._way.brokers:
            return settings | self.certificates.librdkafka("admin")
        mechanism = self._way.brokers
        credentials = {"sasl.mechanisms": mechanism, "sasl.username": "admin", "sasl.password": PASSWORDS["admin"]}
        return settings | credentials | self.certificates.librdkafka()


@pytest.mark.slow
@pytest.mark.parametrize("name", CLUSTERS)
def test_brokers_of_both_kinds_replicate(name: str, java_tools: None, tmp_path: Path) -> None:
    words, way = CLUSTERS[name]
    cluster = SecureMixedCluster(tmp_path, words, way)
    with running(cluster):
        create(cluster, TOPICS, PARTITIONS, len(cluster.brokers))
        until_in_sync(cluster, TOPICS, PARTITIONS)
        with Writers(cluster.librdkafka()) as writers:
            writers.go_on()
            # Without one of ours a quorum of both needs the voters of both kinds. A JVM takes long to come back.
            for victim in cluster.brokers if way == PLAIN else cluster.ours[-1:]:
                cluster.kill(victim)
                writers.go_on()
                cluster.start_node(victim)
                until_in_sync(cluster, TOPICS, PARTITIONS)
        check(cluster, writers)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["PLAIN, our broker under kafka's controller", "certificates, a quorum of both"])
def test_new_certificates_and_a_kill(name: str, java_tools: None, tmp_path: Path) -> None:
    """Brokers of both kinds take new certificates without a restart; then one of ours is killed: nothing is lost."""
    cluster = SecureMixedCluster(tmp_path, *CLUSTERS[name])
    with running(cluster):
        create(cluster, TOPICS, PARTITIONS, len(cluster.brokers))
        until_in_sync(cluster, TOPICS, PARTITIONS)
        with Writers(cluster.librdkafka()) as writers:
            writers.go_on()
            before = cluster.shown()
            for id in cluster.brokers:
                cluster.renew(id)
            until(cluster.shown, lambda now: not now & before)
            writers.go_on()
            victim = cluster.ours[-1]
            cluster.kill(victim)
            writers.go_on()
            cluster.start_node(victim)
            until_in_sync(cluster, TOPICS, PARTITIONS)
            writers.go_on()
        check(cluster, writers)


def check(cluster: SecureMixedCluster, writers: Writers) -> None:
    assert not writers.problems
    for topic, numbers in (("records", writers.acknowledged), ("transactions", writers.committed)):
        assert read(cluster.librdkafka(), topic, len(numbers)) == by_partition(numbers)


@pytest.mark.slow
@pytest.mark.parametrize("mix", MIXES)
def test_changes_of_settings_reach_the_controller_as_their_client(mix: str, java_tools: None, tmp_path: Path) -> None:
    """Brokers send them in an Envelope; the controller checks the client's rights, not the broker's."""
    cluster = SecureMixedCluster(tmp_path, MIXES[mix])
    with running(cluster):
        create(cluster, TOPICS, PARTITIONS, len(cluster.brokers))
        until_in_sync(cluster, TOPICS, PARTITIONS)
        for id in cluster.brokers:
            assert altered(cluster, id, "alice") == [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 2
            assert altered(cluster, id, "admin") == [ErrorCode.NONE] * 2
        with cluster.connect(cluster.brokers[0], 30) as admin:
            admin.call(CreateAclsRequest(creations=[ALICE_ALTERS]), 3)
        for id in cluster.brokers:  # each learns of the ACL by itself
            until(lambda id=id: altered(cluster, id, "alice"), lambda codes: codes == [ErrorCode.NONE] * 2)


ALICE_ALTERS = CreateAclsRequest.AclCreation(
    resource_type=AclResourceType.TOPIC,
    resource_name=TOPICS[0],
    principal="User:alice",
    host="*",
    operation=AclOperation.ALTER_CONFIGS,
    permission_type=AclPermission.ALLOW,
)


def altered(cluster: SecureMixedCluster, id: int, user: str) -> list[int]:
    """The errors of both ways to change the settings of a topic."""
    one, all_of = IncrementalAlterConfigsRequest.AlterConfigsResource, AlterConfigsRequest.Resource
    change = one.AlterableConfig(name="retention.ms", config_operation=0, value="60000")
    whole = all_of.AlterableConfig(name="retention.ms", value="70000")
    tls = cluster.certificates.context
    with log_in(RawConnection(cluster.address(id), timeout_s=30, tls=tls), user) as client:
        first: Any = client.call(
            IncrementalAlterConfigsRequest(
                resources=[one(resource_type=2, resource_name=TOPICS[0], configs=[change])], validate_only=False
            ),
            1,
        )
        second: Any = client.call(
            AlterConfigsRequest(
                resources=[all_of(resource_type=2, resource_name=TOPICS[0], configs=[whole])], validate_only=False
            ),
            2,
        )
    return [answer.responses[0].error_code for answer in (first, second)]
