"""Queries over a real node."""

from collections.abc import Iterator
from typing import Any

import pytest

from ottla.client.blocking.blocking import Blocking
from ottla.model.errors import ApiError
from ottla.sql import Sql, SqlError
from ottla.testing.broker import EmbeddedBroker

COUNT = 1_000


@pytest.fixture(scope="module")
def sql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sql]:
    with EmbeddedBroker(tmp_path_factory.mktemp("sql")) as broker:
        with Blocking(broker.bootstrap) as client:
            client.admin.topics.create("orders", 3)
            client.send_all("orders", [(b"k%d" % (i % 7), b'{"id":%d}' % i) for i in range(COUNT)])
            client.admin.topics.create("users", 1)
            client.send_all("users", [(b"k1", b"Ada"), (b"k2", b"Bob"), (b"k2", None), (b"k3", b"\xff\xfe")])
        with Sql(broker.bootstrap) as session:
            yield session


def rows(sql: Sql, query: str) -> list[tuple[Any, ...]]:
    return list(sql.query(query).fetchall())


def test_aggregates_are_exact(sql: Sql) -> None:
    found = rows(sql, "select key, count(*), sum((value->>'id')::int) from topic('orders') group by key order by key")
    expected = [(f"k{k}", len(range(k, COUNT, 7)), sum(range(k, COUNT, 7))) for k in range(7)]
    assert found == expected


def test_topics_join(sql: Sql) -> None:
    found = rows(
        sql,
        "select u.value, count(*) from topic('orders') o join topic('users') u on o.key = u.key "
        "where u.value = 'Ada' group by all",
    )
    assert found == [("Ada", len(range(1, COUNT, 7)))]


def test_a_topic_may_be_scanned_twice(sql: Sql) -> None:
    query = "with x as (select * from topic('orders')) select (select count(*) from x), (select max(\"offset\") from x)"
    assert rows(sql, query)[0][0] == COUNT


def test_conditions_decide_what_is_read(sql: Sql) -> None:
    query = 'select "offset" from topic(\'orders\') where partition = 1 and "offset" between 10 and 14 order by 1'
    assert rows(sql, query) == [(10,), (11,), (12,), (13,), (14,)]
    assert [each.rows_read for each in sql.datasets] == [5]
    assert rows(sql, "select count(*) from topic('orders') where timestamp > now() + interval 1 hour") == [(0,)]
    assert [each.rows_read for each in sql.datasets] == [0]


def test_last_and_since(sql: Sql) -> None:
    assert rows(sql, "select count(*) from topic('orders', last := 5)") == [(15,)]
    assert rows(sql, "select count(*) from topic('orders', since := '1h')") == [(COUNT,)]


def test_text_that_is_none_is_shown_and_bytes_are_kept(sql: Sql) -> None:
    assert rows(sql, "select value from topic('users') order by \"offset\"") == [("Ada",), ("Bob",), (None,), ("��",)]
    assert rows(sql, "select value from topic('users', format := 'raw') where key = 'k3'") == [(b"\xff\xfe",)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select offset from topic('orders')", '"offset"'),
        ("select nothing from topic('orders')", "nothing"),
        ("select 1 from topic('orders', sinze := '1h')", "sinze"),
        ("select 1 from topic('orders', since := 'soon')", "since"),
        ("select 1 from topic('orders', format := 'xml')", "auto, text or raw"),
        ("selec 1", "selec"),
    ],
)
def test_errors_are_one_sentence(sql: Sql, query: str, message: str) -> None:
    with pytest.raises(SqlError, match=message) as caught:
        sql.query(query)
    assert "\n" not in str(caught.value)


def test_a_topic_that_is_not_there(sql: Sql) -> None:
    with pytest.raises(ApiError, match="nope"):
        sql.query("select * from topic('nope')")
