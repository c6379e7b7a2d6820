"""`Any` stands only where the types end: each package may have so many uses of it, or of a name for it, and no more.

The figures may fall and must not rise. Whoever removes a use lowers the figure. What a caller passes on without looking
at it is an `object`; what depends on a request, a command or a setting gets its type from that (`Request[ResponseT]`,
`Result[RecordT, ReplyT]`, `Setting[T]`).
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "ottla"

# A package that is not listed has no use at all.
ANY_MAX = {
    # The values of compiled loops: numba and pyarrow have no types, and a schema decides what a column holds.
    "columns": 445,
    "records": 40,
    "sql": 15,
    # Decoded JSON (`Json`) and parsed schemas, whose form somebody else decides.
    "schemas": 198,
    "registry": 70,
    "web": 3,
    # Arguments of commands, and JSON that is printed.
    "cli": 86,
    # JSON that is shown; values of schemas.
    "operations": 7,
    # Rows, columns and the JVM's objects: pyspark and py4j have no types.
    "spark": 79,
    # Stand-ins for the loop, sockets and files of the operating system, and scripted faults of any request.
    "sim": 61,
    "testing": 32,
    # Settings of different types in one table; regular expressions as trees.
    "model": 42,
    # Tables by type: of handlers, effects, events and records, each of which takes its own kind.
    "server": 47,
    "raft": 9,
    "cluster": 4,
    "groups": 1,
    "machine": 4,
    # Generated codecs; records on their way to a socket.
    "wire": 26,
    # JSON of a schema registry; callbacks of requests in flight.
    "client": 11,
    # Fields of a named tuple by name.
    "txns": 1,
}


def is_any(node: ast.expr, aliases: frozenset[str] = frozenset()) -> bool:
    return isinstance(node, ast.Name) and (node.id == "Any" or node.id in aliases)


def passes_any_on(value: ast.expr, aliases: frozenset[str]) -> bool:
    """Return whether a name for this type stands for `Any`, as `Any` and `Answer[Any]` do. A `Callable` does not: it
    says what is called, and its own `Any` counts where it is declared.
    """
    if isinstance(value, ast.Subscript):
        arguments = value.slice.elts if isinstance(value.slice, ast.Tuple) else [value.slice]
        name = value.value.id if isinstance(value.value, ast.Name) else ""
        return name not in {"Callable", "dict", "Mapping", "TypeVar"} and any(
            is_any(each, aliases) for each in arguments
        )
    return is_any(value, aliases)


def declared_aliases(tree: ast.Module, known: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield the names that a module gives to `Any`, or to a type that passes it on."""
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            is_alias = isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias"
            if is_alias and passes_any_on(node.value, known):
                yield node.target.id
        elif isinstance(node, ast.Assign) and passes_any_on(node.value, known):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def imported(tree: ast.Module, aliases: frozenset[str]) -> Iterator[str]:
    """Yield the aliases that a module imports, by their full names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (each.name for each in node.names if f"{node.module}.{each.name}" in aliases)


def uses_of_any(tree: ast.Module, aliases: frozenset[str]) -> int:
    """Count the uses in annotations and expressions, also of aliases, which are given by their full names; imports,
    comments and docstrings do not count.
    """
    known = frozenset(imported(tree, aliases))
    own = known | frozenset(declared_aliases(tree, known))
    return sum(
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and is_any(node, own) for node in ast.walk(tree)
    )


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)


def test_any_stands_only_where_types_end() -> None:
    trees = {path: ast.parse(path.read_text()) for path in SOURCE.rglob("*.py")}
    aliases = frozenset(f"{module_of(path)}.{name}" for path, tree in trees.items() for name in declared_aliases(tree))
    found: Counter[str] = Counter()
    for path, tree in trees.items():
        found[path.relative_to(SOURCE).parts[0]] += uses_of_any(tree, aliases)
    assert not {package: count for package, count in found.items() if count > ANY_MAX.get(package, 0)}


@pytest.mark.parametrize(
    ("text", "uses"),
    [
        ("from x import Any\ndef f(a: Any) -> None: ...", 1),
        ("from x import Any\nMessage: TypeAlias = Any\ndef f(a: Message) -> Message: ...", 3),
        ("from x import Any\nOutcome = Answer[Any]\ndef f() -> Outcome: ...", 2),
        ("from x import Any\nHandler = Callable[[Any], int]\ndef f() -> Handler: ...", 1),
        ("from y import Message\ndef f(a: Message) -> None: ...", 1),
        ("def f(a: Message) -> None: ...", 0),
    ],
)
def test_names_for_any_count_as_well(text: str, uses: int) -> None:
    assert uses_of_any(ast.parse(text), frozenset({"y.Message"})) == uses


def test_every_listed_package_exists() -> None:
    assert not [package for package in ANY_MAX if not (SOURCE / package).exists()]
