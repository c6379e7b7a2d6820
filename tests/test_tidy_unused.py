"""No function or class of src is left that only tests use, or nobody.

A name counts as used if src or scripts load it, import it, or name it in a short text (as tables of names do). Methods
count by their name alone, whatever object they are called on. What is registered by a decorator is used by it.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"

# What stays although nobody in src uses it, and why. A folder or a module, then names; no name means all of them.
KEPT = {
    # Every message and record of Kafka's has a definition; the table of messages finds them by their key.
    "ottla/wire/messages": "",
    "ottla/wire/journal": "",
    # The core of tiered storage (ADR 0055): what copies, reads and deletes segments is built upon it.
    "ottla/tier/metadata": "",
    # The public API of clients and of tests in other projects.
    "ottla/client/blocking/blocking.py": "share_consumer",
    "ottla/client/profiles.py": "of_properties",
    "ottla/testing/secure.py": "client_settings registry_security_of",
    # What asyncio calls on a loop and on a transport.
    "ottla/sim/world/loop.py": "_run_once _process_events _write_to_self",
    "ottla/sim/world/transport.py": "is_reading get_write_buffer_limits can_write_eof get_protocol",
    # What Spark calls on sources, listeners and processors of state.
    "ottla/spark/read": "pushFilters getDefaultReadLimit prepareForTriggerAvailableNow reportLatestOffset",
    "ottla/spark/progress.py": "onQueryStarted onQueryIdle onQueryProgress onQueryTerminated",
    "ottla/spark/pipelines/reports.py": "onQueryStarted onQueryIdle onQueryProgress onQueryTerminated",
    "ottla/spark/streams": "handleInputRows handleExpiredTimer",
    # What uvicorn calls on the servers that it is given.
    "ottla/web/tls_acceptor.py": "wait_closed",
    # What DuckDB calls.
    "ottla/sql/dataset.py": "scanner",
    # What has to be seen from outside: memory and descriptors that must be given back.
    "ottla/server/net/inbound.py": "holds_memory",
    "ottla/server/ports/os_disk.py": "open_count",
    # Tiered storage's first part: its copier and its reader come next, and the simulator's runs with them.
    "ottla/model/store_location.py": "parse_store_location",
    "ottla/tier/stores/opening.py": "open_store",
    "ottla/sim/world": "MemoryObjectStore FaultyObjectStore",
    # At once what a node does in steps, for what stands in for one: the other side of a connection, a journal's owner.
    "ottla/wire/frame.py": "response_parts",
    "ottla/cluster/store.py": "write_snapshot",
}
# These decorators only change how something is called.
PLAIN = {
    "property",
    "cached_property",
    "staticmethod",
    "classmethod",
    "abstractmethod",
    "dataclass",
    "cache",
    "override",
}
_WORDS_MAX = 80


class Defined(NamedTuple):
    module: str
    name: str
    line: int


class Uses(ast.NodeVisitor):
    """Names that are used, outside of their own definition."""

    def __init__(self) -> None:
        self.names: Counter[str] = Counter()
        self._within: list[str] = []

    def _note(self, name: str) -> None:
        if name not in self._within:
            self.names[name] += 1

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._note(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        is_own = isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}
        if is_own:
            self._note(node.attr)
        else:  # also within what has the same name: it is another object's
            self.names[node.attr] += 1
        self.generic_visit(node)

    def visit_alias(self, node: ast.alias) -> None:
        self._note(node.name)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and len(node.value) < _WORDS_MAX:
            for word in re.findall(r"\w+", node.value):
                self._note(word)

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self._within.append(node.name)
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        for each in ast.iter_child_nodes(node):
            if each not in node.body or each in body:
                self.visit(each)
        self._within.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _define  # as ast names them


def words_of(node: ast.expr) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def definitions(module: str, tree: ast.Module) -> Iterator[Defined]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        is_registered = any(words_of(each) not in PLAIN for each in node.decorator_list)
        if not is_registered and not node.name.startswith("__"):
            yield Defined(module, node.name, node.lineno)


def unused(modules: dict[str, str], users: dict[str, str]) -> list[Defined]:
    """Return what is defined in `modules` and used neither there nor by `users`; both are texts by their paths."""
    trees = {module: ast.parse(text) for module, text in {**users, **modules}.items()}
    uses, found = Uses(), []
    for tree in trees.values():
        uses.visit(tree)
    for module in modules:
        found += [each for each in definitions(module, trees[module]) if not uses.names[each.name]]
    return found


def is_kept(it: Defined) -> bool:
    return any(it.module.startswith(place) and (not names or it.name in names.split()) for place, names in KEPT.items())


def test_nothing_is_defined_that_only_tests_use() -> None:
    modules = {str(path.relative_to(SOURCE)): path.read_text() for path in SOURCE.rglob("*.py")}
    users = {path.name: path.read_text() for path in (ROOT / "scripts").rglob("*.py")}
    found = unused(modules, users)
    assert len(modules) > 1_000
    assert not [f"{it.module}:{it.line} {it.name}" for it in found if not is_kept(it)]
    kept = {(it.module, it.name) for it in found}
    stale = [
        f"{place}: {name}"
        for place, names in KEPT.items()
        for name in names.split()
        if not any(module.startswith(place) and name == each for module, each in kept)
    ]
    assert not stale, "they are used, or gone: take them out of KEPT"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def f(): ...", ["f"]),
        ("def f(): return f()", ["f"]),
        ("def f(): ...\nf()", []),
        ("class A:\n    def m(self): ...\nA()", ["m"]),
        ("class A:\n    def m(self): ...\nA().m()", []),
        ("class A:\n    @property\n    def m(self): ...\nA()", ["m"]),
        ("@app.command()\ndef f(): ...", []),
        ('def f(): ...\nTABLE = {"f": 1}', []),
        ('def f():\n    """Do f."""', ["f"]),
    ],
)
def test_what_counts_as_used(text: str, names: list[str]) -> None:
    assert [it.name for it in unused({"a.py": text}, {})] == names
