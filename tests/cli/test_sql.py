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
