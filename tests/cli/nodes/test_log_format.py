"""`ottla start --log-format json`: every line of the log is an object, whatever is logged."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path


def test_every_line_is_json(tmp_path: Path) -> None:
    words = ["start", "--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0", "--log-format", "json"]
    odd = ["--set", "log.segment.bytes=1048576", "--set", "listener.name.nobody.ssl.keystore.type=PEM"]
    command = [sys.executable, "-m", "ottla", *words, *odd]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as node:
        assert node.stdout is not None
        assert node.stdout.readline()
        node.send_signal(signal.SIGTERM)
        _, told = node.communicate(timeout=120)
    lines = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    assert len(lines) == len(told.splitlines()), told
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    (warning,) = [line for line in lines if "no listener has this name" in line["message"]]
    assert warning["level"] == "warning" and warning["do"] == "correct the name, or remove the settings"
