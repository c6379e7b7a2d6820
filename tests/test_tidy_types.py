"""`Any` stands only where the types end: each package may have so many uses of it, and no more.

The figures may fall and must not rise. Whoever removes a use lowers the figure. What a caller passes on without looking
at it is an `object`; what depends on a request, a command or a setting gets its type from that (`Request[ResponseT]`,
`Result[RecordT, ReplyT]`, `Setting[T]`).
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "ottla"

# A package that is not listed has no use at all.
ANY_MAX = {
    # The values of compiled loops: numba and pyarrow have no types, and a schema decides what a column holds.
    "columns": 445,
    "records": 40,
    "sql": 12,
    # Decoded JSON and parsed schemas, whose form somebody else decides.
    "schemas": 105,
    "registry": 70,
    "web": 3,
    # Arguments of commands, and JSON that is printed.
    "cli": 94,
    # Rows, columns and the JVM's objects: pyspark and py4j have no types.
    "spark": 79,
    # Stand-ins for the loop, sockets and files of the operating system, and scripted faults of any request.
    "sim": 61,
    "testing": 32,
    # Settings of different types in one table; regular expressions as trees.
    "model": 42,
    # Tables by type: of handlers, effects, events and records, each of which takes its own kind.
    "server": 26,
    "raft": 9,
    "cluster": 4,
    "groups": 1,
    "machine": 4,
    # Generated codecs; records on their way to a socket.
    "wire": 16,
    # JSON of a schema registry; callbacks of requests in flight.
    "client": 3,
    # Fields of a named tuple by name.
    "txns": 1,
    # The lazy import of the public API.
    "__init__.py": 1,
}


def uses_of_any(path: Path) -> int:
    """Count the uses in annotations and expressions; imports, comments and docstrings do not count."""
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(ast.parse(path.read_text())))


def test_any_stands_only_where_types_end() -> None:
    found: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        found[path.relative_to(SOURCE).parts[0]] += uses_of_any(path)
    assert not {package: count for package, count in found.items() if count > ANY_MAX.get(package, 0)}


def test_every_listed_package_exists() -> None:
    assert not [package for package in ANY_MAX if not (SOURCE / package).exists()]
