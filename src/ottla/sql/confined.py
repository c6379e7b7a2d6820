"""A confined DuckDB: for queries of users who may read topics, but nothing of the machine that runs the query.

Rules:
- Files, the network, extensions, and objects of Python are out of reach, and the settings that say so cannot be
  changed any more.
- A query is one statement that answers rows: SELECT, PIVOT, or EXPLAIN. Some of these also write (EXPLAIN ANALYZE of a
  CREATE TABLE runs it), but only into the database in memory, which nobody else sees, and which ends with the query.
- DuckDB's own bound of memory does not hold for all of its functions (a long `repeat` for example), and not all of them
  can be interrupted. So whoever confines a query also runs it in a process of its own (`process.py`).
"""

from __future__ import annotations

from typing import Final

import duckdb

from ottla.model import limits

_READS: Final = frozenset({duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN, duckdb.StatementType.MULTI})
_SETTINGS: Final = (
    "SET temp_directory = ''",
    "SET enable_external_access = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET python_enable_replacements = false",
    "SET python_scan_all_frames = false",
    f"SET memory_limit = '{limits.SQL_CONFINED_DUCKDB_BYTES}B'",
    f"SET threads = {limits.SQL_CONFINED_THREADS}",
    "SET lock_configuration = true",
)


class NotReading(ValueError):
    """The query is not one statement that answers rows; the message is one sentence."""


def confine(duck: duckdb.DuckDBPyConnection) -> None:
    """Take away what a query does not need. It cannot be given back."""
    for each in _SETTINGS:
        duck.execute(each)


def check_reads(duck: duckdb.DuckDBPyConnection, text: str) -> None:
    """Refuse all but one statement that answers rows. Raises NotReading, or DuckDB's error if the text is no SQL."""
    statements = duck.extract_statements(text)
    if len(statements) != 1:
        raise NotReading(f"a query is one statement, not {len(statements)}")
    kind = statements[0].type
    if kind not in _READS:
        raise NotReading(f"a query only reads, and this is {kind.name}")
