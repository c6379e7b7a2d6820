"""Three nodes without a plaintext port, under kill -9 and new certificates: nothing acknowledged is lost or doubled."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from bench.cluster.whole import create, until_in_sync
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)
from tests.server.security.secure_writers import PARTITIONS, Writers, by_partition, read
from tests.server.security.secured import CERTIFICATES, GUARDED, PLAIN, SCRAM, Certificates, SecureCluster, Way
from tests.support.certificates import Authority
from tests.support.requests.before_login import answered_before_login
from tests.support.requests.raw import Closed, RawConnection
from tests.support.waiting import WAIT_S, until

from ottla.server.api.api_table import SERVED, SERVED_TO_CONTROLLERS
from ottla.wire.frame import request_frame
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

TOPICS = ["records", "transactions"]
HELLO = ApiVersionsRequest(client_software_name="x", client_software_version="1")
TLS_ALERT = b"\x15"
Begin = Callable[[Way], SecureCluster]


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates.make(tmp_path / "certificates")


@pytest.fixture
def begin(tmp_path: Path, certificates: Certificates) -> Iterator[Begin]:
    """Start a cluster of three in which alice may use topics, and only nodes and admin may do everything."""
    started: list[SecureCluster] = []

    def start(way: Way) -> SecureCluster:
        cluster = SecureCluster(tmp_path, certificates, GUARDED, way)
        started.append(cluster)
        if way == SCRAM:
            cluster.add_users()
        cluster.start()
        create(cluster, TOPICS, PARTITIONS, len(cluster.ids))
        until_in_sync(cluster, TOPICS, PARTITIONS)
        alice = "User:alice" if way.brokers else "User:CN=alice"
        allow(AdminClient(cluster.librdkafka("admin")), alice)
        return cluster

    yield start
    for cluster in started:
        cluster.stop()
    for log in tmp_path.glob("node-*/ottla.err"):
        assert "Traceback" not in log.read_text(), log.read_text()[-6_000:]


def allow(admin: AdminClient, principal: str) -> None:
    names = [(ResourceType.TOPIC, name) for name in TOPICS]
    names += [(ResourceType.TRANSACTIONAL_ID, "t"), (ResourceType.GROUP, "readers")]
    acls = [
        AclBinding(kind, name, ResourcePatternType.LITERAL, principal, "*", AclOperation.ALL, AclPermissionType.ALLOW)
        for kind, name in names
    ]
    for outcome in admin.create_acls(acls).values():
        outcome.result(WAIT_S)


def refresh(cluster: SecureCluster) -> None:
    """Have the nodes look at their files at once, as they do when a setting changes."""
    admin = AdminClient(cluster.librdkafka("admin"))
    for id in cluster.ids:
        setting = ConfigEntry("listener.name.ssl.ssl.keystore.type", "PEM", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.BROKER, str(id), incremental_configs=[setting])
        for outcome in admin.incremental_alter_configs([resource]).values():
            outcome.result(WAIT_S)


def shown(cluster: SecureCluster, certificates: Certificates) -> dict[str, str]:
    """The serial number of the certificate that each port of each node shows."""
    found = {}
    for id in cluster.ids:
        for address in (cluster.address(id), cluster.controller_address(id)):
            with RawConnection(address, tls=certificates.context) as connection:
                found[address] = connection._socket.getpeercert()["serialNumber"]  # type: ignore[attr-defined]
    return found


def until_shown_anew(cluster: SecureCluster, certificates: Certificates, before: dict[str, str]) -> None:
    until(lambda: shown(cluster, certificates), lambda now: not set(now.values()) & set(before.values()))


def restart_by_force(cluster: SecureCluster, id: int, writers: Writers) -> None:
    cluster.kill(id)
    writers.go_on()
    cluster.start_node(id)
    until_in_sync(cluster, TOPICS, PARTITIONS)


def check(cluster: SecureCluster, writers: Writers) -> None:
    """Every record that was acknowledged or committed is there, once, in order; of those that were aborted, none."""
    writers.stop()
    assert not writers.problems
    settings = cluster.librdkafka("alice")
    for topic, numbers in (("records", writers.acknowledged), ("transactions", writers.committed)):
        assert read(settings, topic, len(numbers)) == by_partition(numbers)


def test_plain_over_tls_with_new_certificates(begin: Begin, certificates: Certificates) -> None:
    cluster, tls = begin(PLAIN), certificates.context
    with Writers(cluster.librdkafka("alice")) as writers:
        writers.go_on()
        before = shown(cluster, certificates)
        for id in cluster.ids:
            cluster.renew(id)
        restart_by_force(cluster, cluster.leader_of("records"), writers)
        restart_by_force(cluster, cluster.controller(), writers)
        until_shown_anew(cluster, certificates, before)
        writers.go_on()
        check(cluster, writers)
    assert nobody_is_served_in_plain_text(cluster) == 2 * len(cluster.ids)
    for served, address in ((SERVED, cluster.address(1)), (SERVED_TO_CONTROLLERS, cluster.controller_address(1))):
        for begun in (None, SaslHandshakeRequest(mechanism="PLAIN")):
            assert answered_before_login(partial(RawConnection, address, tls=tls), served, begun) == []


def test_certificates_alone_with_a_new_authority(begin: Begin, certificates: Certificates) -> None:
    """As it is done in practice: trust both authorities, then show certificates of the new one, then trust only it."""
    cluster = begin(CERTIFICATES)
    old = cluster.librdkafka("alice")
    newer = Certificates(certificates.directory, Authority("a newer CA"))
    kept = {
        name: certificates.directory / f"old-{path.rpartition('/')[2]}" for name, path in old.items() if "/" in path
    }
    for name, path in kept.items():  # a client that is not told goes on with its files
        shutil.copy(old[name], path)
    with Writers(old | {name: str(path) for name, path in kept.items()}) as writers:
        writers.go_on()
        before = shown(cluster, certificates)
        certificates.trusted.write_text(certificates.authority.pem + newer.authority.pem)
        kept["ssl.ca.location"].write_text(certificates.trusted.read_text())
        refresh(cluster)
        restart_by_force(cluster, cluster.controller(), writers)
        for id in cluster.ids:
            newer.node(f"node-{id}")
        refresh(cluster)
        until_shown_anew(cluster, certificates, before)
        writers.go_on()
    certificates.trusted.write_text(newer.authority.pem)
    cluster.certificates = newer
    refresh(cluster)
    until(lambda: is_refused(cluster, certificates))
    for id in cluster.ids:
        cluster.stop_node(id)
        cluster.start_node(id)
        until_in_sync(cluster, TOPICS, PARTITIONS)
    check(cluster, writers)
    assert nobody_is_served_in_plain_text(cluster) == 2 * len(cluster.ids)


def is_refused(cluster: SecureCluster, certificates: Certificates) -> bool:
    """Whether no node accepts a certificate of the authority any more."""
    for id in cluster.ids:
        try:
            with RawConnection(cluster.address(id), tls=certificates.context) as connection:
                connection.call(HELLO, 3)
        except (Closed, OSError):
            continue
        return False
    return True


def test_scram_between_brokers_with_new_certificates(begin: Begin, certificates: Certificates) -> None:
    cluster = begin(SCRAM)
    with Writers(cluster.librdkafka("alice")) as writers:
        writers.go_on()
        before = shown(cluster, certificates)
        for id in cluster.ids:
            cluster.renew(id)
        restart_by_force(cluster, cluster.leader_of("transactions"), writers)
        until_shown_anew(cluster, certificates, before)
        writers.go_on()
        check(cluster, writers)
    assert nobody_is_served_in_plain_text(cluster) == 2 * len(cluster.ids)
    for id in cluster.ids:  # TLS alone does not let anybody in
        with RawConnection(cluster.address(id), tls=certificates.context) as connection, pytest.raises(Closed):
            connection.call(MetadataRequest(topics=[]), 12)


def nobody_is_served_in_plain_text(cluster: SecureCluster) -> int:
    """Send ApiVersions to every port on which a process of the cluster listens, and return how many there are."""
    ports = [port for pid in cluster.pids for port in listening(pid)]
    for port in ports:
        with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as connection:
            connection.sendall(request_frame(HELLO, 3, 1, "plain"))
            answer = b""
            with suppress(ConnectionResetError):
                while part := connection.recv(65_536):
                    answer += part
        assert answer[:1] in (b"", TLS_ALERT) and len(answer) < 8, answer
    return len(ports)


def listening(pid: int) -> list[int]:
    """The TCP ports on which a process listens."""
    own = {str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir() if each.is_symlink()}
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == "0A" and f"socket:[{inode}]" in own:
                found.append(int(local.rpartition(":")[2], 16))
    return found
