"""franz-go, through the program that scripts/tools builds from tests/go."""

import re
from pathlib import Path

from tests.support.lines import LineServer
from tests.support.tools import GO_HARNESS, ROOT

_PINNED = re.search(r"twmb/franz-go v(\S+)", (ROOT / "tests" / "go" / "go.mod").read_text())
assert _PINNED is not None
VERSION = _PINNED[1]


def harness(log_path: Path) -> LineServer:
    return LineServer("the Go harness", [str(GO_HARNESS)], log_path)
