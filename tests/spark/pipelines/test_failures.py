"""What a pipeline's user sees when things go wrong: one line in the output, the same in `status`, an exit code; and it
goes on by itself where that helps. A real Spark; the command runs in this process, in the session of all tests.

The texts of all other failures are in test_causes.py.
"""

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.columns.avro.cases import encoded
from tests.support.processes.node import OttlaNode
from tests.support.waiting import WAIT_S, until
from typer.testing import CliRunner

from ottla.cli.app import app
from ottla.cli.terminal import output
from ottla.client.blocking.blocking import Blocking
from ottla.client.consumer.fetching import ReadOptions
from ottla.client.registry import RegistryOptions, SchemaRegistry
from ottla.schemas.framing import schema_mark
from ottla.schemas.schema import SchemaSource
from ottla.spark import unwatch, watch
from ottla.spark.pipelines.definition import PipelineError
from ottla.spark.pipelines.status import Board, PipelineStatus
from ottla.testing.registry import Registry

pytestmark = [pytest.mark.spark]

HEAD = """
import os, signal, time
from pathlib import Path
from pyspark.sql import functions as F
from ottla.spark import pipeline, to, topic

def first_time(what):
    mark = Path("{directory}") / what
    return not mark.exists() and mark.write_text("") == 0

@pipeline.stream
def orders():
    return topic("{orders}").selectExpr("cast(key as string) key", "cast(value as string) value")
"""
# Each fails once: a service that does not answer, a worker that is killed.
PASSING = """
@F.udf
def asked(text):
    if first_time("asked"):
        raise ConnectionError("the price service does not answer")
    return text

@F.udf
def killed(text):
    if first_time("killed"):
        os.kill(os.getpid(), signal.SIGKILL)
    return text

@pipeline.query(output="{copies}")
def asking(orders):
    return orders.select(asked("value").alias("value"))

@pipeline.query(output="{copies2}")
def killing(orders):
    return orders.select(killed("value").alias("value"))
"""
LASTING = """
@F.udf
def priced(text):
    return price(text)

def price(text):
    if text == "2":
        raise ValueError(f"cannot price {{text}}")

@pipeline.query(output="{copies}")
def prices(orders):
    return orders.select(priced("value").alias("value"))
"""
COUNTS = """
@pipeline.query(output="{copies}", mode="update")
def counts(orders):
    return orders.groupBy("key").count().select("key", F.col("count").cast("string").alias("value"))
"""
HELD = """
@F.udf
def held(text):
    while Path("{directory}/hold").exists():
        time.sleep(0.05)
    return text

@pipeline.query(output="{copies}")
def slow(orders):
    return orders.select(held("value").alias("value"))
"""
TYPED = """
@pipeline.stream
def typed():
    return topic("{orders}", value="avro", registry="%s")

@pipeline.query(output="{copies}")
def ids(typed):
    return typed.selectExpr("cast(value.id as string) value")
"""


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    events: list[dict[str, Any]]
    errors: list[str]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in self.events if each["event"] == kind]


class Place:
    """A pipeline file over topics of its own, run by the command in this process."""

    def __init__(self, directory: Path, bootstrap: str, name: str, text: str) -> None:
        self.name = name
        self.bootstrap = bootstrap
        self.file = directory / f"{name}.py"
        self.topics = {each: f"{name}.{each}" for each in ("orders", "copies", "copies2")}
        with Blocking(bootstrap) as client:
            for topic in self.topics.values():
                client.admin.topics.create(topic, 1)
        self.write(text)

    def write(self, text: str) -> None:
        self.file.write_text((HEAD + text).format(directory=self.file.parent, **self.topics))

    def send(self, *values: int) -> None:
        with Blocking(self.bootstrap) as client:
            client.send_all(self.topics["orders"], [(b"k", b"%d" % each) for each in values])

    def ottla(self, *words: str) -> Any:
        output._console.cache_clear()  # consoles hold on to the streams of the run that made them
        return CliRunner().invoke(app, ["pipeline", *words, "--bootstrap", self.bootstrap])

    def run(self, *options: str) -> Done:
        found = self.ottla("run", str(self.file), "--json", *options)
        assert "Traceback" not in found.stderr, found.stderr
        events = [json.loads(line) for line in found.stdout.splitlines() if line.startswith("{")]
        short = found.stderr.replace(f"{self.file.parent}/", "")
        return Done(found.exit_code, events, [line for line in short.splitlines() if line.startswith("error: ")])

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ottla("status", self.name, "--json").stdout)
        return found

    def copies(self, topic: str = "copies") -> list[str]:
        with Blocking(self.bootstrap) as client:
            found = client.read(self.topics[topic], options=ReadOptions(read_committed=True))
            return [(each.value or b"").decode() for each in found]


Make = Callable[[str, str], Place]


@contextmanager
def in_session(spark: Any, bootstrap: str) -> Iterator[None]:
    from ottla.cli.pipeline import parts as pipeline_parts

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline_parts, "session", lambda *given, **named: nullcontext(spark))
        spark.conf.set("spark.ottla.bootstrap", bootstrap)
        yield


@pytest.fixture
def make(spark: Any, node: OttlaNode, tmp_path: Path) -> Iterator[Make]:
    with in_session(spark, node.bootstrap):
        yield lambda name, text: Place(tmp_path, node.bootstrap, name, text)


def test_a_pipeline_goes_on_after_errors_that_pass(make: Make) -> None:
    place = make("passing", PASSING)
    place.send(1, 2, 3)
    done = place.run("--once")
    assert (done.code, done.errors) == (0, []), done
    asking, killing = sorted(done.of("restarting"), key=lambda each: str(each["error"]))
    assert asking["error"] == (
        "passing-asking: ConnectionError: the price service does not answer "
        f"(at passing.py:{place.file.read_text().splitlines().index('def asked(text):') + 3} in asked; "
        "among offsets up to 2 of passing.orders-0)"
    )
    assert killing["error"].startswith(
        "passing-killing: a Python worker was killed, or crashed (among offsets up to 2 "
    )
    assert [(each["number"], each["limit"], each["in_seconds"]) for each in (asking, killing)] == [(1, 5, 1.0)] * 2
    assert [each["query"] for each in done.of("started")].count("passing-killing") == 2
    assert place.copies() == ["1", "2", "3"] and place.copies("copies2") == ["1", "2", "3"]
    status = place.status()
    assert (status["state"], status["error"], status["restarts"]) == ("stopped", None, 2)
    assert status["last_error"] in (asking["error"], killing["error"]) and status["last_error_ms"] > 0
    assert {each["query"]: each["total_rows"] for each in status["queries"]} == {
        "passing-asking": 3,
        "passing-killing": 3,
    }
    shown = place.ottla("status", place.name).stdout
    assert "queries were started again 2 times, last 20" in shown and status["last_error"] in shown


def test_what_could_pass_and_does_not_has_an_exit_code_of_its_own(make: Make) -> None:
    place = make("unasked", PASSING)
    place.send(1)
    done = place.run("--once", "--restarts", "0")
    assert (done.code, done.of("restarting")) == (75, [])
    (error,) = done.errors
    assert place.status()["error"].endswith(error.removeprefix("error: "))


def test_code_that_fails_ends_the_run_with_its_line_and_its_record(make: Make) -> None:
    place = make("lasting", LASTING)
    place.send(1, 2, 3)
    done = place.run("--once")
    lines = place.file.read_text().splitlines()
    query, raised = (lines.index(each) + 1 for each in ('@pipeline.query(output="lasting.copies")', "def price(text):"))
    error = (
        f"lasting.py:{query}: prices: ValueError: cannot price 2 (at lasting.py:{raised + 2} in price; "
        "the record at offset 1 of lasting.orders-0)"
    )
    assert (done.code, done.errors, done.of("restarting")) == (1, [f"error: {error}"], [])
    (failed,) = done.of("failed")
    status = place.status()
    assert (status["state"], status["restarts"]) == ("failed", 0)
    assert failed["error"] == status["error"] == f"{place.file.parent}/{error}"


def test_a_query_that_was_changed_does_not_fit_its_checkpoint(make: Make) -> None:
    place = make("changed", COUNTS)
    place.send(1)
    assert place.run("--once").code == 0
    place.write(COUNTS.replace('groupBy("key")', 'groupBy("key", "value")'))
    place.send(2)
    done = place.run("--once")
    (error,) = done.errors
    assert done.code == 1 and " counts: the query does not fit its checkpoint: [STATE_STORE_KEY_SCHEMA_NOT" in error
    assert error.endswith("; undo the change, or begin anew with --from, which uses new checkpoints")


def test_records_of_an_incompatible_schema_end_the_run_with_their_place(make: Make, node: OttlaNode) -> None:
    """Somebody writes with a schema of another subject, so no registry has refused it."""

    def send(client: Blocking, subject: str, of: str, *values: Any) -> None:
        schema = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": of}]}
        found = SchemaRegistry(RegistryOptions.of(registry.url)).register(subject, SchemaSource(json.dumps(schema)))
        client.send_all(topic, [(None, encoded(schema, {"id": each}, schema_mark(found))) for each in values])

    registry = Registry(node.bootstrap).start()
    try:
        place = make("schemas", TYPED % registry.url)
        topic = place.topics["orders"]
        with Blocking(node.bootstrap) as client:
            send(client, f"{topic}-value", "long", 1, 2)
            assert place.run("--once").code == 0
            send(client, f"{topic}-value", "long", 3)
            send(client, "schemas.other", "string", "four")
        done = place.run("--once")
    finally:
        registry.stop()
    line = place.file.read_text().splitlines().index('@pipeline.query(output="schemas.copies")') + 1
    error = (
        f"schemas.py:{line}: ids: the record at offset 3 of schemas.orders-0 does not decode: "
        "value: id: a string cannot be read as long; option on.bad says what becomes of such records"
    )
    assert (done.code, done.errors, done.of("restarting")) == (1, [f"error: {error}"], [])
    status = place.status()
    assert (status["state"], status["error"]) == ("failed", f"{place.file.parent}/{error}")
    assert error in place.ottla("status", place.name).stdout.replace(f"{place.file.parent}/", "")
    assert place.copies() == ["1", "2"], "nothing of the batch is written"


def test_a_disk_that_is_full_may_have_room_again(make: Make, tmp_path: Path) -> None:
    place = make("full", COUNTS)
    place.send(1)
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)], capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        ballast = small / "ballast"
        with suppress(OSError):
            ballast.write_bytes(bytes(1 << 20))
        done = place.run("--once", "--checkpoint", str(small / "checkpoint"), "--restarts", "1")
        assert done.code == 75 and len(done.of("restarting")) == 1
        (error,) = done.errors
        assert "counts: a disk is full: no space left on device; make room where the checkpoints are" in error
        assert error.endswith("; after 1 restart") and place.status()["state"] == "failed"
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


class Running:
    """A run without an end, in a thread of its own."""

    def __init__(self, place: Place, client: Blocking) -> None:
        from ottla.cli.pipeline import parts

        self.error: PipelineError | None = None
        self._events: list[dict[str, Any]] = []
        with parts.session("", None, None, [], "", None) as spark:
            loaded = parts.load(place.file)
            built = parts.build(loaded, spark)
        settings = parts.settings(str(place.file.parent / "checkpoints"))
        self.runner = parts.runner(loaded, spark, client, settings, place.file, self._events.append)
        self.runner.claim()
        self._thread = threading.Thread(target=self._run, args=(spark, built))
        self._thread.start()

    def _run(self, spark: Any, built: list[Any]) -> None:
        spark.createDataFrame([], "n int")  # so that the session is this thread's active one (docs/spark.md)
        try:
            self.runner.run(built)
        except PipelineError as error:
            self.error = error

    def said(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in self._events if each["event"] == kind]

    def wait(self) -> bool:
        self._thread.join(WAIT_S)
        return not self._thread.is_alive()


@contextmanager
def running(place: Place, client: Blocking) -> Iterator[Running]:
    run = Running(place, client)
    try:
        yield run
    finally:
        run.runner.request_stop()
        assert run.wait()


def test_a_run_without_a_finished_batch_says_so_and_how_far_it_is_behind(
    make: Make, spark: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """What the checkpoint knows is committed when the query starts."""
    place, hold = make("first", HELD), tmp_path / "hold"

    def told(phase: str, lag: int) -> bool:
        found = [(each.get("phase"), each["lag"]) for each in place.status()["queries"]]
        return found == [(phase, lag)]

    watch(spark)  # as a session of ours does
    request.addfinalizer(lambda: unwatch(spark))
    place.send(1)
    with Blocking(place.bootstrap) as client:
        with running(place, client) as run:
            until(lambda: run.said("progress"))
        place.send(2, 3)
        hold.touch()
        try:
            with running(place, client) as run:
                until(lambda: told("first batch running", 2))
                assert "first batch running" in place.ottla("status", place.name).stdout
                assert not run.said("progress")
                hold.unlink()
                until(lambda: run.said("progress"))
        finally:
            hold.unlink(missing_ok=True)
        with running(place, client) as run:
            until(lambda: told("waiting for data", 0))
            assert not run.said("progress")
    assert place.copies() == ["1", "2", "3"]


def test_a_topic_that_is_deleted_meanwhile_ends_the_run(make: Make) -> None:
    place = make("deleted", COUNTS)
    place.send(1)
    with Blocking(place.bootstrap) as client, running(place, client) as run:
        until(lambda: run.said("progress"))
        client.admin.topics.delete(place.topics["orders"])
        assert run.wait()
    assert run.error is not None and not run.error.passes
    assert "counts: data loss (topic_deleted): deleted.orders-0 is gone; it was read up to 1" in str(run.error)
    assert (place.status()["state"], place.status()["restarts"]) == ("failed", 0)


def test_a_broker_that_is_away_is_waited_for_and_another_run_takes_over(spark: Any, tmp_path: Path) -> None:
    own = OttlaNode(tmp_path / "node").start()
    try:
        with in_session(spark, own.bootstrap), Blocking(own.bootstrap) as client:
            place = Place(tmp_path, own.bootstrap, "away", COUNTS)
            impatient = '"away.orders", **{"kafka.default.api.timeout.ms": "2000"}'
            place.file.write_text(place.file.read_text().replace('"away.orders"', impatient))
            place.send(1)
            with running(place, client) as run:
                until(lambda: run.said("progress"))
                own.kill()
                until(lambda: run.said("waiting") and run.said("restarting"))
                assert run.said("waiting")[0]["error"].startswith(f"no connection to {own.bootstrap}")
                own.start()
                place.send(2)
                until(lambda: [each for each in run.said("progress") if each["total_rows"] == 2])
                status = until(place.status, lambda found: found["state"] == "running")
                assert status["restarts"] >= 1 and "no connection to" in status["last_error"]
                other = PipelineStatus("away", "another", "running", host="elsewhere", pid=7)
                Board(client).claim(other)  # as `run --force` does
                assert run.wait()
            assert str(run.error) == "another run of pipeline away has taken over, on elsewhere (process 7)"
            assert place.status()["state"] == "running"  # nothing is said of what is another's by now
            assert place.copies() == ["1", "2"]
    finally:
        own.kill()
