"""A job of exactly-once tests: a driver copies files to a topic, and its processes stop at named steps."""

import json
from pathlib import Path

from tests.support.spark import sessions as sparks
from tests.support.spark.steps import Steps

from ottla.client.blocking.blocking import Blocking
from ottla.client.consumer.ranges import ReadOptions
from ottla.spark.sink.faults import FaultPoint
from ottla.spark.sink.transactions import sink_name

ROWS = 60  # in a batch
PROGRAM = Path(__file__).parent / "drivers" / "exactly_once.py"


class Job:
    """Files to copy, the topic they go to, and the driver that does it."""

    def __init__(self, directory: Path, bootstrap: str, batches: int) -> None:
        self.directory = directory
        self.bootstrap = bootstrap
        self.topic = f"copy-{directory.name}"
        self.sink = sink_name(str(directory / "checkpoint"))
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

    def waits_at(self, step: FaultPoint, driver: sparks.Process) -> int:
        """Until a process of the driver's waits at the step."""
        return self.steps.wait(step, lambda: _check_alive(driver, step))

    def finish(self, driver: sparks.Process) -> None:
        """The driver ends by itself, and has written every row, once."""
        assert driver.wait(300) == 0, driver.output[-4_000:]
        self.check()

    def check(self) -> None:
        """Every row, once."""
        with Blocking(self.bootstrap) as client:
            options = ReadOptions(read_committed=True)
            found = [record.value.decode() for record in client.read(self.topic, options=options) if record.value]
        assert sorted(found, key=int) == self.expected


def _check_alive(driver: sparks.Process, step: FaultPoint) -> None:
    assert driver.poll() is None, f"the driver ended before {step.value}:\n{driver.output[-3_000:]}"
