"""`--log-format json`: every line of the log is an object, whatever is logged, by whichever process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ottla.testing.broker import EmbeddedBroker

ODD = ["--set", "listener.name.nobody.ssl.keystore.type=PEM"]  # every node warns of it
WARNED = "no listener has this name"


def lines_of(words: Sequence[str], until: str) -> list[dict[str, Any]]:
    """What a command writes to standard error from its start to its stop, which begins when it has printed a text."""
    command = [sys.executable, "-m", "ottla", *words, "--log-format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if until in line:
                break
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=120)
    lines = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    assert len(lines) == len(told.splitlines()), told
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    return lines


def test_a_node(tmp_path: Path) -> None:
    words = ["start", "--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0"]
    (warning,) = [each for each in lines_of([*words, *ODD], "ready") if WARNED in each["message"]]
    assert warning["level"] == "warning" and warning["do"] == "correct the name, or remove the settings"


def test_a_registry(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "data") as broker:
        words = ["registry", "-b", broker.bootstrap, "--listen", "127.0.0.1:0", "--replication-factor", "1"]
        assert lines_of(words, "ready")


@pytest.mark.parametrize(("words", "names"), [((), {""}), (("--controllers", "1"), {"node-1", "node-101"})])
def test_up(tmp_path: Path, words: Sequence[str], names: set[str]) -> None:
    """Lines of a cluster name their node, and those of a lone node do not."""
    up = ["up", "--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0", "--registry", "127.0.0.1:0"]
    told = [each for each in lines_of([*up, *words, *ODD], "Schema registry at") if WARNED in each["message"]]
    assert {each.get("node", "") for each in told} == names and len(told) == len(names)


def test_other_formats_are_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ottla", "up", "--data", str(tmp_path / "data"), "--log-format", "xml"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2 and "'xml' is none of plain, json" in done.stderr
