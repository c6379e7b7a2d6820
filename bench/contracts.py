"""Measure what a topic's contract costs: librdkafka produces the same records at each level of
`ottla.schema.validation`.
"""

from __future__ import annotations

from bench import avro_records
from bench.ground import Ground
from bench.spark.turns import Length, Say, Taken
from bench.subject import Cost
from bench.workloads import PARTITIONS
from ottla.client.blocking.blocking import Blocking

LEVELS = ("none", "id", "full")


def contracts(ground: Ground, length: Length, say: Say) -> dict[str, Taken]:
    """The figures by level. Rounds alternate between levels, and the first rounds do not count."""
    values = {}
    with Blocking(ground.subject.bootstrap) as client:
        for level in LEVELS:
            client.admin.topics.create(_topic(level), PARTITIONS, configs={"ottla.schema.validation": level})
            values[level] = avro_records.values(ground.register(_topic(level), avro_records.SCHEMA_TEXT))
    found: dict[str, Taken] = {level: {"records_per_s": [], "cpu_us": []} for level in LEVELS}
    for round_ in range(length.warm_up + length.rounds):
        for level in LEVELS:
            say(f"contracts: {level}, {length.name(round_)}")
            with Cost(ground.subject) as cost:
                avro_records.produce(ground.subject.bootstrap, _topic(level), values[level], length.records)
            if round_ >= length.warm_up:
                found[level]["records_per_s"].append(length.records / cost.wall_s)
                found[level]["cpu_us"].append(1e6 * cost.cpu_s / length.records)
    return found


def _topic(level: str) -> str:
    return f"contract-{level}"
