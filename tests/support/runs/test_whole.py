"""Tests that fail among others are repeated, unless their failure is a finding; what fails again fails the run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.runs.whole import FINDINGS, REPEATED_MAX, may_repeat

ROOT = Path(__file__).resolve().parents[3]
UNSTEADY = """
from pathlib import Path
def test_unsteady():
    marked = Path(__file__).with_name("ran")
    ran = marked.exists()
    marked.touch()
    assert ran
"""
BROKEN = "def test_broken():\n    assert False\n"
CRASHES = "import os\ndef test_crashes():\n    os._exit(3)\n"


def ended(directory: Path, **files: str) -> tuple[int, str]:
    """How a run of these test files ended, and what it printed."""
    (directory / "pytest.ini").write_text("[pytest]\n")
    for name, text in files.items():
        (directory / f"test_{name}.py").write_text(text)
    run = subprocess.run(
        [sys.executable, "-m", "tests.support.runs.whole", "-n", "1", "-p", "no:cacheprovider"],
        cwd=directory,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    return run.returncode, run.stdout


def test_what_passes_the_second_time_is_named(tmp_path: Path) -> None:
    status, printed = ended(tmp_path, unsteady=UNSTEADY, good="def test_good(): pass")
    assert status == 0
    assert "1 failed, 1 passed" in printed
    assert "UNSTEADY" in printed.splitlines()[-1]
    assert "test_unsteady" in printed.splitlines()[-1]


@pytest.mark.parametrize("files", [{"broken": BROKEN}, {"broken": BROKEN, "unsteady": UNSTEADY}])
def test_what_fails_again_fails_the_run(tmp_path: Path, files: dict[str, str]) -> None:
    status, printed = ended(tmp_path, **files)
    assert status == 1
    assert "UNSTEADY" not in printed


@pytest.mark.parametrize("files", [{"crashes": CRASHES}, {"imports": "import no_such_module"}])
def test_crashes_are_not_repeated(tmp_path: Path, files: dict[str, str]) -> None:
    status, printed = ended(tmp_path, **files)
    assert status != 0
    assert "once more" not in printed


def test_findings_and_many_failures_are_not_repeated() -> None:
    assert may_repeat([f"tests/server/test_{number}.py::test" for number in range(REPEATED_MAX)])
    assert not may_repeat([f"tests/server/test_{number}.py::test" for number in range(REPEATED_MAX + 1)])
    assert not may_repeat([])
    for folder in FINDINGS:
        assert not may_repeat([f"{folder}one.py::test"])
