"""Measure how a client is affected by another one that sends large requests of all kinds: one after the other, on four
connections, from a process of its own, while the measured client writes one record at a time and waits for each.
"""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from bench import probe
from bench.subject import Subject
from bench.workloads import Figures, Scale
from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.records.fetch import FetchRequest
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.describe_configs import DescribeConfigsRequest
from ottla.wire.messages.topics.describe_log_dirs import DescribeLogDirsRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

TOPIC, QUIET = "crowded", "neighbour"
PARTITIONS = 5_000
AT_ONCE = 4
PAUSE_S = 0.005


def neighbour(subject: Subject, scale: Scale, round_: int) -> Figures:
    if round_ < 0:
        probe.create_topics(subject.bootstrap, [TOPIC], PARTITIONS)
        probe.until_acknowledged(subject.bootstrap, QUIET)
    spawned = multiprocessing.get_context("spawn")
    worst = [
        spawned.Process(target=_do_its_worst, args=(subject.bootstrap, number), daemon=True)
        for number in range(AT_ONCE)
    ]
    for process in worst:
        process.start()
    try:
        time.sleep(2)  # wait until the requests are under way
        waits_ms = write(subject.bootstrap, scale.latency_s)
    finally:
        for process in worst:
            process.terminate()
            process.join()
    waits_ms.sort()
    return {"p99_ms": waits_ms[int(len(waits_ms) * 0.99)], "p50_ms": statistics.median(waits_ms)}


def write(bootstrap: str, for_s: float) -> list[float]:
    data = ProduceRequest.TopicProduceData
    batch = build_batch([Record(0, 0, None, b"x" * 100, ())])
    request = ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[data(name=QUIET, partition_data=[data.PartitionProduceData(index=0, records=batch)])],
    )
    waits_ms = []
    with probe.Connection(bootstrap) as connection:
        until_s = time.monotonic() + for_s
        while time.monotonic() < until_s:
            begun_s = time.perf_counter()
            answer = connection.ask(request, probe.PRODUCE)
            waits_ms.append((time.perf_counter() - begun_s) * 1000)
            partition = answer.responses[0].partition_responses[0]
            assert partition.error_code == 0, partition
            time.sleep(PAUSE_S)
    return waits_ms


def _do_its_worst(bootstrap: str, first: int) -> None:
    requests = _requests()
    with suppress(KeyboardInterrupt, OSError), probe.Connection(bootstrap) as connection:
        for number in range(first, 1 << 30):
            make, version = requests[number % len(requests)]
            connection.ask(make(), version)


def _requests() -> list[tuple[Callable[[], Any], int]]:
    asks = ListOffsetsRequest.Topic
    wants = FetchRequest.Topic
    resources = DescribeConfigsRequest.Resource
    topics = CreateTopicsRequest.CreatableTopic
    return [
        (lambda: MetadataRequest(topics=None), 12),
        (
            lambda: ListOffsetsRequest(
                replica_id=-1,
                topics=[
                    asks(
                        name=TOPIC,
                        partitions=[asks.Partition(partition_index=at, timestamp=-1) for at in range(PARTITIONS)],
                    )
                ],
            ),
            7,
        ),
        (
            lambda: FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                session_epoch=-1,
                topics=[
                    wants(
                        topic=TOPIC,
                        partitions=[
                            wants.Partition(partition=at, fetch_offset=0, partition_max_bytes=1 << 20)
                            for at in range(PARTITIONS)
                        ],
                    )
                ],
            ),
            12,
        ),
        (lambda: DescribeLogDirsRequest(topics=None), 4),
        (
            lambda: DescribeConfigsRequest(
                resources=[resources(resource_type=2, resource_name=TOPIC, configuration_keys=None)] * 500,
                include_synonyms=True,
            ),
            4,
        ),
        (lambda: FindCoordinatorRequest(key_type=0, coordinator_keys=[f"g{at}" for at in range(5_000)]), 4),
        (
            lambda: CreateTopicsRequest(
                topics=[
                    topics(name=f"n{at}", num_partitions=1, replication_factor=1, assignments=[], configs=[])
                    for at in range(1_000)
                ],
                timeout_ms=30_000,
                validate_only=True,
            ),
            7,
        ),
    ]
