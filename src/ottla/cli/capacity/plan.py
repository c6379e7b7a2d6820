"""How many brokers, disks and partitions a load needs, and how much network and memory. Pure.

What a gigabyte costs comes from docs/performance.md (a cost per byte and a cost per record, from its rows of 1 KiB and
of 100-byte records); other defaults are assumptions, and are called so in docs/capacity.md.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.cli.capacity.arithmetic import (
    PlanLine,
    Quantity,
    QuantityUnit,
    compute,
    number,
    over,
    plus,
    times,
)
from ottla.model.limits import MIB

BYTES, RATE, NUMBER = QuantityUnit.BYTES, QuantityUnit.RATE, QuantityUnit.NUMBER

# docs/performance.md, "broker CPU s per GB produced, 1 KiB records": 1.779; "per 100-byte record": 0.295 µs.
# From these two, a·GB + b·records:
PRODUCE_CPU_PER_GB = 1.652
PRODUCE_CPU_PER_RECORD = 0.13e-6
# "CPU s of all nodes per GB" of three replicas, 3.85, and "per 100-byte record", 0.622 µs; less the above, halved.
COPY_CPU_PER_GB = 0.971
COPY_CPU_PER_RECORD = 0.066e-6
CONSUME_CPU_PER_GB = 0.3645  # "broker CPU s per GB consumed"
NODE_BYTES = 36.2 * MIB  # "resident memory after the produce runs"
PARTITION_BYTES = (72.68 - 34.72) * MIB / 10_000  # "with 10,000 partitions", less "idle"
REQUESTS_BYTES = 512 * MIB  # what queued.max.request.bytes=-1 means here


class PlannedLoad(NamedTuple):
    """What is asked for, in bytes and seconds. Rates are averages; `peak` is the highest rate as a multiple of them."""

    in_rate: float
    retention_s: float
    replicas: int = 3
    message_bytes: float = 1024
    fan_out: float = 1
    compression: float = 1
    peak: float = 2


class PlannedNode(NamedTuple):
    """What one broker has, and how much of it may be used; `spare` brokers may be down at the peak."""

    disk_bytes: float = 4e12
    fill: float = 0.7
    disk_rate: float = 200e6
    network_rate: float = 1.25e9
    load: float = 0.5
    partition_rate: float = 10e6
    cache_s: float = 60
    spare: int = 1


class CapacityPlan(NamedTuple):
    """The answers, the line behind each, and what decides the number of brokers."""

    brokers: int
    partitions: int
    disk_bytes: float  # for each broker, before `fill`
    in_rate: float  # of the network of each broker, at the peak
    out_rate: float
    memory_bytes: float
    limited_by: str
    lines: tuple[PlanLine, ...]


class _Traffic(NamedTuple):
    """What all brokers together do at the peak, and hold."""

    sent: Quantity  # from producers, as it is on the wire and on disk
    held: Quantity
    written: Quantity
    read: Quantity
    busy: Quantity
    lines: tuple[PlanLine, ...]


def plan(load: PlannedLoad, node: PlannedNode) -> CapacityPlan:
    """Plan brokers, network and CPU for the peak, and disks for the average, since they hold the sum."""
    traffic = _traffic(load)
    needs = _needs(traffic, node)
    counts = {"replicas": float(load.replicas)} | {name: line.result.value for name, line in needs.items()}
    limited_by = max(counts, key=counts.__getitem__)
    brokers = number(counts[limited_by])
    part_rate = Quantity(node.partition_rate, RATE)
    rows = compute("partitions for each broker", NUMBER, traffic.sent, over(part_rate), over(brokers), up=True)
    partitions = compute("partitions", NUMBER, rows.result, times(brokers))
    disk = compute("disk of each broker", BYTES, traffic.held, over(brokers), over(number(node.fill)))
    own_in = compute("received by each broker", RATE, traffic.written, over(brokers))
    own_out = compute("sent by each broker", RATE, traffic.read, over(brokers))
    memory = _memory(partitions.result, number(load.replicas), brokers, own_in.result, node)
    return CapacityPlan(
        brokers=int(brokers.value),
        partitions=int(partitions.result.value),
        disk_bytes=disk.result.value,
        in_rate=own_in.result.value,
        out_rate=own_out.result.value,
        memory_bytes=memory[-1].result.value,
        limited_by=limited_by,
        lines=(*traffic.lines, *needs.values(), rows, partitions, disk, own_in, own_out, *memory),
    )


def _traffic(load: PlannedLoad) -> _Traffic:
    shrunk, replicas = over(number(load.compression)), times(number(load.replicas))
    average = Quantity(load.in_rate, RATE)
    sent = compute("produced at the peak, compressed", RATE, average, times(number(load.peak)), shrunk)
    kept = times(Quantity(load.retention_s, QuantityUnit.SECONDS))
    held = compute("held by all brokers", BYTES, average, shrunk, kept, replicas)
    written = compute("received and written by all brokers", RATE, sent.result, replicas)
    copies = compute("times that each byte is sent", NUMBER, number(load.replicas - 1), plus(number(load.fan_out)))
    read = compute("sent by all brokers", RATE, sent.result, times(copies.result))
    cpu = _cpu(load)
    gigabyte = over(Quantity(1e9, BYTES))
    busy = compute("busy at the peak", QuantityUnit.LOOPS, sent.result, gigabyte, times(cpu[-1].result))
    lines = (sent, held, written, copies, read, *cpu, busy)
    return _Traffic(sent.result, held.result, written.result, read.result, busy.result, lines)


def _needs(traffic: _Traffic, node: PlannedNode) -> dict[str, PlanLine]:
    """How many brokers each resource asks for."""
    load, spare = over(number(node.load)), plus(number(node.spare))
    busier = max(traffic.written, traffic.read)
    disk, fill = over(Quantity(node.disk_bytes, BYTES)), over(number(node.fill))
    disk_rate, network_rate = over(Quantity(node.disk_rate, RATE)), over(Quantity(node.network_rate, RATE))
    return {
        "disk space": compute("brokers for the space on disks", NUMBER, traffic.held, disk, fill, up=True),
        "disk writes": compute("brokers for writing", NUMBER, traffic.written, disk_rate, load, spare, up=True),
        "network": compute("brokers for the network", NUMBER, busier, network_rate, load, spare, up=True),
        "CPU": compute("brokers for the CPU", NUMBER, traffic.busy, load, spare, up=True),
    }


def _cpu(load: PlannedLoad) -> tuple[PlanLine, ...]:
    """What a gigabyte on the wire costs in all brokers: written by the leader, copied, read."""
    unit, second = QuantityUnit.CPU_PER_GB, QuantityUnit.SECONDS
    size = Quantity(load.message_bytes, BYTES)
    records = compute("records of a GB", NUMBER, Quantity(1e9, BYTES), times(number(load.compression)), over(size))
    each = times(records.result)
    write_record, copy_record = Quantity(PRODUCE_CPU_PER_RECORD, second), Quantity(COPY_CPU_PER_RECORD, second)
    write = compute("CPU to write", unit, write_record, each, plus(Quantity(PRODUCE_CPU_PER_GB, unit)))
    copy = compute("CPU of one copy", unit, copy_record, each, plus(Quantity(COPY_CPU_PER_GB, unit)))
    copies = compute("CPU of all copies", unit, copy.result, times(number(load.replicas - 1)))
    read = compute("CPU to read", unit, Quantity(CONSUME_CPU_PER_GB, unit), times(number(load.fan_out)))
    whole = compute("CPU of a GB", unit, write.result, plus(copies.result), plus(read.result))
    return records, write, copy, copies, read, whole


def _memory(
    partitions: Quantity, replicas: Quantity, brokers: Quantity, written: Quantity, node: PlannedNode
) -> tuple[PlanLine, ...]:
    own = compute("replicas of each broker", NUMBER, partitions, times(replicas), over(brokers), up=True)
    logs = compute("memory of partitions", BYTES, Quantity(PARTITION_BYTES, BYTES), times(own.result))
    cache = compute("page cache", BYTES, written, times(Quantity(node.cache_s, QuantityUnit.SECONDS)))
    requests = plus(Quantity(REQUESTS_BYTES, BYTES))
    idle = Quantity(NODE_BYTES, BYTES)
    whole = compute("memory of each broker", BYTES, idle, requests, plus(logs.result), plus(cache.result))
    return own, logs, cache, whole
