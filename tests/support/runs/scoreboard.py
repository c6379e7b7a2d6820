"""The results of each client with the node: collected while the compatibility tests run, stored for scripts/docs.py.

A test belongs to one cell: its row is the client (a fixture of FIXTURES, the client that the test itself has noted with
`note_client`, or the `tool` marker), its column the `feature` marker. A cell is "passed" when every test of the cell
passed. A run of all tests replaces all results; a run of some replaces only the cells of these tests.
"""

import fcntl
import json
from typing import Any, ClassVar

import pytest
from tests.support.tools import TOOLS

PATH = TOOLS / "compatibility.json"
FIXTURES = ("client", "group_client", "share_client", "java")  # each gives its client's name and version


_CLIENT = pytest.StashKey[str]()


def note_client(item: pytest.Item, name: str, version: str) -> None:
    """Note the client that a test is about, where the test makes it itself."""
    item.stash[_CLIENT] = f"{name} {version}"


class Scoreboard:
    KEY: ClassVar[pytest.StashKey["Scoreboard"]] = pytest.StashKey()

    def __init__(self) -> None:
        self._cells: dict[str, dict[str, str]] = {}

    def note(self, item: pytest.Item, report: pytest.TestReport) -> None:
        feature = item.get_closest_marker("feature")
        row = _row(item)
        if feature is None or row is None:
            return
        cells = self._cells.setdefault(row, {})
        name = feature.args[0]
        if report.failed:
            cells[name] = "failed"
        elif report.when == "call" and report.passed:
            cells.setdefault(name, "passed")

    def save(self, *, anew: bool) -> None:
        if not self._cells:
            return
        TOOLS.mkdir(exist_ok=True)
        with PATH.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # several workers may end at the same time
            file.seek(0)
            known: dict[str, dict[str, str]] = {} if anew else json.loads(file.read() or "{}")
            for row, cells in self._cells.items():
                known.setdefault(row, {}).update(cells)
            file.truncate(0)
            file.write(json.dumps(known, indent=1, sort_keys=True) + "\n")


def is_whole_run(config: pytest.Config) -> bool:
    """Whether all compatibility tests were selected, in this one process."""
    folders = {TOOLS.parent / name for name in (".", "tests", "tests/compat")}
    asked = {(config.invocation_params.dir / argument).resolve() for argument in config.args}
    chosen = config.option.keyword or config.option.markexpr or config.option.deselect
    return bool(asked & folders) and not chosen and not hasattr(config, "workerinput")


def _row(item: pytest.Item) -> str | None:
    tool = item.get_closest_marker("tool")
    if tool is not None:
        return str(tool.args[0])
    if _CLIENT in item.stash:
        return item.stash[_CLIENT]
    arguments: dict[str, Any] = getattr(item, "funcargs", {})
    client = next((arguments[name] for name in FIXTURES if name in arguments), None)
    return None if client is None else f"{client.name} {client.version}"
