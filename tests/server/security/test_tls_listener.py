"""A listener with TLS: real clients, certificates of both sides, hostile and slow peers, new certificates."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from tests.server.security.secured import Certificates
from tests.server.talk import FETCH_VERSION, create, fetch_request, produce
from tests.support.certificates import Authority
from tests.support.requests.raw import Closed, RawConnection
from tests.support.waiting import WAIT_S, until

from ottla import Consumer, ConsumerOptions, Producer
from ottla.client.blocking.blocking import Blocking
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.resources import Resource
from ottla.security.address_holder import holder_of
from ottla.server import composed_node
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.frame import request_frame
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest

Start = Callable[..., EmbeddedBroker]
HELLO = ApiVersionsRequest(client_software_name="x", client_software_version="1")
VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates.make(tmp_path / "certificates")


@pytest.fixture
def start(tmp_path: Path, certificates: Certificates) -> Iterator[Start]:
    """Start a node whose only listener has TLS."""
    started: list[EmbeddedBroker] = []

    def begin(**settings: str) -> EmbeddedBroker:
        own = {"listeners": "SSL://127.0.0.1:0", "security.inter.broker.protocol": "SSL"}
        chosen = own | certificates.node() | {name.replace("_", "."): value for name, value in settings.items()}
        started.append(EmbeddedBroker(tmp_path / "data", chosen).start())
        return started[-1]

    yield begin
    for broker in started:
        broker.stop()


def context(certificates: Certificates, name: str | None = None) -> ssl.SSLContext:
    """A client's context that trusts the test's authority and, with `name`, shows a certificate."""
    made = ssl.create_default_context(cafile=str(certificates.trusted))
    if name is not None:
        made.load_cert_chain(certificates.authority.client(name).write(certificates.directory, name))
    return made


def principals(broker: EmbeddedBroker) -> set[str]:
    assert broker.node is not None
    return {str(each.context.principal) for each in broker.node.connections.connections}


def handshakes(broker: EmbeddedBroker) -> Any:
    assert broker.node is not None and broker.node.composed is not None
    (listener,) = broker.node.composed._listeners.values()
    return listener._handshakes


@pytest.mark.parametrize("version", VERSIONS)
def test_librdkafka_writes_and_reads(start: Start, certificates: Certificates, version: str) -> None:
    broker = start(ssl_enabled_protocols=version)
    settings = {"bootstrap.servers": broker.bootstrap, "security.protocol": "SSL", **certificates.librdkafka()}
    values = [os.urandom(1_000 + 7 * number % 5_000) for number in range(3_000)]
    producer = confluent_kafka.Producer(settings)
    for value in values:
        producer.produce("t", value)
    assert producer.flush(WAIT_S) == 0
    reading = {"group.id": "g", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer(settings | reading)
    consumer.subscribe(["t"])
    got: list[bytes] = []
    until(
        lambda: got.extend(each.value() for each in consumer.consume(1_000, 1)) or len(got), lambda n: n >= len(values)
    )
    consumer.close()
    assert got == values
    with RawConnection(broker.bootstrap, tls=context(certificates)) as connection:
        assert connection._socket.version() == version  # type: ignore[attr-defined]


def test_our_client_writes_and_reads(start: Start, certificates: Certificates) -> None:
    broker = start()
    security = {"security.protocol": "SSL", **certificates.ours()}
    values = [os.urandom(100_000) for _ in range(50)]
    assert asyncio.run(through_our_client(broker.bootstrap, security, values)) == values


async def through_our_client(bootstrap: str, security: dict[str, str], values: list[bytes]) -> list[bytes | None]:
    """Write values and return what is read back."""
    async with Producer(bootstrap, security=security) as producer:
        for value in values:
            await producer.send("t", value)
    options = ConsumerOptions(group_id="g", auto_offset_reset="earliest")
    async with Consumer(bootstrap, options, security=security) as consumer:
        consumer.subscribe(["t"])
        got: list[bytes | None] = []
        async for record in consumer:
            got.append(record.value)
            if len(got) == len(values):
                break
    return got


def test_clients_prove_who_they_are_by_certificate(start: Start, certificates: Certificates) -> None:
    broker = start(ssl_client_auth="required", ssl_principal_mapping_rules="RULE:^CN=([^,]*).*$/$1/L,DEFAULT")
    with RawConnection(broker.bootstrap, tls=context(certificates, "Alice")) as connection:
        assert connection.call(HELLO, 3).error_code == 0
        assert principals(broker) == {"User:alice"}
        with pytest.raises((Closed, ssl.SSLError)), RawConnection(broker.bootstrap, tls=context(certificates)) as other:
            other.call(HELLO, 3)
    stranger = context(certificates)
    stranger.load_cert_chain(Authority("another").client("Alice").write(certificates.directory, "stranger"))
    expired = context(certificates)
    expired.load_cert_chain(certificates.authority.client("Alice", expired=True).write(certificates.directory, "old"))
    for refused in (stranger, expired):
        with pytest.raises((Closed, ssl.SSLError)), RawConnection(broker.bootstrap, tls=refused) as other:
            other.call(HELLO, 3)


def test_a_certificate_may_be_optional(start: Start, certificates: Certificates) -> None:
    broker = start(ssl_client_auth="requested")
    with RawConnection(broker.bootstrap, tls=context(certificates)) as connection:
        assert connection.call(HELLO, 3).error_code == 0
        assert principals(broker) == {"User:ANONYMOUS"}
        with RawConnection(broker.bootstrap, tls=context(certificates, "bob")) as other:
            assert other.call(HELLO, 3).error_code == 0
            assert principals(broker) == {"User:ANONYMOUS", "User:CN=bob"}


def test_old_versions_are_refused(start: Start, certificates: Certificates) -> None:
    broker = start(ssl_enabled_protocols="TLSv1.3")
    old = context(certificates)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((Closed, ssl.SSLError, ConnectionError)):
        RawConnection(broker.bootstrap, tls=old)


def test_plain_text_and_nonsense_end_at_the_handshake(start: Start, certificates: Certificates) -> None:
    broker = start()
    for nonsense in (b"GET / HTTP/1.1\r\n\r\n", bytes(100), os.urandom(5_000), b"\x16\x03\x01\xff\xff" + bytes(70_000)):
        with RawConnection(broker.bootstrap) as connection:
            try:
                connection.send(nonsense)
                while True:
                    connection.receive()
            except (Closed, ConnectionError, MemoryError):
                pass
    until(lambda: len(handshakes(broker)), lambda count: count == 0)
    with RawConnection(broker.bootstrap, tls=context(certificates)) as connection:
        assert connection.call(HELLO, 3).error_code == 0


def test_a_handshake_that_does_not_end_is_given_up(
    start: Start, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TLS_HANDSHAKE_S", 0.5)
    broker = start()
    with RawConnection(broker.bootstrap) as connection:
        connection.send(b"\x16\x03\x01")
        with pytest.raises(Closed):
            connection.receive()
    until(lambda: len(handshakes(broker)), lambda count: count == 0)


def begun(bootstrap: str, source: str | None = None) -> RawConnection:
    """A client that has begun a handshake, and does not go on."""
    connection = RawConnection(bootstrap, source=source)
    connection.send(b"\x16\x03\x01")
    return connection


def have_begun(broker: EmbeddedBroker) -> int:
    """How many handshakes have begun, and wait for more of their clients."""
    found = [each for own in tuple(handshakes(broker)._by_holder.values()) for each in tuple(own)]
    return sum(each._waits_for != "" and not each.needs_pipe for each in found)


def test_one_address_cannot_take_all_handshakes(
    start: Start, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TLS_HANDSHAKES_PER_ADDRESS_MAX", 3)
    monkeypatch.setattr(limits, "TLS_HELLO_PATIENCE_S", 10 * WAIT_S)
    broker = start()
    slow = [begun(broker.bootstrap) for _ in range(3)]
    until(lambda: have_begun(broker), lambda count: count == 3)
    with RawConnection(broker.bootstrap) as fourth, pytest.raises(Closed):
        fourth.receive()
    for each in slow:
        each.close()
    until(lambda: len(handshakes(broker)), lambda count: count == 0)
    with RawConnection(broker.bootstrap, tls=context(certificates)) as connection:
        assert connection.call(HELLO, 3).error_code == 0


def test_many_connections_that_send_one_byte_keep_nobody_out(
    start: Start, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of four addresses, as many as there may be; a client of a fifth one comes in at once."""
    monkeypatch.setattr(limits, "TLS_HANDSHAKE_S", 10 * WAIT_S)  # so that it is not the reason
    monkeypatch.setattr(limits, "TLS_HELLO_PATIENCE_S", 10 * WAIT_S)
    broker = start()
    sources = [f"127.0.1.{1 + number % 4}" for number in range(limits.TLS_HANDSHAKES_MAX)]
    slow = [begun(broker.bootstrap, each) for each in sources]
    until(lambda: have_begun(broker), lambda count: count == limits.TLS_HANDSHAKES_MAX)
    with RawConnection(broker.bootstrap, tls=context(certificates)) as connection:
        assert connection.call(HELLO, 3).error_code == 0
    assert len(handshakes(broker)) == limits.TLS_HANDSHAKES_MAX - 1
    for each in slow:
        each.close()


def test_one_byte_from_each_of_many_addresses_keeps_nobody_out_for_long(
    start: Start, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TLS_HANDSHAKE_S", 10 * WAIT_S)
    monkeypatch.setattr(limits, "TLS_HANDSHAKES_MAX", 8)
    broker = start()
    slow = [begun(broker.bootstrap, f"127.0.2.{1 + number}") for number in range(8)]
    until(lambda: have_begun(broker), lambda count: count == 8)
    with RawConnection(broker.bootstrap, tls=context(certificates)) as connection:
        assert connection.call(HELLO, 3).error_code == 0
    with pytest.raises(Closed):
        slow[0].receive()  # the oldest one
    for each in slow:
        each.close()


def test_half_open_handshakes_that_come_again_keep_nobody_out(
    start: Start, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several times as many as there may be, of many addresses, of which none has many."""
    monkeypatch.setattr(limits, "TLS_HANDSHAKES_MAX", 16)
    host, port = start().bootstrap.split(":")
    tls = context(certificates)

    async def come_again(source: str) -> None:
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection(host, int(port), local_addr=(source, 0))
                with closing(writer):
                    writer.write(b"\x16\x03\x01\0\xf0\x01")
                    await reader.read()

    def log_in() -> None:
        for _ in range(8):
            with RawConnection(f"{host}:{port}", tls=tls) as connection:
                assert connection.call(HELLO, 3).error_code == 0

    async def besieged() -> None:
        siege = asyncio.gather(*(come_again(f"127.0.3.{1 + number % 10}") for number in range(60)))
        await asyncio.to_thread(log_in)
        siege.cancel()

    asyncio.run(besieged())


def test_handshakes_count_as_connections(
    start: Start, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TLS_HELLO_PATIENCE_S", 10 * WAIT_S)
    broker = start(max_connections="3")
    assert broker.node is not None
    door = broker.node.connections
    with RawConnection(broker.bootstrap, tls=context(certificates)) as connection:
        assert connection.call(HELLO, 3).error_code == 0
        half = [begun(broker.bootstrap) for _ in range(2)]
        until(lambda: have_begun(broker), lambda count: count == 2)
        assert door.full
        silent = RawConnection(broker.bootstrap)
        half.pop().close()
        monkeypatch.setattr(limits, "TLS_HELLO_PATIENCE_S", 0.1)
        with RawConnection(broker.bootstrap, tls=context(certificates)) as other:  # behind the silent one
            assert other.call(HELLO, 3).error_code == 0
            assert len(door.connections) == 2
            with pytest.raises(Closed):
                half[0].receive()  # the oldest one
        for each in (silent, *half):
            each.close()


@pytest.mark.parametrize(
    ("address", "holder"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:aaaa::1", "2001:db8:1:2::"),
        ("2001:db8:1:2:bbbb::2", "2001:db8:1:2::"),
        ("2001:db8:1:3::1", "2001:db8:1:3::"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80::"),
    ],
)
def test_addresses_of_one_network_count_as_one(address: str, holder: str) -> None:
    assert holder_of(address) == holder


def test_silent_connections_keep_nobody_out(
    start: Start, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TLS_HANDSHAKES_MAX", 4)
    monkeypatch.setattr(limits, "TLS_HANDSHAKES_PER_ADDRESS_MAX", 3)
    monkeypatch.setattr(limits, "TLS_HELLO_PATIENCE_S", 0)
    broker = start()
    silent = [RawConnection(broker.bootstrap) for _ in range(12)]
    with RawConnection(broker.bootstrap, tls=context(certificates)) as connection:
        assert connection.call(HELLO, 3).error_code == 0
    assert len(handshakes(broker)) <= 4
    for each in silent:
        each.close()


def test_listeners_accept_again_after_all_handshakes_were_taken(
    start: Start, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TLS_HANDSHAKES_MAX", 2)
    broker = start()
    slow = [begun(broker.bootstrap) for _ in range(2)]
    until(lambda: have_begun(broker), lambda count: count == 2)
    waiting = socket.create_connection(tuple(broker.bootstrap.split(":")), timeout=WAIT_S)  # type: ignore[arg-type]
    for each in slow:
        each.close()
    with context(certificates).wrap_socket(waiting, server_hostname="127.0.0.1") as secured:
        assert secured.version() is not None


def test_slow_keys_are_used_in_workers(
    start: Start, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TLS_HANDSHAKE_STEP_MS_MAX", -1)  # every step counts as slow
    broker = start()
    used: set[int] = set()
    for _ in range(3):
        with RawConnection(broker.bootstrap, tls=context(certificates)) as connection:
            assert connection.call(HELLO, 3).error_code == 0
            assert broker.node is not None
            used.update(id(each.sock._pipe) for each in broker.node.connections.connections)  # type: ignore[attr-defined]
    assert handshakes(broker)._in_workers
    assert len(used) > 1, "a worker and the loop do not use the same one at once"


def test_a_reader_that_pauses_gets_every_byte_and_takes_no_memory(start: Start, certificates: Certificates) -> None:
    broker = start()
    tls = context(certificates)
    with RawConnection(broker.bootstrap, tls=tls) as connection:
        create(connection, "t")
        for number in range(24):
            assert produce(connection, "t", [bytes([number]) * 1_000_000]) == (0, number)
    with RawConnection(broker.bootstrap, tls=tls) as reader:
        request = fetch_request({("t", 0): 0}, partition_max_bytes=100_000_000)
        for correlation_id in (1, 2, 3):
            reader.send(request_frame(request, FETCH_VERSION, correlation_id, "slow"))
        assert broker.node is not None

        def sending() -> list[Any]:
            assert broker.node is not None
            mine = [each for each in broker.node.connections.connections if each.context.client_id == "slow"]
            return [each for each in mine if each._sending.blocked]

        (blocked,) = until(sending, bool)
        assert blocked._outbound.held_bytes < limits.ANSWERS_HELD_BYTES_MAX
        for correlation_id in (1, 2, 3):
            answer = reader.decode(1, FETCH_VERSION, reader.receive(), correlation_id)
            records = bytes(answer.responses[0].partitions[0].records)  # type: ignore[attr-defined]
            assert [records.count(bytes([number]) * 1_000_000) for number in range(1, 24)] == [1] * 23
        until(lambda: blocked._outbound.held_bytes + blocked.sock.held_bytes, lambda size_bytes: not size_bytes)


def test_connections_share_what_their_bytes_pass_through(
    start: Start, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TLS_HANDSHAKE_STEP_MS_MAX", 60_000)  # so that no worker is needed
    broker = start()
    tls = context(certificates)
    with RawConnection(broker.bootstrap, tls=tls) as one, RawConnection(broker.bootstrap, tls=tls) as other:
        assert one.call(HELLO, 3).error_code == other.call(HELLO, 3).error_code == 0
        assert broker.node is not None
        socks: list[Any] = [each.sock for each in broker.node.connections.connections]
        assert len(socks) == 2 and len({id(each._pipe) for each in socks}) == 1


def test_a_new_certificate_is_used_without_a_restart(start: Start, certificates: Certificates) -> None:
    broker = start()
    tls = context(certificates)

    def serial() -> str:
        with RawConnection(broker.bootstrap, tls=tls) as connection:
            return str(connection._socket.getpeercert()["serialNumber"])  # type: ignore[attr-defined]

    def refresh() -> None:
        assert broker.node is not None and broker._thread.loop is not None
        asyncio.run_coroutine_threadsafe(broker.node.rooms.security.refresh(), broker._thread.loop).result(WAIT_S)

    with RawConnection(broker.bootstrap, tls=tls) as old:
        first = serial()
        certificates.node()  # writes another certificate to the same file
        refresh()
        second = serial()
        assert second != first
        Path(certificates.node()["ssl.keystore.location"]).write_text("nonsense")
        refresh()
        assert serial() == second, "a file that cannot be read does not close the listener"
        assert old.call(HELLO, 3).error_code == 0


def test_a_new_certificate_is_set_by_alter_configs(start: Start, certificates: Certificates) -> None:
    """With the name of the old one, as in Kafka; one that cannot be used is refused."""
    broker = start()
    tls = context(certificates)
    security = {"security.protocol": "SSL", **certificates.ours()}
    setting = "listener.name.ssl.ssl.keystore.location"
    again = certificates.authority.node().write(certificates.directory, "again")

    def shown() -> int:
        with RawConnection(broker.bootstrap, tls=tls) as connection:
            return int(connection._socket.getpeercert()["serialNumber"], 16)  # type: ignore[attr-defined]

    before = shown()
    with Blocking(broker.bootstrap, security=security) as client:
        for path, problem in (
            ("/nowhere/key.pem", "cannot be read"),
            (certificates.node("renamed")["ssl.keystore.location"], "is of CN=renamed, and the present one of CN=node"),
            (str(Authority("another").node().write(certificates.directory, "other")), "would not trust each other"),
        ):
            with pytest.raises(ApiError, match=problem) as refused:
                client.admin.configs.set(Resource.broker(1), {setting: path})
            assert refused.value.code == ErrorCode.INVALID_REQUEST
        assert shown() == before
        client.admin.configs.set(Resource.broker(1), {setting: str(again)})
        until(shown, lambda now: now != before)


def test_a_new_certificate_is_used_when_its_setting_is_written_again(
    start: Start, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same value, as Kafka's documentation says to do after the file was replaced."""
    monkeypatch.setattr(composed_node, "CERTIFICATES_MS", 3_600_000)
    broker = start()
    tls = context(certificates)
    security = {"security.protocol": "SSL", **certificates.ours()}

    def serial() -> str:
        with RawConnection(broker.bootstrap, tls=tls) as connection:
            return str(connection._socket.getpeercert()["serialNumber"])  # type: ignore[attr-defined]

    with Blocking(broker.bootstrap, security=security) as client:
        for _ in range(2):
            before = serial()
            store = certificates.node()["ssl.keystore.location"]
            client.admin.configs.set(Resource.broker(1), {"listener.name.ssl.ssl.keystore.location": store})
            until(serial, lambda now, before=before: now != before)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"ssl_keystore_location": ""}, "needs a certificate and its key"),
        ({"ssl_keystore_location": "/nowhere/key.pem"}, "cannot be read"),
        ({"ssl_cipher_suites": "TLS_NOT_A_SUITE"}, "ssl.cipher.suites"),
        ({"ssl_enabled_protocols": "SSLv3"}, "ssl.enabled.protocols"),
        ({"ssl_keystore_type": "JKS"}, "ssl.keystore.type is JKS, but .*node.pem is a PEM file"),
        ({"ssl_truststore_type": "PKCS12"}, "ssl.truststore.type is PKCS12, but .*ca.pem is a PEM file"),
        ({"ssl_truststore_location": __file__}, "ssl.truststore.type is PEM, but .* is no PEM file"),
    ],
)
def test_a_node_does_not_start_with_wrong_tls_settings(start: Start, settings: dict[str, str], problem: str) -> None:
    with pytest.raises(Exception, match=problem):
        start(**settings)


@pytest.mark.parametrize("store", ["keystore", "truststore"])
def test_a_node_does_not_start_with_a_java_keystore_and_says_what_converts_it(
    start: Start, tmp_path: Path, store: str
) -> None:
    """JKS is also the default of the settings `ssl.*.type`, so that it does not matter whether they are set."""
    path = tmp_path / f"{store}.jks"
    path.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2\0\0\0\0" + bytes(20))
    settings = {f"ssl_{store}_location": str(path), f"ssl_{store}_type": "JKS", "ssl_client_auth": "required"}
    command = f"keytool -importkeystore -srckeystore {path} -destkeystore store.p12 -deststoretype PKCS12"
    with pytest.raises(Exception, match=f"ssl.{store}.location: {path} is a JKS keystore; convert it: {command}"):
        start(**settings)
