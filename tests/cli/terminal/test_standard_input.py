"""Commands that ask, or read, on standard input: an answer that is no, none at all, and an input that is closed."""

from __future__ import annotations

import builtins
import io
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from tests.cli.conftest import Run

from ottla import __main__
from ottla.cli.terminal import consent, outlet
from ottla.operations.errors import CommandError

Cli = Callable[..., Run]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_consent_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for answer in ("n\n", "", "\n", "what\n", "nyes\n"):
        monkeypatch.setattr(sys, "stdin", Terminal(answer))
        with pytest.raises(CommandError, match="nothing was done: the answer was not yes"):
            consent.ask("Delete t?", yes=False)
        assert "Delete t? [y/N]: " in capsys.readouterr().err
    for answer in ("y\n", " Yes\n", "y"):
        monkeypatch.setattr(sys, "stdin", Terminal(answer))
        consent.ask("Delete t?", yes=False)


def test_without_a_terminal_only_yes_is_consent(ottla: Cli) -> None:
    ottla("topic", "create", "t")
    for answer in ("y\n", "", "n\n"):
        refused = ottla("topic", "delete", "t", stdin=answer, code=1)
        error, hint = refused.err.splitlines()
        assert "Delete t with all records? Nothing was done" in error and hint.startswith("hint: --yes")
    assert "deleted topic t" in ottla("topic", "delete", "t", "--yes").err


def test_a_closed_input_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    outlet.install()
    assert sys.stdin.buffer.read() == b"" and not sys.stdin.isatty()
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        stream.close()


def test_a_command_without_standard_input() -> None:
    script = f'exec "{sys.executable}" -m ottla sql - <&-'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1 and done.stderr.startswith("error: the query is empty")


def test_ctrl_c_during_imports_is_a_quiet_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def interrupted(name: str, *rest: Any) -> Any:
        if name.startswith("ottla"):
            raise KeyboardInterrupt
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", interrupted)
    with pytest.raises(SystemExit) as end:
        __main__.main()
    assert end.value.code == 130
