"""`pytest --quick`: the tests of the inner loop (`make test-quick`): no JVM, no Spark, no file that takes long.

Left out are tests that need a JVM (by a fixture or a mark), those marked `slow`, the folders that need real servers or
minutes, and every file that `schedule` lists as long. `make test` runs all of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.runs.schedule import SECONDS

_FOLDERS = ("tests/compat/", "tests/spark/", "tests/faults/", "tests/registry/test_clients_")
_MARKS = ("compat", "spark", "slow")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import files that are left out as a whole."""
    if not config.getoption("--quick") or collection_path.suffix != ".py":
        return None
    file = collection_path.relative_to(config.rootpath).as_posix()
    return True if file in SECONDS or file.startswith(_FOLDERS) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--quick"):
        return
    long = {item for item in items if _needs_time(item)}
    config.hook.pytest_deselected(items=list(long))
    items[:] = [item for item in items if item not in long]


def _needs_time(item: pytest.Item) -> bool:
    return any(map(item.get_closest_marker, _MARKS)) or "java_tools" in getattr(item, "fixturenames", ())
