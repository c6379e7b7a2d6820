"""No logic is written twice: no run of eight lines of code stands in two functions.

Two lines are the same if they differ only in the names of local variables. Declarations do not count: imports,
docstrings, signatures, keyword arguments on lines of their own, and attributes that a constructor takes over.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).resolve().parent.parent / "src" / "ottla"
LINES_MIN = 8

Function = ast.FunctionDef | ast.AsyncFunctionDef

_DECLARATION = re.compile(r"self\.\w+(: .+)? = \w+|\w+=.+,|[][(){},]+|\) -> .+")
_COMMENT = re.compile(r"(^|\s+)#.*$")
_NAME = re.compile(r"(?<![\w.\"'])[A-Za-z_]\w*")


class Run(NamedTuple):
    """Successive lines of code in one function."""

    path: Path
    function: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.path}:{self.first}-{self.last} {self.function}"


def functions_of(tree: ast.AST) -> Iterator[Function]:
    """Functions and methods; what is defined inside of one is a part of it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield node
        else:
            yield from functions_of(node)


def lines_of(function: Function, source: list[str]) -> list[tuple[int, str]]:
    """The lines of a function's body that count, numbered, with `_` for each local variable."""
    passed: set[int] = set()
    names: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom | ast.Expr):
            is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if is_docstring or not isinstance(node, ast.Expr):
                passed.update(range(node.lineno, last_line(node) + 1))
    found = []
    for number in range(function.body[0].lineno, last_line(function) + 1):
        line = _COMMENT.sub("", source[number - 1].strip())
        if line and number not in passed and not _DECLARATION.fullmatch(line):
            found.append((number, _NAME.sub(lambda name: "_" if name[0] in names else name[0], line)))
    return found


def last_line(node: ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno


def twins(root: Path) -> list[tuple[Run, Run]]:
    """The pairs of places with the same lines; pairs that only continue another pair are left out."""
    places: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for path in sorted(root.rglob("*.py")):
        text = path.read_text()
        source = text.splitlines()
        for function in functions_of(ast.parse(text)):
            if last_line(function) - function.body[0].lineno + 1 < LINES_MIN:
                continue
            numbered = lines_of(function, source)
            numbers, lines = [number for number, _ in numbered], [line for _, line in numbered]
            for begin in range(len(lines) - LINES_MIN + 1):
                end = begin + LINES_MIN
                run = Run(path, function.name, numbers[begin], numbers[end - 1])
                places[tuple(lines[begin:end])].append(run)
    found = [pair for runs in places.values() if len(runs) > 1 for pair in combinations(runs, 2) if not overlap(*pair)]
    return [pair for number, pair in enumerate(found) if not number or not continues(pair, found[number - 1])]


def overlap(one: Run, other: Run) -> bool:
    return one.path == other.path and one.last >= other.first


def continues(pair: tuple[Run, Run], before: tuple[Run, Run]) -> bool:
    return all(run[:2] == earlier[:2] and run.first <= earlier.last for run, earlier in zip(pair, before, strict=True))


def test_no_logic_is_written_twice() -> None:
    assert not [f"{one} ~ {other}" for one, other in twins(SOURCE)]


LOGIC = """
def {name}(self, {rows}):
    '''{name} has a docstring of its own.'''
    {total} = 0
    for {row} in {rows}:
        if {row}.is_gone:
            continue
        self.count += 1
        {total} += {row}.size  # {name}
        if {total} > LIMIT:
            raise ValueError("too much")
    {last}
"""


def logic(name: str, rows: str, row: str, total: str, last: str = "return {total}") -> str:
    words = {"name": name, "rows": rows, "row": row, "total": total}
    return LOGIC.format(**words, last=last.format(**words))


def test_a_planted_copy_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("import os\n\nLIMIT = 9\n" + logic("measure", "rows", "row", "total"))
    (tmp_path / "within").mkdir()
    copy = textwrap.indent(logic("weigh", "things", "thing", "grams"), "    ")
    (tmp_path / "within" / "other.py").write_text("LIMIT = 9\n\n\nclass Scales:\n" + copy)
    ((one, other),) = twins(tmp_path)
    assert (one.path.name, one.function, one.first) == ("one.py", "measure", 7)
    assert (other.path.name, other.function, other.first) == ("other.py", "weigh", 8)
    # Fewer common lines are no twins.
    (tmp_path / "one.py").write_text("LIMIT = 9\n" + logic("measure", "rows", "row", "total").replace("size", "bytes"))
    assert not twins(tmp_path)


def test_a_copy_within_a_module_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(logic("a", "b", "c", "d") + "\n" + logic("e", "f", "g", "h"))
    assert len(twins(tmp_path)) == 1


def test_declarations_are_no_twins(tmp_path: Path) -> None:
    fields = [f"field_{letter}" for letter in "abcdefghij"]
    made = "".join(f"        {field}=value.{field},\n" for field in fields)
    kept = "".join(f"    self.{field} = {field}\n" for field in fields)
    imports = "".join(f"    from somewhere import {field}\n" for field in fields)
    for name in ("one", "other"):
        text = f"def {name}(value):\n    return make(\n{made}    )\n\n\n"
        text += f"def keep_{name}(self, {', '.join(fields)}):\n{kept}\n\ndef load_{name}():\n{imports}"
        (tmp_path / f"{name}.py").write_text(text)
    assert not twins(tmp_path)
