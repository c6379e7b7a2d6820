"""What is kept of compiled loops: it counts while what they are made of is the same, and need not be kept at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.waiting import COMMAND_S

pytest.importorskip("numba")
LEAF = "from ottla.columns.loops import compiled\n@compiled\ndef leaf(x):\n    return x + {number}\n"
TOP = "from leaf import leaf\nfrom ottla.columns.loops import compiled\n@compiled\ndef top(x):\n    return leaf(x)\n"


def answer(directory: Path, **environment: str) -> int:
    script = "import sys; sys.path.insert(0, sys.argv[1]); from top import top; print(top(1))"
    command = [sys.executable, "-B", "-c", script, str(directory)]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=COMMAND_S)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_a_loop_is_compiled_anew_when_one_that_it_calls_changes(tmp_path: Path) -> None:
    (tmp_path / "top.py").write_text(TOP)
    for number in (1, 2):
        (tmp_path / "leaf.py").write_text(LEAF.format(number=number))
        assert answer(tmp_path) == 1 + number
    assert list((tmp_path / "__pycache__").glob("top.*.nbi"))


def test_a_loop_is_compiled_anew_when_a_type_that_it_takes_was_renamed(tmp_path: Path) -> None:
    """numba keeps the types of arguments by their names."""
    leaf = "from ottla.columns.loops import compiled\n@compiled\ndef leaf(x):\n    return x.number\n"
    (tmp_path / "leaf.py").write_text(leaf)
    for name in ("Before", "After"):
        kind = f"from typing import NamedTuple\nclass {name}(NamedTuple):\n    number: int\n"
        (tmp_path / "kinds.py").write_text(kind)
        (tmp_path / "top.py").write_text(
            f"from kinds import {name}\nfrom leaf import leaf\ndef top(x): return leaf({name}(x))\n"
        )
        assert answer(tmp_path) == 1
    assert list((tmp_path / "__pycache__").glob("leaf.*.nbi"))


def test_where_nothing_can_be_kept_loops_are_compiled_each_time(tmp_path: Path) -> None:
    (tmp_path / "top.py").write_text(TOP)
    (tmp_path / "leaf.py").write_text(LEAF.format(number=1))
    assert answer(tmp_path, NUMBA_CACHE_LOCATOR_CLASSES="IPythonCacheLocator") == 2
    assert not (tmp_path / "__pycache__").exists()
