"""Commands whose output nobody reads, or that cannot be written."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Run, invoke
from tests.support.waiting import WAIT_S

from ottla.cli.terminal.outlet import Outlet, UnreadError
from ottla.testing.broker import EmbeddedBroker

TIMEOUT_S = 120


def deaf(broker: EmbeddedBroker, *arguments: str, both: bool = False, stdin: bytes = b"") -> int:
    """Runs a command with a pipe as its stdout (or stderr, too) that nobody reads any more; its exit code."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        return subprocess.run(
            [sys.executable, "-m", "ottla", *arguments],
            input=stdin,
            stdout=writing,
            stderr=writing if both else subprocess.DEVNULL,
            env=os.environ | {"OTTLA_BOOTSTRAP": broker.bootstrap, "PYTHONUNBUFFERED": "1"},
            timeout=TIMEOUT_S,
            check=False,
        ).returncode
    finally:
        os.close(writing)


def ask(broker: EmbeddedBroker, *arguments: str) -> Run:
    return invoke(*arguments, env={"OTTLA_BOOTSTRAP": broker.bootstrap})


def test_changes_are_finished(ottla_broker: EmbeddedBroker) -> None:
    assert deaf(ottla_broker, "topic", "create", "t", "--partitions", "3", both=True) == 0
    assert deaf(ottla_broker, "produce", "t", both=True, stdin=b"one\ntwo\nthree\n") == 0
    assert deaf(ottla_broker, "topic", "alter", "t", "retention.ms=1234", both=True) == 0
    described = ask(ottla_broker, "topic", "describe", "t", "--json").json[0]
    assert len(described["partitions"]) == 3 and described["settings"]["retention.ms"]
    assert len(ask(ottla_broker, "consume", "t").lines) == 3


def test_a_failure_is_still_one(ottla_broker: EmbeddedBroker) -> None:
    assert deaf(ottla_broker, "topic", "delete", "nothing", "--yes", both=True) == 1
    assert deaf(ottla_broker, "topic", "describe", "nothing", "--json", both=True) == 1


def test_whoever_only_reads_stops(ottla_broker: EmbeddedBroker) -> None:
    ask(ottla_broker, "topic", "create", "t")
    ask(ottla_broker, "produce", "t", "one")
    assert deaf(ottla_broker, "consume", "t", "--follow", "--from-beginning") == 0, "it would never end otherwise"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_output_that_cannot_be_written_is_told_when_all_is_done(ottla_broker: EmbeddedBroker) -> None:
    with open("/dev/full", "wb", buffering=0) as full:
        done = subprocess.run(
            [sys.executable, "-m", "ottla", "topic", "list", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=os.environ | {"OTTLA_BOOTSTRAP": ottla_broker.bootstrap},
            timeout=TIMEOUT_S,
            check=False,
            text=True,
        )
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "error: the output could not be written: No space left on device"


def test_an_outlet_falls_silent() -> None:
    reading, writing = os.pipe()
    outlet = Outlet(writing)
    stream = io.TextIOWrapper(io.BufferedWriter(outlet), line_buffering=True)
    stream.write("one\n")
    assert os.read(reading, 100) == b"one\n"
    os.close(reading)
    for _ in range(3):
        stream.write("two\n")
    assert isinstance(outlet.failure, BrokenPipeError)
    os.close(writing)


def test_an_outlet_that_stops_does_so_once() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    outlet = Outlet(writing)
    outlet.stops = True
    with pytest.raises(UnreadError):
        outlet.write(b"x")
    assert outlet.write(b"x") == 1, "the interpreter's last flush is no second error"
    os.close(writing)


def test_a_reader_that_goes_away_is_no_error() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "ottla", "wire", "show", "Fetch", "18"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(WAIT_S) == 0
