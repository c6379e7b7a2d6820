"""The benchmarks of Spark jobs and contracts: on one Ottla node with a registry, with all Spark jobs in one session."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from bench import contract_report
from bench.contracts import contracts
from bench.ground import ground
from bench.spark import report as spark_report
from bench.spark.avro import spark_avro
from bench.spark.read import spark_read
from bench.spark.turns import Length, Say, Stage, Taken, stage
from bench.spark.write import spark_write

Measured = dict[str, Taken]  # job or level → figure → one value a round

JOBS: dict[str, Callable[[Stage, Length, Say], Measured]] = {
    "spark_read": spark_read,
    "spark_avro": spark_avro,
    "spark_write": spark_write,
}
CONTRACTS = "contracts"
NAMES = (*JOBS, CONTRACTS)

Lengths = dict[str, Length]  # by workload
FULL: Lengths = {
    "spark_read": Length(2_000_000, rounds=5, warm_up=3),
    "spark_avro": Length(1_000_000, rounds=5, warm_up=3),
    "spark_write": Length(1_000_000, rounds=5, warm_up=3),
    CONTRACTS: Length(500_000, rounds=3, warm_up=1),
}
QUICK: Lengths = {
    "spark_read": Length(500_000, rounds=2, warm_up=2),
    "spark_avro": Length(300_000, rounds=2, warm_up=2),
    "spark_write": Length(300_000, rounds=2, warm_up=2),
    CONTRACTS: Length(100_000, rounds=1, warm_up=1),
}


def measure(wanted: Collection[str], lengths: Lengths, directory: Path, say: Say) -> Iterator[tuple[str, Measured]]:
    """Measure one workload after the other."""
    say("start Ottla and a registry")
    with ground(directory) as place:
        if CONTRACTS in wanted:
            yield CONTRACTS, contracts(place, lengths[CONTRACTS], say)
        jobs = [name for name in JOBS if name in wanted]
        if jobs:
            say("start Spark")
            with stage(place, directory) as where:
                for name in jobs:
                    yield name, JOBS[name](where, lengths[name], say)


@dataclass(frozen=True, slots=True)
class Findings:
    """The results to show and, if all of a section was measured, to write to docs/performance.md."""

    spark: spark_report.Rows
    contracts: contract_report.Rows
    lengths: Lengths

    @classmethod
    def of(cls, samples: spark_report.Samples, lengths: Lengths) -> Findings:
        records = {name: length.records for name, length in lengths.items()}
        return cls(spark_report.rows(samples, records), contract_report.rows(samples.get(CONTRACTS, {})), lengths)

    def show(self) -> None:
        spark_report.show(self.spark)
        contract_report.show(self.contracts)

    def sections(self, last_run: str) -> dict[str, list[str]]:
        """The sections of docs/performance.md."""
        found = {}
        if len(self.spark) == len(spark_report.COMPARED):
            read, avro, write = (self.lengths[name] for name in JOBS)
            introduction = spark_report.INTRODUCTION.format(
                version=version("pyspark"),
                read=read.records,
                avro=avro.records,
                write=write.records,
                warm_up=read.warm_up,
                rounds=read.rounds,
            )
            found["spark"] = spark_report.section(self.spark, introduction, "", last_run)
        if self.contracts:
            length = self.lengths[CONTRACTS]
            introduction = contract_report.INTRODUCTION.format(rounds=length.rounds, records=length.records)
            found["contracts"] = contract_report.section(self.contracts, introduction, "", last_run)
        return found
