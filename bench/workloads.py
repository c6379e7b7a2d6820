"""The workloads for both brokers. Every workload returns the figures of one broker; `report` makes ratios of them."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass

from confluent_kafka import Consumer, TopicPartition
from tests.support.java.programs import CLASSPATH_431, command

from bench import probe
from bench.subject import Cost, Subject, resident_mib

GB = 1e9
PARTITIONS = 4


@dataclass(frozen=True, slots=True)
class Scale:
    """The size of each workload; `rounds` alternate between the brokers and the median counts."""

    rounds: int
    kib_records: int
    small_records: int
    single_records: int
    latency_s: int
    topics: int
    partitions_per_topic: int
    starts: int
    rebalances: int
    commits: int
    share_records: int
    client_records: int
    authorization_rounds: int = 0
    metrics_rounds: int = 0


QUICK = Scale(1, 150_000, 500_000, 40_000, 4, 20, 50, 1, 15, 16_000, 200_000, 200_000, 7, 3)
FULL = Scale(2, 700_000, 2_000_000, 120_000, 10, 100, 100, 2, 60, 80_000, 1_000_000, 500_000, 25, 5)
# Kafka's JIT compiler is not to be measured: both brokers do each kind of work once before anything counts. The quick
# mode warms up less, which favours Ottla; only the full mode is a fair comparison.
WARM_UP_QUICK = Scale(1, 60_000, 300_000, 40_000, 1, 0, 0, 0, 10, 16_000, 100_000, 0)
WARM_UP_FULL = Scale(1, 300_000, 1_000_000, 60_000, 2, 0, 0, 0, 40, 40_000, 300_000, 0)

Figures = dict[str, float]


def produce(
    subject: Subject, topic: str, records: int, size_bytes: int, *, tls: bool = False, **properties: object
) -> Cost:
    """Run Kafka's own ProducerPerformance, as fast as it can; the broker's cost."""
    settings = [f"{name.replace('_', '.')}={value}" for name, value in properties.items()]
    bootstrap = subject.bootstrap
    if tls:
        assert subject.tls is not None
        bootstrap = subject.tls.bootstrap
        settings += [f"{name}={value}" for name, value in subject.tls.client_settings.items()]
    tool = command(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", str(records), "--record-size", str(size_bytes), "--throughput", "-1"),
        *("--producer-props", f"bootstrap.servers={bootstrap}", *settings),
        classpath=CLASSPATH_431,
    )
    tool.remove("-XX:TieredStopAtLevel=1")  # a client without its optimizing compiler would limit both brokers
    with Cost(subject) as cost:
        done = subprocess.run(tool, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{records} records sent" in done.stdout, done.stdout[-500:]
    return cost


def produce_kib(subject: Subject, scale: Scale, round_: int) -> Figures:
    return _produce_kib(subject, scale, "kib")


def produce_tls(subject: Subject, scale: Scale, round_: int) -> Figures:
    return _produce_kib(subject, scale, "tls", tls=True)


def _produce_kib(subject: Subject, scale: Scale, topic: str, *, tls: bool = False) -> Figures:
    cost = produce(
        subject,
        topic,
        scale.kib_records,
        1024,
        acks="all",
        batch_size=262_144,
        linger_ms=20,
        max_request_size=1_048_576,
        tls=tls,
    )
    gigabytes = scale.kib_records * 1024 / GB
    return {"cpu_s_per_gb": cost.cpu_s / gigabytes, "mb_per_s": 1000 * gigabytes / cost.wall_s}


def produce_small(subject: Subject, scale: Scale, round_: int) -> Figures:
    cost = produce(subject, "small", scale.small_records, 100, acks="1", batch_size=65_536, linger_ms=20)
    return {
        "cpu_us_per_record": 1e6 * cost.cpu_s / scale.small_records,
        "records_per_s": scale.small_records / cost.wall_s,
    }


def produce_single(subject: Subject, scale: Scale, round_: int) -> Figures:
    cost = produce(subject, "single", scale.single_records, 100, acks="1", batch_size=0, linger_ms=0)
    return {
        "cpu_us_per_request": 1e6 * cost.cpu_s / scale.single_records,
        "requests_per_s": scale.single_records / cost.wall_s,
    }


def consume(subject: Subject, scale: Scale, round_: int) -> Figures:
    """librdkafka reads everything the KiB workload wrote so far."""
    return _consume(subject, "kib", {"bootstrap.servers": subject.bootstrap})


def consume_tls(subject: Subject, scale: Scale, round_: int) -> Figures:
    """The same over TLS."""
    assert subject.tls is not None
    trusted = str(subject.tls.trusted)
    settings = {"bootstrap.servers": subject.tls.bootstrap, "security.protocol": "SSL", "ssl.ca.location": trusted}
    return _consume(subject, "tls", settings)


def _consume(subject: Subject, topic: str, settings: dict[str, str]) -> Figures:
    consumer = Consumer(
        {
            **settings,
            "group.id": "none",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.queue.backoff.ms": 10,
        }
    )
    assigned = [TopicPartition(topic, index, 0) for index in range(PARTITIONS)]
    left = sum(consumer.get_watermark_offsets(partition, timeout=30)[1] for partition in assigned)
    total_bytes = 0
    with Cost(subject) as cost:
        consumer.assign(assigned)
        deadline = time.monotonic() + 300
        while left > 0 and time.monotonic() < deadline:
            for message in consumer.consume(10_000, timeout=1.0):
                assert message.error() is None, message.error()
                total_bytes += len(message.value())
                left -= 1
    consumer.close()
    assert left == 0, f"{left} records are missing"
    return {"cpu_s_per_gb": cost.cpu_s / (total_bytes / GB), "mb_per_s": total_bytes / 1e6 / cost.wall_s}


def latency(subject: Subject, scale: Scale, round_: int) -> Figures:
    """1,000 records of 100 bytes a second through one partition, acks=all, Java producer and consumer."""
    arguments = (subject.bootstrap, "latency", "1000", "3", str(scale.latency_s), "100")
    tool = command("Latency", *arguments, classpath=CLASSPATH_431)
    tool.remove("-XX:TieredStopAtLevel=1")
    done = subprocess.run(tool, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    measured = json.loads(done.stdout.strip().splitlines()[-1])
    return {"p50_ms": measured["p50_us"] / 1000, "p99_ms": measured["p99_us"] / 1000}


def start(subject: Subject) -> Figures:
    """The time from an empty directory to the first acknowledged record; formatting does not count."""
    subject.format()
    begun = time.perf_counter()
    subject.launch()
    probe.until_acknowledged(subject.bootstrap, "first")
    started_s = time.perf_counter() - begun
    time.sleep(2)
    return {"start_s": started_s, "idle_mib": resident_mib(subject.pids)}


def many_partitions(subject: Subject, scale: Scale) -> Figures:
    """On a separate node: create partitions, wait until they settle, restart."""
    names = [f"many-{number}" for number in range(scale.topics)]
    with Cost(subject) as creation:
        probe.create_topics(subject.bootstrap, names, scale.partitions_per_topic)
        probe.until_all_led(subject.bootstrap, names, scale.partitions_per_topic)
    # Both brokers must have every partition open: Ottla opens a partition at its first use.
    probe.ask_all_ends(subject.bootstrap, names, scale.partitions_per_topic)
    time.sleep(3)
    memory = resident_mib(subject.pids)
    subject.stop()
    begun = time.perf_counter()
    subject.launch()
    probe.until_all_led(subject.bootstrap, names, scale.partitions_per_topic)
    return {"create_s": creation.wall_s, "restart_s": time.perf_counter() - begun, "resident_mib": memory}
