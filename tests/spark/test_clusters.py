"""The same job wherever Spark runs: on the executors of a standalone cluster, and on a Connect server. And what only a
cluster does: executors die, stages are retried, attempts are speculative."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.spark.copying import Job
from tests.support.processes.node import OttlaNode
from tests.support.spark import sessions as sparks
from tests.support.spark.steps import ancestors, command_of, environment_of

from ottla.client.blocking.blocking import Blocking
from ottla.spark.sink.faults import FaultPoint

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


SPECULATION = (
    "spark.speculation=true",
    "spark.speculation.interval=100ms",
    "spark.speculation.multiplier=1.1",
    "spark.speculation.quantile=0.5",
)


def test_attempts_of_a_task_that_run_at_the_same_time(
    master: Callable[[str], str], node: OttlaNode, tmp_path: Path
) -> None:
    """An executor dies, and shuffle files with it: the stage is retried, while one of its tasks has written and not
    said so yet. Then a task is so slow that Spark starts another attempt of it. The query does not even fail."""
    copy = Job(tmp_path, node.bootstrap, 3)
    try:
        for step in (FaultPoint.TASK_BEGUN, FaultPoint.TASK_FLUSHED):
            copy.steps.arm(step)
        steps = f"spark.executorEnv.OTTLA_SPARK_STEPS={copy.directory / 'steps'}"
        driver = copy.start(master("standalone"), steps, *SPECULATION)
        dies, survives = copy.waits_at(FaultPoint.TASK_BEGUN, driver), copy.waits_at(FaultPoint.TASK_FLUSHED, driver)
        (index,) = {int(name.split("/")[3]) for name in _transactions(node, copy, "Ongoing")}
        os.kill(_executor(dies), signal.SIGKILL)
        copy.steps.kill(FaultPoint.TASK_BEGUN, dies)
        _lose_shuffle_files(_executor(survives))
        # Tasks of the retried stage begin one after the other, in the executor that took the dead one's place.
        copy.steps.arm(FaultPoint.TASK_BEGUN)
        sibling = copy.waits_at(FaultPoint.TASK_BEGUN, driver)
        if index == 1:
            copy.steps.arm(FaultPoint.TASK_BEGUN)
            copy.steps.release(FaultPoint.TASK_BEGUN, sibling)
            sibling = copy.waits_at(FaultPoint.TASK_BEGUN, driver)
        copy.steps.arm(FaultPoint.COMMIT_DONE)
        copy.steps.release(FaultPoint.TASK_FLUSHED, survives)
        pid = copy.waits_at(FaultPoint.COMMIT_DONE, driver)
        copy.steps.kill(FaultPoint.TASK_BEGUN, sibling)
        copy.steps.arm(FaultPoint.TASK_FLUSHED)
        copy.steps.release(FaultPoint.COMMIT_DONE, pid)
        copy.waits_at(FaultPoint.TASK_FLUSHED, driver)  # this one is too slow
        copy.finish(driver)
        assert "Lost executor" in driver.output
        assert "failed:" not in driver.output
        names = [name.split("/")[3:] for name in _transactions(node, copy)]
        assert any(name[:2] == [str(index), "0"] and len(name) == 3 for name in names), "no stage was retried"
        assert any(name[1:] == ["1"] for name in names), "nothing was speculative"
    finally:
        copy.close()


def _executor(pid: int) -> int:
    """The executor that a Python process works for."""
    (found,) = [each for each in ancestors(pid) if "CoarseGrainedExecutorBackend" in command_of(each)]
    return found


def _lose_shuffle_files(executor: int) -> None:
    for directory in environment_of(executor)["SPARK_EXECUTOR_DIRS"].split(":"):
        for file in Path(directory).rglob("shuffle_*"):
            file.unlink()


def _transactions(node: OttlaNode, job: Job, *states: str) -> list[str]:
    """The transactional ids of the job's tasks."""
    with Blocking(node.bootstrap) as client:
        found = [each.transactional_id for each in client.admin.transactions.all(states=states)]
    return [name for name in found if name.startswith(f"ottla-spark/{job.sink}/task/")]
