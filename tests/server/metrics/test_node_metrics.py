"""A node with metrics: what a scrape says after real traffic."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.metrics.scraping import ON, get, scraped
from tests.server.quotas.quota_records import set_quota
from tests.server.talk import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    create,
    eventually,
    fetch_request,
    produce,
    produce_request,
)
from tests.support.requests.raw import RawConnection

from ottla import Blocking, ConsumerOptions, ProducerOptions
from ottla.model.errors import ApiError
from ottla.observe.metrics.catalogue.areas import metrics
from ottla.observe.metrics.declaration import MetricKind
from ottla.server.metrics.health import Health
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.topics.metadata import MetadataRequest

TOPIC = "kafka_server_brokertopicmetrics_"
REQUESTS = "kafka_network_requestmetrics_"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path / "data", ON) as broker:
        yield broker


def test_traffic_of_a_topic(broker: EmbeddedBroker) -> None:
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t", 2)
        for _ in range(10):
            assert produce(connection, "t", [b"x", b"y"])[0] == 0
        answer = connection.call(fetch_request({("t", 0): 0}), FETCH_VERSION)
        fetched = len(answer.responses[0].partitions[0].records)
        assert produce(connection, "t", [b"x"], index=1)[0] == 0
    found = scraped(broker)
    assert found(f"{TOPIC}messagesin_total", topic="t") == 21
    assert found(f"{TOPIC}bytesout_total", topic="t") == fetched
    assert found("ottla_topic_records_out_total", topic="t") == 20, "all of the first partition"
    assert found(f"{TOPIC}totalproducerequests_total", topic="t") == 11
    assert found(f"{TOPIC}totalfetchrequests_total", topic="t") == 1
    assert found(f"{TOPIC}bytesin_total", topic="t") == found("kafka_log_log_size", topic="t") > fetched
    assert found("kafka_log_log_logendoffset", topic="t") == 21
    assert found("kafka_log_log_logstartoffset", topic="t") == 0
    assert found("kafka_log_log_numlogsegments", topic="t") == 2
    assert found("kafka_server_replicamanager_leadercount") == 2
    assert found("kafka_controller_kafkacontroller_globalpartitioncount") == 2
    assert scraped(broker)(f"{TOPIC}messagesin_total", topic="t") == 21, "a scrape changes nothing"


def test_requests_and_their_errors(broker: EmbeddedBroker) -> None:
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t")
        for _ in range(3):
            assert produce(connection, "t", [b"x"])[0] == 0
        assert produce(connection, "t", [b"x"], index=7)[0] == 3
        assert produce(connection, "missing", [b"x"])[0] == 3
        connection.call(MetadataRequest(topics=[]), 9)
        connection.call(MetadataRequest(topics=[]), 12)
        connection.call(fetch_request({("t", 0): 100}), FETCH_VERSION)
        connection.call(fetch_request({("t", 0): 3}, max_wait_ms=100), FETCH_VERSION)
    found = scraped(broker)
    assert found(f"{REQUESTS}requests_total", request="Produce", version=str(PRODUCE_VERSION)) == 5
    assert found(f"{REQUESTS}requests_total", request="Metadata", version="9") == 1
    assert found(f"{REQUESTS}requests_total", request="Metadata", version="12") == 1
    assert found(f"{REQUESTS}errors_total", request="Produce", error="UNKNOWN_TOPIC_OR_PARTITION") == 2
    assert found(f"{REQUESTS}errors_total", request="Fetch", error="OFFSET_OUT_OF_RANGE") == 1
    assert found(f"{TOPIC}failedproducerequests_total", topic="t") == 1
    assert found(f"{TOPIC}failedfetchrequests_total", topic="t") == 1
    for kind in ("localtimems", "totaltimems"):
        assert found(f"{REQUESTS}{kind}_count", request="Produce") == 5
        assert found(f"{REQUESTS}{kind}_count", request="Fetch") == 2
        assert found(f"{REQUESTS}{kind}_sum", request="Produce") > 0
    waits = {"request": "Fetch", "quantile": "0.999"}
    assert found(f"{REQUESTS}totaltimems", **waits) >= 95, "the second fetch waited for 100 ms, told to some 3 per cent"
    assert found(f"{REQUESTS}localtimems", **waits) < found(f"{REQUESTS}totaltimems", **waits)


def test_groups_and_transactions(broker: EmbeddedBroker) -> None:
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t")
    with Blocking(broker.bootstrap, ProducerOptions(transactional_id="tx")) as client:
        with client.transaction():
            client.send("t", b"x")
            found = scraped(broker)
            assert found("ottla_transactions", state="Ongoing") == 1
            assert found("ottla_transaction_oldest_seconds") > 0
            assert found("ottla_topic_unstable_records", topic="t") == 1
        eventually(lambda: scraped(broker).labels("ottla_transactions", "state") == {"CompleteCommit"})
        assert scraped(broker)("ottla_topic_unstable_records", topic="t") == 0
        with client.consumer(ConsumerOptions("g", auto_offset_reset="earliest")) as consumer:
            consumer.subscribe(["t"])
            assert next(iter(consumer)).value == b"x"
            found = eventually(lambda: scraped(broker))
            (kind,) = found.labels("ottla_groups", "kind")
            assert found("ottla_groups", kind=kind, state="Stable") == 1
            assert found("ottla_group_members", kind=kind) == 1
            assert found("kafka_coordinator_group_groupmetadatamanager_numgroups") == 1
            assert found("ottla_connections", listener="PLAINTEXT", state="open") >= 1


def test_what_is_declared_is_told_and_the_other_way_round(broker: EmbeddedBroker) -> None:
    """All metrics have their samples when everything has happened once; a few things do not happen here."""
    elsewhere = {
        "ottla_throttle_seconds",
        "ottla_telemetry_pushes_total",
        "ottla_telemetry_client_info",
        "ottla_telemetry_client_last_push_seconds",
        "ottla_authentication_successes_total",
        "ottla_authentication_failures_total",
        "kafka_network_requestmetrics_errors_total",
        "ottla_event_loop_delay_seconds",
        "ottla_transactions",
        "ottla_groups",
        "ottla_group_members",
        "ottla_contract_refusals_total",
        "ottla_cleaner_last_run_seconds",
        "ottla_disk_free_bytes",
        "ottla_disk_size_bytes",
        "kafka_log_logflushstats_logflushrateandtimems",
    }
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t")
        produce(connection, "t", [b"x"])
    text = scraped(broker).text
    told = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    declared = {metric.name: metric for metric in metrics()}
    assert told.keys() <= declared.keys()
    others = {name for name in declared if name.startswith(("ottla_group_", "ottla_share_group_", "ottla_otel_"))}
    assert declared.keys() - told.keys() <= elsewhere | others
    assert all(declared[name].kind is MetricKind(kind) for name, kind in told.items())


def test_the_delay_of_the_loop(broker: EmbeddedBroker) -> None:
    name = "ottla_event_loop_delay_seconds_count"
    eventually(lambda: (name, ()) in scraped(broker).samples)
    assert 0 <= scraped(broker)("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent") <= 1


def test_throttles(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "data", ON) as broker:
        with RawConnection(broker.bootstrap) as connection:
            create(connection, "t")
            set_quota(broker, {"client-id": "raw"}, "producer_byte_rate", 1000.0)
            answer = connection.call(produce_request({("t", 0): [b"x" * 20_000]}), PRODUCE_VERSION)
        found = scraped(broker)
        assert found("ottla_throttle_seconds_count", request="Produce") == 1
        assert found("ottla_throttle_seconds_sum", request="Produce") == pytest.approx(answer.throttle_time_ms / 1000)
        assert answer.throttle_time_ms > 5_000


def test_health(broker: EmbeddedBroker) -> None:
    assert broker.node is not None
    address = broker.node.metrics_address
    alive, ready = get(address, "/healthz"), get(address, "/readyz")
    assert (alive.status, alive.body) == (200, "ok\n")
    assert (ready.status, json.loads(ready.body)) == (200, {"ready": True, "reasons": []})
    assert broker.node.composed is not None
    assert broker.node.composed.metrics is not None
    broker.node.storage.directories[0].offline = True
    ready = get(address, "/readyz")
    broker.node.storage.directories[0].offline = False
    assert ready.status == 503
    (reason,) = json.loads(ready.body)["reasons"]
    assert reason.endswith("is offline")
    closed = Health(broker.node.storage, broker.node.metadata, lambda: False, is_broker=True)
    assert closed.problems() == ["its listeners are not open yet"]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("0.0.0.0:9404", "loopback only"),
        ("node.example:9404", "loopback only"),
        ("9404", "loopback only"),
        ("127.0.0.1", "neither HOST:PORT nor HTTPS"),
        ("127.0.0.1:70000", "neither HOST:PORT nor HTTPS"),
        ("127.0.0.1:x", "neither HOST:PORT nor HTTPS"),
        ("HTTPS://:9404", "neither HOST:PORT nor HTTPS"),
        ("HTTP://127.0.0.1:9404", "loopback only"),
        ("HTTPS://127.0.0.1:0", "listener METRICS: ssl.keystore.location is not set"),
    ],
)
def test_addresses_that_are_refused(tmp_path: Path, value: str, problem: str) -> None:
    with pytest.raises(ApiError, match=problem):
        EmbeddedBroker(tmp_path / "data", {"ottla.metrics.listener": value}).start()


def test_an_address_of_ipv6(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "data", {"ottla.metrics.listener": "[::1]:0"}) as broker:
        assert broker.node is not None
        assert get(broker.node.metrics_address, "/healthz").status == 200


def test_without_an_address_nothing_is_measured_or_imported(tmp_path: Path) -> None:
    program = (
        "import sys, asyncio\n"
        "from ottla.server.node import Node\n"
        "from ottla.server.ports.ports import system_ports\n"
        "from ottla.server.process import loop_factory\n"
        f"values = {{'log.dirs': {str(tmp_path / 'data')!r}, 'listeners': 'PLAINTEXT://127.0.0.1:0'}}\n"
        "async def main():\n"
        "    node = Node(values, system_ports(values))\n"
        "    await node.start()\n"
        "    assert node.metrics_address is None\n"
        "    await node.stop()\n"
        "with asyncio.Runner(loop_factory=loop_factory()) as runner:\n"
        "    runner.run(main())\n"
        "unneeded = ('ottla.server.metrics', 'ottla.server.otel', 'ottla.server.telemetry', 'ottla.telemetry')\n"
        "found = [name for name in sys.modules if name.startswith(unneeded) or '.catalogue' in name]\n"
        "assert not found, found\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_nodes_of_one_process_count_for_themselves(tmp_path: Path) -> None:
    with (
        EmbeddedBroker(tmp_path / "one", ON) as one,
        EmbeddedBroker(tmp_path / "other", ON) as other,
        RawConnection(one.bootstrap) as connection,
    ):
        connection.call(MetadataRequest(topics=[]), 12)
        name = f"{REQUESTS}requests_total"
        assert scraped(one)(name, request="Metadata", version="12") == 1
        assert "Metadata" not in scraped(other).labels(name, "request")
