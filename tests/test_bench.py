"""What the benchmark does with its figures; the workloads themselves are run by `make bench`."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import fastavro
import pytest
from bench import avro_records, contract_report, loop_turns, metrics, one_broker, report
from bench.spark import report as spark_report
from bench.spark.turns import Length, tree_cpu_s

from ottla.schemas.framing import unframe


def jobs(**cpu_s: list[float]) -> dict[str, dict[str, list[float]]]:
    """Whose rows per second are what their CPU time allows."""
    return {job: {"cpu_s": taken, "rows_per_s": [1e6 / each for each in taken]} for job, taken in cpu_s.items()}


def all_samples() -> dict[str, dict[str, dict[str, list[float]]]]:
    return {
        "spark_read": jobs(connector=[9.0, 4.0, 5.0], connector_tuned=[3.0], ottla=[2.0]),
        "spark_avro": jobs(connector=[4.0], connector_tuned=[3.0], ottla=[2.0], ottla_value=[1.0]),
        "spark_write": jobs(noop=[0.1], connector=[2.0], connector_tuned=[1.0], ottla=[2.0], ottla_exactly_once=[4.0]),
        "contracts": {
            "none": {"cpu_us": [0.5, 0.5, 7.0], "records_per_s": [3.0, 1.0, 2.0]},
            "full": {"cpu_us": [5.0, 6.0, 4.0], "records_per_s": [1.0, 1.0, 1.0]},
        },
    }


def test_spark_jobs_are_compared_by_their_medians() -> None:
    found = spark_report.rows(all_samples(), {name: length.records for name, length in one_broker.FULL.items()})
    assert len(found) == len(spark_report.COMPARED)
    default, tuned, *_, exactly_once = found
    assert (default.speed, default.thrift, default.goal) == (2.5, 2.5, 2.0)
    assert (tuned.speed, tuned.thrift, tuned.goal) == (1.5, 1.5, 1.3)
    assert default.theirs_cpu_s == 2.5  # of two million rows
    assert (exactly_once.thrift, exactly_once.goal) == (0.5, None)


def test_contracts_are_compared_with_none() -> None:
    none, full = contract_report.rows(all_samples()["contracts"])
    assert none == ("none", 2.0, 0.5, 0.0, 1.0)
    assert full == ("full", 1.0, 5.0, 4.5, 10.0)


def test_metrics_are_compared_in_pairs() -> None:
    found = {"without": {"load": [1.0, 2.0, 3.0]}, "with": {"load": [1.01, 2.04, 6.0]}}
    assert metrics.rows(found) == [("load", "2.00", "2.04", "1.020", "≤ 1.03")]
    assert metrics.rows({}) == []


def test_turns_count_by_their_length() -> None:
    """A moment falls into a long turn more often than into a short one."""
    assert loop_turns.longest_but([1.0] * 90 + [10.0], 0.01) == 10.0
    assert loop_turns.longest_but([1.0] * 990 + [10.0], 0.01) == 1.0
    assert loop_turns.longest_but([], 0.01) == 0.0


def test_only_whole_sections_are_documented() -> None:
    samples = all_samples()
    whole = one_broker.Findings.of(samples, one_broker.FULL).sections("Last run: today.")
    assert list(whole) == ["spark", "contracts"]
    assert any("2,000,000 rows" in line for line in whole["spark"][0].splitlines())
    assert sum(line.startswith("| ") for line in whole["spark"]) == 1 + len(spark_report.COMPARED)
    del samples["spark_avro"], samples["contracts"]
    assert one_broker.Findings.of(samples, one_broker.FULL).sections("Last run: today.") == {}


@pytest.mark.parametrize("section", ["bench", "clients", "spark", "contracts"])
def test_every_section_has_its_place_in_the_document(section: str) -> None:
    text = report.DOCUMENT.read_text()
    changed = report.between(text, section, ["| new |"])
    assert "| new |" in changed and report.between(changed, section, ["| new |"]) == changed
    with pytest.raises(AssertionError, match="no place for"):
        report.between(text, "nothing", [])


def test_records_have_their_size_and_are_readable() -> None:
    for number in (0, 1, 63, 64, 9_999, avro_records.DIFFERENT - 1):
        value = avro_records.value(7, number)
        assert len(value) == avro_records.RECORD_BYTES
        framed = unframe(value)
        assert framed.schema_id == 7
        read = fastavro.schemaless_reader(io.BytesIO(value[framed.payload_begin :]), avro_records.SCHEMA)
        assert read["id"] == number and (read["note"] is None) == (number % 3 == 0)


def test_cpu_time_is_that_of_the_tree_without_some() -> None:
    burn = "import time, sys\nwhile time.process_time() < 0.3: pass\nprint(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline()
        apart = tree_cpu_s(os.getpid(), [child.pid])
        assert tree_cpu_s(child.pid) >= 0.25
        assert tree_cpu_s(os.getpid()) >= apart + 0.25
        child.communicate(b"")


def test_rounds_are_named() -> None:
    assert [Length(1, rounds=2, warm_up=1).name(round_) for round_ in range(3)] == [
        "warm up",
        "round 1 of 2",
        "round 2 of 2",
    ]
