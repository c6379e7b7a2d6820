"""Small transactions, one after the other: the cost of exactly-once in a consume-transform-produce loop."""

from __future__ import annotations

import statistics
import time

from confluent_kafka import Producer

from bench import probe
from bench.subject import Cost, Subject
from bench.workloads import Figures, Scale

TOPIC = "transactions"
PARTITIONS = 2
RECORDS_PER_TRANSACTION = 4
TIMEOUT_S = 60.0


def transactions(subject: Subject, scale: Scale, round_: int) -> Figures:
    """librdkafka: begin, four records into two partitions, commit; again and again."""
    count = scale.single_records // 50
    if round_ < 0:
        probe.create_topics(subject.bootstrap, [TOPIC], PARTITIONS)
    producer = Producer(
        {
            "bootstrap.servers": subject.bootstrap,
            "transactional.id": f"bench-{round_}",
            "linger.ms": 0,
            "log_level": 3,  # do not log that a coordinator is still loading
        }
    )
    producer.init_transactions(TIMEOUT_S)
    took_ms = []
    with Cost(subject) as cost:
        for _ in range(count):
            begun = time.perf_counter()
            producer.begin_transaction()
            for at in range(RECORDS_PER_TRANSACTION):
                producer.produce(TOPIC, b"v" * 100, partition=at % PARTITIONS)
            producer.commit_transaction(TIMEOUT_S)
            took_ms.append(1000 * (time.perf_counter() - begun))
    return {
        "p50_ms": statistics.median(took_ms),
        "p99_ms": statistics.quantiles(took_ms, n=100)[98],
        "per_s": count / cost.wall_s,
        "ms_per_transaction": 1000 * cost.wall_s / count,
        "cpu_ms_per_transaction": 1000 * cost.cpu_s / count,
    }
