"""`ottla api`, `ottla wire`, help and docs."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import Run, invoke

from ottla.cli.docs import render

Cli = Callable[..., Run]
ROOT = Path(__file__).resolve().parents[2]


def test_api(ottla: Cli) -> None:
    rows = {row["api"]: row for row in ottla("api", "--json").json}
    assert rows["Fetch"]["served"] == "4-18" and rows["Fetch"]["note"] == ""
    assert rows["JoinGroup"]["known"] == "0-9"
    missing = ottla("api", "--missing").lines
    assert len(missing) - 1 == sum(1 for row in rows.values() if row["note"])


def test_wire() -> None:
    assert "acks" in invoke("wire", "show", "produce", "9").out
    assert "throttle_time_ms" in invoke("wire", "show", "Produce", "9", "response").out
    lost = invoke("wire", "show", "prodce")
    assert lost.code == 1 and "did you mean" in lost.err
    rows = {row["api"]: row for row in invoke("wire", "list", "--json").json}
    assert rows["Fetch"] == {"key": 1, "api": "Fetch", "versions": "4-18", "flexible": "12+"}
    assert rows["SaslHandshake"]["flexible"] == "-"


def test_no_broker() -> None:
    done = invoke("topic", "list", "-b", "127.0.0.1:1")
    assert done.code == 1
    assert done.err.splitlines()[0] == "error: no connection to 127.0.0.1:1: connection refused"
    assert "ottla up" in done.err
    wrong = invoke("topic", "list", "-b", "host:port")
    assert wrong.code == 2 and "not a port" in wrong.err


def test_help_names_every_command_and_loads_little() -> None:
    shown = invoke("--help").out
    for command in ("up", "start", "demo", "topic", "produce", "consume", "config", "log", "api", "wire"):
        assert command in shown
    assert invoke("--version").out.startswith("ottla ")
    probe = "import sys, ottla.cli.app; print([m for m in sys.modules if m.startswith(('ottla.', 'asyncio', 'rich.'))])"
    loaded = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout
    assert "ottla.client" not in loaded and "ottla.server" not in loaded and "ottla.wire" not in loaded


def test_docs_are_current() -> None:
    assert (ROOT / "docs" / "cli.md").read_text() == render(), "run `make docs`"
