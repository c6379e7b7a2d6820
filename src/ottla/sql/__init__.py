"""SQL over topics without a JVM: DuckDB on Arrow batches.

with Sql("localhost:9092") as sql:
    sql.query("select key, count(*) from topic('orders') group by key").fetchall()
"""

from ottla.sql.query import Sql, SqlError, fetch_rows

__all__ = ["Sql", "SqlError", "fetch_rows"]
