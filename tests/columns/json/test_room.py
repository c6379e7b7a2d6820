"""Room for JSON: no text, however short and however odd, makes the loop write where it has none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.columns.json.hostile import HOSTILE, is_json
from tests.support.waiting import COMMAND_S

from ottla.columns.json.scan import scan
from ottla.columns.loops import frozen_bytes
from ottla.model.limits import JSON_DEPTH_MAX

ROOT = Path(__file__).parents[3]
UNTOUCHED = -77


@pytest.mark.parametrize("before", ["", "sys.modules['numba'] = None; "], ids=["compiled", "plain"])
def test_texts_that_promise_less_than_they_need(before: str) -> None:
    script = f"import sys; {before}from tests.columns.json.hostile import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=COMMAND_S,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]


@pytest.mark.parametrize("room", [0, 1, 2, 3, 10, 50, 600])
def test_nothing_is_written_behind_the_end_of_the_tape(room: int) -> None:
    lines = np.empty((2048, 4), np.int64)
    chars, around = np.empty(4096, np.uint8), np.empty(JSON_DEPTH_MAX, np.int64)
    for text in [*HOSTILE, b'{"a":1,"b":2}', b"[" + b"1," * 600 + b"1]", b"[]", b"[[]]"]:
        lines[:] = UNTOUCHED
        made = scan(frozen_bytes(text), 0, len(text), lines[:room], chars, around)
        assert (lines[room:] == UNTOUCHED).all(), text
        assert not made or is_json(text)
