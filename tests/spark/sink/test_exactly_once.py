"""Exactly once, with real Sparks: processes are killed at every step of the protocol, and every row is seen once."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.spark.copying import Job
from tests.support.processes.kafka import SINGLE_NODE, RealKafka
from tests.support.processes.node import OttlaNode

from ottla.client.blocking.blocking import Blocking
from ottla.spark.sink.faults import FaultPoint

# Each test starts several drivers, one after the other; their own limits say what took too long.
pytestmark = [pytest.mark.spark]


@pytest.fixture
def job(tmp_path: Path, node: OttlaNode, spark_tools: None) -> Iterator[Callable[[int], Job]]:
    jobs: list[Job] = []

    def make(batches: int) -> Job:
        jobs.append(Job(tmp_path, node.bootstrap, batches))
        return jobs[-1]

    yield make
    for each in jobs:
        each.close()


@pytest.fixture
def fragile(tmp_path: Path) -> Iterator[OttlaNode]:
    """A node to be killed."""
    often = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}  # is looked what timed out
    node = OttlaNode(tmp_path / "node", properties=SINGLE_NODE | often).start()
    yield node
    node.kill()


def test_processes_killed_at_every_step(job: Callable[[int], Job]) -> None:
    """Whoever does the step is killed just there, and the query starts again; all steps, one after the other."""
    copy = job(len(FaultPoint) + 2)
    driver = None
    for step in FaultPoint:
        copy.steps.arm(step)
        driver = driver or copy.start()
        copy.steps.kill(step, copy.waits_at(step, driver))
    assert driver is not None
    copy.finish(driver)
    assert driver.output.count("failed:") >= len(FaultPoint) - 1, "the kills were not noticed"
    assert "were lost" not in driver.output, "Spark's abort after a failed commit has ended what was decided"


def test_drivers_killed_and_a_driver_that_comes_back(job: Callable[[int], Job]) -> None:
    """Two drivers die with all they started. A third one is only slow: it finds that a fourth has done its work."""
    copy = job(5)
    for step in (FaultPoint.TASK_FLUSHED, FaultPoint.COMMIT_ONE_ENDED):
        copy.steps.arm(step)
        driver = copy.start()
        pid = copy.waits_at(step, driver)
        driver.kill()
        copy.steps.kill(step, pid)
    copy.steps.arm(FaultPoint.COMMIT_BEGUN)
    (copy.directory / "stop").touch()
    slow = copy.start()
    pid = copy.waits_at(FaultPoint.COMMIT_BEGUN, slow)
    copy.finish(copy.start())
    copy.steps.release(FaultPoint.COMMIT_BEGUN, pid)
    assert slow.wait(120) == 3, slow.output[-4_000:]
    assert "another driver has taken over the sink" in slow.output
    copy.check()


def test_brokers_killed_and_transactions_that_time_out(tmp_path: Path, fragile: OttlaNode, spark_tools: None) -> None:
    copy = Job(tmp_path, fragile.bootstrap, 6)
    try:
        driver = None
        for step in (
            FaultPoint.TASK_WRITTEN,
            FaultPoint.COMMIT_WRITTEN,
            FaultPoint.COMMIT_DECIDED,
            FaultPoint.COMMIT_ENDED,
        ):
            copy.steps.arm(step)
            driver = driver or copy.start("local[2]", "kafka.transaction.timeout.ms=15000")
            pid = copy.waits_at(step, driver)
            fragile.kill()
            fragile.start()
            copy.steps.release(step, pid)
        # The batch is decided, but before the driver can commit its transactions their time is over.
        assert driver is not None
        copy.steps.arm(FaultPoint.COMMIT_DECIDED)
        pid = copy.waits_at(FaultPoint.COMMIT_DECIDED, driver)
        _wait_until_nothing_is_open(fragile)
        copy.steps.release(FaultPoint.COMMIT_DECIDED, pid)
        copy.finish(driver)
        assert "ended before they were committed" in driver.output
    finally:
        copy.close()


def _wait_until_nothing_is_open(node: OttlaNode) -> None:
    with Blocking(node.bootstrap) as client:
        deadline = time.monotonic() + 90
        while client.admin.transactions.all(states=["Ongoing"]):
            assert time.monotonic() < deadline, "transactions do not time out"
            time.sleep(0.2)


@pytest.mark.compat
def test_processes_killed_against_a_real_kafka(tmp_path: Path, real_kafka: RealKafka, spark_tools: None) -> None:
    copy = Job(tmp_path, real_kafka.bootstrap, 6)
    try:
        driver = None
        for step in (
            FaultPoint.TASK_FLUSHED,
            FaultPoint.COMMIT_WRITTEN,
            FaultPoint.COMMIT_ONE_ENDED,
            FaultPoint.COMMIT_ENDED,
        ):
            copy.steps.arm(step)
            driver = driver or copy.start()
            copy.steps.kill(step, copy.waits_at(step, driver))
        assert driver is not None
        copy.finish(driver)
    finally:
        copy.close()
