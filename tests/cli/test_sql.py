"""`ottla sql`."""

import json
from collections.abc import Callable

from tests.cli.conftest import Run


def test_rows_as_a_table_as_json_and_from_stdin(ottla: Callable[..., Run]) -> None:
    ottla("topic", "create", "orders", "--partitions", "2")
    ottla("produce", "orders", "--key-separator", ":", stdin="a:1\nb:2\na:3\n")
    query = "select key, count(*) as n from topic('orders') group by key order by key"
    assert ottla("sql", query).lines == ["key\tn", "a\t2", "b\t1"]
    assert [json.loads(line) for line in ottla("sql", "--json", "-", stdin=query).lines] == [
        {"key": "a", "n": 2},
        {"key": "b", "n": 1},
    ]
    assert len(ottla("sql", "select * from topic('orders')", "--max", "2", "--json").lines) == 2


def test_errors_are_one_line(ottla: Callable[..., Run]) -> None:
    assert ottla("sql", "select 1 from topic('nope')", code=1).err.splitlines()[0].startswith("error: ")
    assert "syntax error" in ottla("sql", "selec 1", code=1).err


def test_errors_while_rows_are_fetched_are_one_line(ottla: Callable[..., Run]) -> None:
    """DuckDB computes rows when they are fetched, so this fails after the query has begun."""
    query = "select (case when i = 50000 then 'x' else '1' end)::int from range(100000) numbers(i)"
    lines = ottla("sql", query, code=1).err.splitlines()
    assert lines[0] == "error: Conversion Error: Could not convert string 'x' to INT32"
    assert [line.split(":")[0] for line in lines] == ["error", "hint"]
