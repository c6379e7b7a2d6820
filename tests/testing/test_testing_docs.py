"""docs/testing.md: the blocks of "Your tests" run as they are written, the tests in them with the plugin's fixtures."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from ottla.testing.broker import EmbeddedBroker

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"


def test_every_block_runs(ottla_broker: EmbeddedBroker, request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text().partition("\n## Our tests")[0]
    names: dict[str, Any] = {"broker": ottla_broker}
    blocks = list(re.finditer(r"```python\n(.*?)```", text, re.S))
    for block in blocks:
        # Lines are numbered as in the page, so that a traceback points into it.
        source = "\n" * text.count("\n", 0, block.start(1)) + block[1]
        exec(compile(source, PAGE.name, "exec"), names)
        for each in ast.parse(block[1]).body:
            if isinstance(each, ast.FunctionDef):
                test = names[each.name]
                test(*map(request.getfixturevalue, inspect.signature(test).parameters))
    assert len(blocks) == 4
    assert {each for each in names if each.startswith("test_")} == {
        "test_orders",
        "test_rights",
        "test_schemas",
        "test_small_segments",
    }
