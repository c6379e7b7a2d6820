"""Where there is no numba the same loops run as plain Python: the tests of all formats hold there, too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.columns.avro.digest import digests
from tests.support.waiting import COMMAND_S

HERE = Path(__file__).parent
FILES = [
    "avro/test_decode.py",
    "avro/test_encode.py",
    "protobuf/test_decode.py",
    "protobuf/test_library.py",
    "json/test_json.py",
    "json/test_one_meaning.py",
    "json/test_room.py::test_nothing_is_written_behind_the_end_of_the_tape",
]
# A plain loop is some hundred times slower than a compiled one.
FEW = {"OTTLA_PROTOBUF_SEEDS": "100000-100020", "OTTLA_JSON_EXAMPLES": "10"}


@pytest.mark.slow
def test_the_loops_run_as_plain_python() -> None:
    # numba is kept from being imported, so that the other half of columns.loops is used.
    script = (
        "import sys; sys.modules['numba'] = None; import pytest; from hypothesis import settings; "
        "settings.register_profile('few', max_examples=10, database=None); settings.load_profile('few'); "
        "sys.exit(pytest.main(['-q', '-x', '-p', 'no:xdist', '-p', 'no:cacheprovider', "
        "'-W', 'ignore::pytest.PytestAssertRewriteWarning', *sys.argv[1:]]))"
    )
    command = [sys.executable, "-c", script, *(str(HERE / name) for name in FILES)]
    environment = {**os.environ, "PYTEST_ADDOPTS": "", **FEW}
    ended = subprocess.run(
        command, cwd=HERE.parent.parent, env=environment, capture_output=True, text=True, check=False, timeout=COMMAND_S
    )
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-2000:]


@pytest.mark.slow
def test_compiled_and_plain_loops_make_the_same_of_avro() -> None:
    script = "import sys; sys.modules['numba'] = None; from tests.columns.avro.digest import main; main()"
    command = [sys.executable, "-W", "error", "-c", script]
    ended = subprocess.run(
        command, cwd=HERE.parent.parent, capture_output=True, text=True, check=False, timeout=COMMAND_S
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert json.loads(ended.stdout) == digests()
