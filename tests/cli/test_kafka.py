"""The CLI against a real Kafka, and its offline commands on a real Kafka's files."""

import json
from itertools import count

import pytest
from tests.cli.conftest import Run, invoke
from tests.support.processes.kafka import RealKafka

pytestmark = pytest.mark.compat

_names = (f"cli-{number}" for number in count())


def test_topics_records_and_configs(real_kafka: RealKafka) -> None:
    name = next(_names)

    def ottla(*arguments: str, stdin: str | None = None) -> Run:
        done = invoke(*arguments, stdin=stdin, env={"OTTLA_BOOTSTRAP": real_kafka.bootstrap})
        assert done.code == 0, done.err
        return done

    ottla("topic", "create", name, "-p", "2", "-c", "retention.ms=1000000")
    ottla("produce", name, "-K", ":", "-z", "zstd", stdin="".join(f"k{n}:v{n}\n" for n in range(100)))
    found = [json.loads(line) for line in ottla("consume", name, "-F", "json").lines]
    assert sorted(each["value"] for each in found) == sorted(f"v{n}" for n in range(100))
    (topic,) = ottla("topic", "describe", name, "--json").json
    assert sum(each["records"] for each in topic["partitions"]) == 100
    assert topic["settings"]["retention.ms"] == "1000000"
    assert ottla("config", "get", "topic", name, "--all", "--docs", "--json").json
    rows = {row["api"]: row for row in ottla("api", "--json").json}
    assert {row["note"] for row in rows.values()} <= {"", "not served"} and rows["JoinGroup"]["served"] == "0-9"
    rows_left = ottla("topic", "delete-records", name, "--all", "--yes", "--json").json
    assert sum(row["start"] for row in rows_left) == 100
    data = str(real_kafka.data_dir)
    assert any(row["partition"] == f"{name}-0" for row in invoke("log", "dump", data, "--json").json)
    for partition in (f"{name}-0", f"{name}-1", "__cluster_metadata-0"):
        lines = invoke("log", "dump", f"{data}/{partition}", "-r").lines
        assert lines and not any("PROBLEM" in line for line in lines)
        verdict = invoke("log", "verify", f"{data}/{partition}", "--json").json
        assert verdict["ok"], verdict["findings"]
    ottla("topic", "delete", name, "--yes")
