"""Running the CLI in this process: `ottla(...)` against a broker of the test's own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from typer.testing import CliRunner

from ottla.cli.app import app
from ottla.testing.broker import EmbeddedBroker


class Run:
    """What one command did."""

    def __init__(self, result: Any) -> None:
        self.code = result.exit_code
        self.out = result.stdout
        self.err = result.stderr

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return [line for line in self.out.splitlines() if line]


def invoke(*arguments: str, stdin: str | bytes | None = None, env: dict[str, str] | None = None) -> Run:
    from ottla.cli.terminal import output

    output._console.cache_clear()  # consoles hold on to the streams of the run that made them
    result = CliRunner().invoke(app, list(arguments), input=stdin, env=env)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Run(result)


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command in a process of its own, which does not outlive the test."""
    words = [sys.executable, "-m", "ottla", *arguments]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def ottla(ottla_broker: EmbeddedBroker) -> Callable[..., Run]:
    """Run a command against a node that is up."""

    def run(*arguments: str, stdin: str | bytes | None = None, code: int = 0) -> Run:
        done = invoke(*arguments, stdin=stdin, env={"OTTLA_BOOTSTRAP": ottla_broker.bootstrap})
        assert done.code == code, f"exit code {done.code}\n{done.out}\n{done.err}"
        return done

    return run
