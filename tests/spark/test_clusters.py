"""The same job wherever Spark runs: on the executors of a standalone cluster, and on a Connect server."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import spark as sparks
from tests.support.node import OttlaNode

from ottla.client.blocking import Blocking

pytestmark = [pytest.mark.spark, pytest.mark.slow]
DRIVER = Path(__file__).parent / "drivers" / "round_trip.py"


@pytest.fixture
def master(elsewhere: Callable[[str], Any]) -> Callable[[str], str]:
    """Where a Spark of that kind is."""

    def find(kind: str) -> str:
        found = elsewhere(kind)
        return str(found.remote if kind == "connect" else found.master)

    return find


@pytest.mark.parametrize("kind", ["standalone", "connect"])
def test_a_job_runs_there(kind: str, master: Callable[[str], str], node: OttlaNode, tmp_path: Path) -> None:
    topic = f"job-{kind}"
    with Blocking(node.bootstrap) as client:
        for name in (topic, f"{topic}-copy"):
            client.admin.topics.create(name, partitions=4)
        process = sparks.driver(
            DRIVER,
            master(kind),
            node.bootstrap,
            topic,
            str(tmp_path / "checkpoint"),
            log_path=tmp_path / "driver.log",
            env={"PYTHONPATH": str(Path(__file__).parents[2])},
        )
        assert process.wait(500) == 0, process.output[-4000:]
        line = next(line for line in process.output.splitlines() if line.startswith("FOUND "))
        total = sum(range(5_000))
        assert json.loads(line.removeprefix("FOUND ")) == {
            "rows": 5_000,
            "headers": total,
            "copied": 5_000,
            "distinct": 5_000,
            "sum": 2 * total,
            "same_partitions": 50,
        }
        assert len(list((tmp_path / "checkpoint" / "commits").glob("[0-9]*"))) == 3  # of 2,000 records and fewer
        assert (tmp_path / "checkpoint.died").exists() == (kind == "standalone")  # an executor, in the middle of one
        lags = client.admin.groups.lag(f"spark-copy-{topic}")
        assert {each.records for each in lags} == {0} and len(lags) == 4
