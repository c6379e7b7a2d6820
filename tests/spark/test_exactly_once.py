"""Exactly once, with real Sparks: processes are killed at every step of the protocol, and every row is seen once."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support import spark as sparks
from tests.support.kafka import SINGLE_NODE, RealKafka
from tests.support.node import OttlaNode
from tests.support.steps import Steps, ancestors, command_of

from ottla.client.blocking import Blocking
from ottla.client.ranges import ReadOptions
from ottla.spark.sink.faults import Step

# Each test starts several drivers, one after the other; their own limits say what took too long.
pytestmark = [pytest.mark.spark]

ROWS = 60  # in a batch
PROGRAM = Path(__file__).parent / "drivers" / "exactly_once.py"


class Job:
    """Files to copy, the topic they go to, and the driver that does it."""

    def __init__(self, directory: Path, bootstrap: str, batches: int) -> None:
        self.directory = directory
        self.bootstrap = bootstrap
        self.topic = f"copy-{directory.name}"
        self.steps = Steps(directory / "steps")
        self.expected = [str(number) for number in range(batches * ROWS)]
        self._started: list[sparks.Process] = []
        (directory / "in").mkdir()
        for batch in range(batches):
            numbers = range(batch * ROWS, (batch + 1) * ROWS)
            rows = [{"key": f"k{number % 7}", "value": str(number)} for number in numbers]
            (directory / "in" / f"{batch:03}.json").write_text("\n".join(map(json.dumps, rows)))
        with Blocking(bootstrap) as client:
            client.admin.topics.create(self.topic, 2)

    def start(self, master: str = "local[2]", *options: str) -> sparks.Process:
        log_path = self.directory / f"driver-{len(self._started)}.log"
        arguments = (master, self.bootstrap, self.topic, str(self.directory), *options)
        env = {**self.steps.env, "PYTHONPATH": str(Path(__file__).parents[2])}
        process = sparks.driver(PROGRAM, *arguments, log_path=log_path, env=env)
        self._started.append(process)
        return process

    def close(self) -> None:
        for process in self._started:
            process.kill()
        self.steps.close()

    def waits_at(self, step: Step, driver: sparks.Process) -> int:
        """Until a process of the driver's waits at the step."""
        return self.steps.wait(step, lambda: _check_alive(driver, step))

    def check(self) -> None:
        """Every row, once."""
        with Blocking(self.bootstrap) as client:
            options = ReadOptions(read_committed=True)
            found = [record.value.decode() for record in client.read(self.topic, options=options) if record.value]
        assert sorted(found, key=int) == self.expected


def _check_alive(driver: sparks.Process, step: Step) -> None:
    assert driver.poll() is None, f"the driver ended before {step.value}:\n{driver.output[-3_000:]}"


@pytest.fixture
def job(tmp_path: Path, node: OttlaNode, spark_tools: None) -> Iterator[Callable[[int], Job]]:
    jobs: list[Job] = []

    def make(batches: int) -> Job:
        jobs.append(Job(tmp_path, node.bootstrap, batches))
        return jobs[-1]

    yield make
    for each in jobs:
        each.close()


def finish(job: Job, driver: sparks.Process) -> None:
    assert driver.wait(300) == 0, driver.output[-4_000:]
    job.check()


@pytest.fixture
def fragile(tmp_path: Path) -> Iterator[OttlaNode]:
    """A node to be killed."""
    often = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}  # is looked what timed out
    node = OttlaNode(tmp_path / "node", properties=SINGLE_NODE | often).start()
    yield node
    node.kill()


def test_processes_killed_at_every_step(job: Callable[[int], Job]) -> None:
    """Whoever does the step is killed just there, and the query starts again; all steps, one after the other."""
    copy = job(len(Step) + 2)
    driver = None
    for step in Step:
        copy.steps.arm(step)
        driver = driver or copy.start()
        copy.steps.kill(step, copy.waits_at(step, driver))
    assert driver is not None
    finish(copy, driver)
    assert driver.output.count("failed:") >= len(Step) - 1, "the kills were not noticed"


def test_drivers_killed_and_a_driver_that_comes_back(job: Callable[[int], Job]) -> None:
    """Two drivers die with all they started. A third one is only slow: it finds that a fourth has done its work."""
    copy = job(5)
    for step in (Step.TASK_FLUSHED, Step.COMMIT_ONE_ENDED):
        copy.steps.arm(step)
        driver = copy.start()
        pid = copy.waits_at(step, driver)
        driver.kill()
        copy.steps.kill(step, pid)
    copy.steps.arm(Step.COMMIT_BEGUN)
    (copy.directory / "stop").touch()
    slow = copy.start()
    pid = copy.waits_at(Step.COMMIT_BEGUN, slow)
    finish(copy, copy.start())
    copy.steps.release(Step.COMMIT_BEGUN, pid)
    assert slow.wait(120) == 3, slow.output[-4_000:]
    assert "another producer uses the transactional id" in slow.output
    copy.check()


def test_brokers_killed_and_transactions_that_time_out(tmp_path: Path, fragile: OttlaNode, spark_tools: None) -> None:
    copy = Job(tmp_path, fragile.bootstrap, 6)
    try:
        driver = None
        for step in (Step.TASK_WRITTEN, Step.COMMIT_WRITTEN, Step.COMMIT_DECIDED, Step.COMMIT_ENDED):
            copy.steps.arm(step)
            driver = driver or copy.start("local[2]", "kafka.transaction.timeout.ms=15000")
            pid = copy.waits_at(step, driver)
            fragile.kill()
            fragile.start()
            copy.steps.release(step, pid)
        # The batch is decided, but before the driver can commit its transactions their time is over.
        assert driver is not None
        copy.steps.arm(Step.COMMIT_DECIDED)
        pid = copy.waits_at(Step.COMMIT_DECIDED, driver)
        _wait_until_nothing_is_open(fragile)
        copy.steps.release(Step.COMMIT_DECIDED, pid)
        finish(copy, driver)
        assert "ended before they were committed" in driver.output
    finally:
        copy.close()


def _wait_until_nothing_is_open(node: OttlaNode) -> None:
    with Blocking(node.bootstrap) as client:
        deadline = time.monotonic() + 90
        while client.admin.transactions.all(states=["Ongoing"]):
            assert time.monotonic() < deadline, "transactions do not time out"
            time.sleep(0.2)


def test_an_executor_is_killed(job: Callable[[int], Job]) -> None:
    """Executors in processes of their own; the job goes on, with another attempt of the task elsewhere."""
    copy = job(2)
    copy.steps.arm(Step.TASK_FLUSHED)
    driver = copy.start("local-cluster[2,1,1024]", f"steps={copy.directory / 'steps'}")
    pid = copy.waits_at(Step.TASK_FLUSHED, driver)
    (executor,) = [each for each in ancestors(pid) if "CoarseGrainedExecutorBackend" in command_of(each)]
    os.kill(executor, signal.SIGKILL)
    finish(copy, driver)
    assert "Lost executor" in driver.output
    assert "failed:" not in driver.output


@pytest.mark.compat
def test_processes_killed_against_a_real_kafka(tmp_path: Path, real_kafka: RealKafka, spark_tools: None) -> None:
    copy = Job(tmp_path, real_kafka.bootstrap, 6)
    try:
        driver = None
        for step in (Step.TASK_FLUSHED, Step.COMMIT_WRITTEN, Step.COMMIT_ONE_ENDED, Step.COMMIT_ENDED):
            copy.steps.arm(step)
            driver = driver or copy.start()
            copy.steps.kill(step, copy.waits_at(step, driver))
        assert driver is not None
        finish(copy, driver)
    finally:
        copy.close()
