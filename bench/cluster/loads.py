"""The workloads of both clusters without failures. CPU and memory are those of all nodes together."""

from __future__ import annotations

import resource
import time

from bench import workloads
from bench.cluster import prepared
from bench.cluster.subjects import REPLICATION_FACTOR, Three
from bench.cluster.whole import create, until_in_sync
from bench.subject import Cost, resident_mib
from bench.workloads import GB, Figures, Scale

THROUGHPUT_PARTITIONS = 6
MANY_PER_TOPIC = 50
KIB_BATCH_BYTES, SMALL_BATCH_BYTES = 262_144, 65_536


def prepare(subject: Three) -> None:
    create(subject.cluster, ["kib", "small"], THROUGHPUT_PARTITIONS, REPLICATION_FACTOR)
    create(subject.cluster, ["latency"], 1, REPLICATION_FACTOR)
    until_in_sync(subject.cluster, ["kib", "small"], THROUGHPUT_PARTITIONS)
    until_in_sync(subject.cluster, ["latency"], 1)


def produce_kib(subject: Three, scale: Scale, round_: int) -> Figures:
    before_s = _clients_cpu_s()
    figures = workloads.produce_kib(subject, scale, round_)
    client_s = _clients_cpu_s() - before_s
    gigabytes = scale.kib_records * 1024 / GB
    return figures | {"s_per_gb": 1000 / figures["mb_per_s"], "client_cpu_s_per_gb": client_s / gigabytes}


def produce_small(subject: Three, scale: Scale, round_: int) -> Figures:
    """Produce 100-byte records, a usual size, with acks=all."""
    before_s = _clients_cpu_s()
    cost = workloads.produce(
        subject, "small", scale.small_records, 100, acks="all", batch_size=SMALL_BATCH_BYTES, linger_ms=20
    )
    return {
        "cpu_us_per_record": 1e6 * cost.cpu_s / scale.small_records,
        "us_per_record": 1e6 * cost.wall_s / scale.small_records,
        "client_cpu_us_per_record": 1e6 * (_clients_cpu_s() - before_s) / scale.small_records,
    }


def _clients_cpu_s() -> float:
    """The CPU time of client programs that have ended; the nodes are still running and do not count."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def prepared_kib(subject: Three, scale: Scale, round_: int) -> Figures:
    load = prepared.Load(subject.cluster, "kib", scale.kib_records, 1024, KIB_BATCH_BYTES)
    with Cost(subject) as cost:
        load.run()
    gigabytes = load.records * 1024 / GB
    return {"cpu_s_per_gb": cost.cpu_s / gigabytes, "s_per_gb": cost.wall_s / gigabytes}


def prepared_small(subject: Three, scale: Scale, round_: int) -> Figures:
    load = prepared.Load(subject.cluster, "small", scale.small_records, 100, SMALL_BATCH_BYTES)
    with Cost(subject) as cost:
        load.run()
    return {"cpu_us_per_record": 1e6 * cost.cpu_s / load.records, "us_per_record": 1e6 * cost.wall_s / load.records}


def latency(subject: Three, scale: Scale, round_: int) -> Figures:
    return workloads.latency(subject, scale, round_)


def memory(subject: Three) -> Figures:
    return {"resident_mib": resident_mib(subject.pids)}


def many_partitions(subject: Three, partitions: int) -> Figures:
    """Create partitions, then restart one broker that has replicas of all; measured until every replica is in sync."""
    cluster = subject.cluster
    names = [f"many-{number}" for number in range(partitions // MANY_PER_TOPIC)]
    begun = time.perf_counter()
    create(cluster, names, MANY_PER_TOPIC, REPLICATION_FACTOR)
    until_in_sync(cluster, names, MANY_PER_TOPIC)
    created_s = time.perf_counter() - begun
    active = cluster.controller()
    broker = next(id for id in cluster.ids if id != active)
    cluster.stop_node(broker, timeout_s=180)
    begun = time.perf_counter()
    cluster.start_node(broker, timeout_s=300)
    until_in_sync(cluster, names, MANY_PER_TOPIC)
    return {"create_s": created_s, "restart_s": time.perf_counter() - begun}


def idle(subject: Three, partitions: int, seconds: float) -> Figures:
    """Measure nodes with some partitions that no client writes or reads."""
    names = [f"idle-{number}" for number in range(partitions // MANY_PER_TOPIC)]
    create(subject.cluster, names, MANY_PER_TOPIC, REPLICATION_FACTOR)
    until_in_sync(subject.cluster, names, MANY_PER_TOPIC)
    time.sleep(10)
    with Cost(subject) as cost:
        time.sleep(seconds)
    return {"cpu_percent": 100 * cost.cpu_s / cost.wall_s}
