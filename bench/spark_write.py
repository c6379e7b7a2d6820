"""Writing out of Spark: the sink `ottla` against Spark's own connector, same session, same rows, acks=all.

CPU-seconds are those of the driver's process tree (JVM and Python workers; the broker is not in it) and are the figure
to trust. The rows are cached, and `noop` (Spark's sink that does nothing) shows what they cost by themselves. Writers
take turns, and the JVM's first rounds do not count: its compiler is not what is measured.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support import spark as sparks

from bench import probe
from bench.spark_read import Reading, tree_cpu_s
from bench.subject import Ottla, Subject
from bench.workloads import PARTITIONS, Figures
from ottla.client.blocking import Blocking
from ottla.client.offsets import LATEST, resolve
from ottla.model.ids import TopicPartition

RECORD_BYTES = 100
TOPIC = "spark-write"
TUNED = {"kafka.batch.size": str(256 << 10), "kafka.linger.ms": "20"}
WRITERS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "noop": ("noop", {}),
    "connector": ("kafka", {}),
    "connector_tuned": ("kafka", TUNED),
    "ottla": ("ottla", {"delivery": "at_least_once"}),
    "ottla_exactly_once": ("ottla", {"delivery": "exactly_once"}),
}


def write(session: Any, subject: Subject, rows: Any, writer: str, records: int) -> Reading:
    """All rows, once; what arrived is counted."""
    kind, options = WRITERS[writer]
    given = {} if kind == "noop" else {"kafka.bootstrap.servers": subject.bootstrap, "topic": TOPIC, **options}
    before = _end(subject)
    cpu_s, begun = tree_cpu_s(os.getpid(), [subject.pid]), time.perf_counter()
    rows.write.format(kind).mode("overwrite" if kind == "noop" else "append").options(**given).save()
    wall_s = time.perf_counter() - begun
    taken = Reading(wall_s, tree_cpu_s(os.getpid(), [subject.pid]) - cpu_s)
    arrived = _end(subject) - before
    # The end of a transaction takes an offset of each partition and task.
    assert kind == "noop" or 0 <= arrived - records <= PARTITIONS * rows.rdd.getNumPartitions(), arrived
    return taken


def _end(subject: Subject) -> int:
    """Offsets of the topic so far."""
    with Blocking(subject.bootstrap) as client:
        places = [(TopicPartition(TOPIC, index), LATEST) for index in range(PARTITIONS)]
        return sum(client.run(resolve(client.cluster, places)).values())


def measure(subject: Subject, records: int, rounds: int, warm_up: int = 2) -> Figures:
    """Medians by writer, and how many times the connector's CPU time ours is contained in."""
    probe.create_topics(subject.bootstrap, [TOPIC], PARTITIONS)
    found: dict[str, list[Reading]] = {name: [] for name in WRITERS}
    with tempfile.TemporaryDirectory() as directory:
        session = sparks.start_session(
            name="bench",
            **{"spark.driver.memory": "2g", "spark.local.dir": directory, "spark.sql.warehouse.dir": directory},
        )
        try:
            rows = session.range(0, records, 1, PARTITIONS).selectExpr(
                "cast(id % 1000 as string) as key",
                f"cast(rpad(cast(id as string), {RECORD_BYTES}, 'x') as binary) as value",
            )
            rows = rows.cache()
            assert rows.count() == records
            for round_ in range(warm_up + rounds):
                for name in WRITERS:
                    taken = write(session, subject, rows, name, records)
                    print(f"  {round_} {name:20} {taken.cpu_s:6.2f} CPU-s {taken.wall_s:6.2f} s", file=sys.stderr)
                    if round_ >= warm_up:
                        found[name].append(taken)
        finally:
            sparks.stop_session(session)
    figures: Figures = {}
    for name, writings in found.items():
        figures[f"{name}_cpu_s"] = statistics.median(each.cpu_s for each in writings)
        figures[f"{name}_krows_per_s"] = records / statistics.median(each.wall_s for each in writings) / 1000
    for name in ("connector", "connector_tuned"):
        figures[f"ahead_of_{name}"] = figures[f"{name}_cpu_s"] / figures["ottla_cpu_s"]
    return figures


def main() -> None:
    """This alone: `python -m bench.spark_write [records [rounds]]`."""
    records, rounds = (int(given) for given in [*sys.argv[1:], "1000000", "5"][:2])
    with tempfile.TemporaryDirectory() as directory:
        subject = Ottla(Path(directory))
        subject.launch()
        try:
            probe.until_acknowledged(subject.bootstrap, "first")
            for name, figure in measure(subject, records, rounds).items():
                print(f"{name:32} {figure:10.2f}")
        finally:
            subject.stop()


if __name__ == "__main__":
    main()
