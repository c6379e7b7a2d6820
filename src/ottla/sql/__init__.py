"""SQL over topics without a JVM: DuckDB on Arrow batches.

with Sql("localhost:9092") as sql:
    sql.query("select key, count(*) from topic('orders') group by key").fetchall()

The names listed here are imported when they are first used, so that `task` and `process` need no DuckDB.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.sql.query import Sql, SqlError, fetch_rows

__all__ = ["Sql", "SqlError", "fetch_rows"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.query"), name)
    return found
