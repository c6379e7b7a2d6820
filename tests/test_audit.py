"""`scripts/audit.py`: a pinned version that is known to be vulnerable fails the check, without a network."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from scripts import audit

KNOWN = """
as_of = {as_of}
[vulnerable]
Some_Package = [["CVE-1", "<1.2"], ["CVE-2", ">=2.0rc1,<2.0.1"]]
"""


def days_ago(days: int) -> date:
    return datetime.now(UTC).date() - timedelta(days=days)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    constraints, advisories = tmp_path / "constraints.txt", tmp_path / "advisories.toml"
    advisories.write_text(KNOWN.format(as_of=days_ago(0)))
    return constraints, advisories


def run(files: tuple[Path, Path], pins: str, *more: str) -> int:
    files[0].write_text(pins)
    return audit.main(["--constraints", str(files[0]), "--advisories", str(files[1]), *more])


@pytest.mark.parametrize(
    ("version", "advisory"),
    [("1.1.9", "CVE-1"), ("1.2", None), ("2.0rc1", "CVE-2"), ("2.0", "CVE-2"), ("2.0.1", None)],
)
def test_a_version_in_a_range_is_found(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], version: str, advisory: str | None
) -> None:
    code = run(files, f"other==1\nsome-package=={version} ; python_version > '3'  # why\n")
    told = capsys.readouterr()
    assert code == (advisory is not None)
    assert (f"some-package {version} has {advisory} " in told.err) == (advisory is not None)
    assert f"2 pinned packages; the list of {days_ago(0)} is 0 days old" in told.out
    assert "look for newer advisories" not in told.err


def test_a_list_that_nobody_has_looked_at_for_long_fails(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files[1].write_text(KNOWN.format(as_of=days_ago(audit.OLD_DAYS)))
    assert run(files, "a==1\n") == 0
    files[1].write_text(KNOWN.format(as_of=days_ago(audit.OLD_DAYS + 1)))
    assert run(files, "a==1\n") == 1
    assert "older than 90 days: look for newer advisories, and set as_of in advisories.toml" in capsys.readouterr().err
    assert run(files, "a==1\n", "--online", str(tmp_path / "missing")) == 1
    assert run(files, "a==1\n", "--online", fake(tmp_path, {"name": "a", "version": "1", "vulns": []})) == 0


def test_what_is_installed_counts_too(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    files[1].write_text(KNOWN.format(as_of=days_ago(0)) + 'pytest = [["CVE-3", ">=8"]]\n')
    assert run(files, "") == 1
    assert "pytest" in capsys.readouterr().err


def fake(tmp_path: Path, *dependencies: dict[str, object]) -> str:
    """A program that prints what pip-audit would."""
    program = tmp_path / "pip-audit"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps({'dependencies': dependencies})}\nEND\n")
    program.chmod(0o755)
    return str(program)


def test_the_database_is_asked_where_it_answers(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = {"name": "a", "version": "1", "vulns": [{"id": "PYSEC-1"}]}
    assert run(files, "a==1\n", "--online", fake(tmp_path, bad, {"name": "b", "skip_reason": "unknown"})) == 1
    told = capsys.readouterr()
    assert "a 1 has PYSEC-1" in told.err and "does not know b" in told.out
    for silent in (fake(tmp_path, {"name": "b", "skip_reason": "unknown"}), str(tmp_path / "missing")):
        assert run(files, "a==1\n", "--online", silent) == 0
        assert "does not answer" in capsys.readouterr().out


def test_our_own_pins_are_not_known_to_be_vulnerable() -> None:
    known = audit.Advisories.read(audit.ROOT / "scripts" / "advisories.toml")
    pins = list(audit.pinned((audit.ROOT / "constraints.txt").read_text()))
    assert len(pins) > 50 and audit.hits(known, pins) == []
    names = {audit.normal(name) for name, _ in pins}
    assert known.vulnerable.keys() <= names, "an entry of a package that is not ours finds nothing"
