"""What a scrape tells of disks, memory, contracts and connections, after each has happened once."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.metrics.scraping import ON, scraped
from tests.server.schemas.test_contracts import Shop
from tests.server.security.secured import Certificates, plain_jaas
from tests.server.talk import FETCH_VERSION, create, eventually, fetch_request, produce
from tests.support.requests.raw import RawConnection, request_frame

from ottla import Blocking
from ottla.cluster.entities import PartitionChanged
from ottla.testing.broker import EmbeddedBroker

CACHE = "kafka_server_fetchsessioncache_"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    quick = {"log.retention.check.interval.ms": "50", "log.cleaner.backoff.ms": "50"}
    with EmbeddedBroker(tmp_path / "data", ON | quick) as broker:
        yield broker


def test_syncs_and_disks(broker: EmbeddedBroker) -> None:
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t", flush_messages=1)
        produce(connection, "t", [b"x"])
    assert scraped(broker)("kafka_log_logflushstats_logflushrateandtimems_count") >= 1
    path = str(broker.data_dir)
    found = eventually(lambda: scraped(broker).labels("ottla_disk_free_bytes", "directory") == {path})
    assert found
    scrape = scraped(broker)
    assert 0 < scrape("ottla_disk_free_bytes", directory=path) <= scrape("ottla_disk_size_bytes", directory=path)


def test_retention(broker: EmbeddedBroker) -> None:
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t", segment_bytes=1_048_576, retention_bytes=0)
        written = 0
        while not scraped(broker)("ottla_retention_deleted_segments_total"):
            produce(connection, "t", [b"x" * 600_000])
            written += 600_000
        assert 600_000 < scraped(broker)("ottla_retention_deleted_bytes_total") <= written * 1.01


def test_compaction(broker: EmbeddedBroker) -> None:
    settings = {"cleanup_policy": "compact", "segment_ms": 1, "min_cleanable_dirty_ratio": 0.01}
    with RawConnection(broker.bootstrap) as connection, Blocking(broker.bootstrap) as client:
        create(connection, "t", **settings)

        def compacted() -> bool:
            client.send("t", b"v", key=b"k")
            client.flush()
            return scraped(broker)("ottla_cleaner_runs_total") >= 1

        eventually(compacted)
    scrape = scraped(broker)
    assert scrape("ottla_cleaner_read_bytes_total") > 0
    assert scrape("ottla_cleaner_last_run_seconds") >= 0
    assert 0 <= scrape("ottla_cleaner_max_dirty_ratio") <= 1


def test_waiting_requests_sessions_and_producers(broker: EmbeddedBroker) -> None:
    with Blocking(broker.bootstrap) as client:
        client.admin.topics.create("t", 1, 1)
        client.send("t", b"x")
        client.flush()
    with RawConnection(broker.bootstrap) as connection:
        request = fetch_request({("t", 0): 1}, max_wait_ms=100_000, min_bytes=1, session=(0, 0))
        connection.send(request_frame(request, FETCH_VERSION, 1, "raw"))
        eventually(lambda: scraped(broker)("ottla_waiting_requests") == 1)
        scrape = scraped(broker)
        assert scrape("kafka_server_replicamanager_produceridcount") == 1
        assert scrape(f"{CACHE}incrementalfetchsessionevictions_total") == 0
        assert 0 <= scrape("ottla_request_memory_bytes") <= scrape("ottla_request_memory_max_bytes")
        produce_on_another(broker)
        connection.receive()
    assert scraped(broker)(f"{CACHE}numincrementalfetchsessions") == 1
    assert scraped(broker)("ottla_waiting_requests") == 0


def produce_on_another(broker: EmbeddedBroker) -> None:
    with RawConnection(broker.bootstrap) as other:
        assert produce(other, "t", [b"y"])[0] == 0


def test_states_of_connections(tmp_path: Path) -> None:
    certificates = Certificates.make(tmp_path / "tls")
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": plain_jaas(),
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": plain_jaas(),
        "max.connections.per.ip": "3",
    }
    name = "ottla_connections"
    with EmbeddedBroker(tmp_path / "data", ON | settings | certificates.node()) as broker:
        assert broker.node is not None
        plain, tls, sasl = [socket.create_connection(address) for address in broker.node.addresses]
        eventually(lambda: scraped(broker)(name, listener="PLAINTEXT", state="open") == 1)
        eventually(lambda: scraped(broker)(name, listener="SASL_SSL", state="handshaking") == 1)
        eventually(lambda: scraped(broker)(name, listener="SASL_PLAINTEXT", state="authenticating") == 1)
        more = [socket.create_connection(broker.node.addresses[0]) for _ in range(2)]
        eventually(lambda: scraped(broker)("ottla_connections_refused_total", listener="PLAINTEXT") == 1)
        for sock in (plain, tls, sasl, *more):
            sock.close()
        eventually(lambda: scraped(broker)(name, listener="PLAINTEXT", state="open") == 0)


def test_unclean_elections(broker: EmbeddedBroker) -> None:
    """A leader that was neither in sync nor eligible; no other change of a leader counts."""
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t")
    assert broker.node is not None
    topic = broker.node.metadata.state.topics["t"]
    (partition,) = topic.partitions
    assert broker.node.composed is not None
    assert broker.node.composed.metrics is not None
    counts = broker.node.composed.metrics._changes
    was = partition._replace(leader=-1, isr=(2,), elr=(3,))
    for leader in (2, 3, -1, 4):
        counts._changed([PartitionChanged(topic, was, was._replace(leader=leader))])
    assert scraped(broker)("kafka_controller_controllerstats_uncleanleaderelections_total") == 1


def test_contracts_and_dead_letters(broker: EmbeddedBroker) -> None:
    shop = Shop(broker)
    try:
        shop.topic("strict", **{"": "full"})
        shop.topic("lenient", **{"": "full", "_action": "dlq"})
        for topic in ("strict", "lenient"):
            shop.registry.register(f"{topic}-value", {"type": "string"})
        assert shop.produce("strict", b"bad", b"worse") != [None, None]
        assert shop.produce("lenient", b"bad", b"worse") == [None, None]
    finally:
        shop.registry.close()
    scrape = scraped(broker)
    assert scrape("ottla_contract_refusals_total", topic="strict") >= 1
    assert scrape.labels("ottla_contract_refusals_total", "topic") == {"strict"}
    assert scrape("ottla_dead_letters_total") == 2
