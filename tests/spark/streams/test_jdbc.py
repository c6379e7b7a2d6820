"""Results in a table of a real PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support import tools
from tests.support.processes.node import OttlaNode
from tests.support.processes.postgres import Postgres

from ottla import spark as ottla
from ottla.client.blocking.blocking import Blocking

pytestmark = [pytest.mark.spark]


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    tools.require(tools.missing_postgres())
    made = Postgres()
    try:
        yield made
    finally:
        made.close()


def test_a_stream_goes_into_a_table(postgres: Postgres, node: OttlaNode, spark: Any, tmp_path: Path) -> None:
    topic, driver = "jdbc-orders", {"driver": "org.postgresql.Driver"}

    def advance() -> None:
        orders = ottla.topic(topic, bootstrap=node.bootstrap).selectExpr(
            "cast(key as string) shop", "cast(cast(value as string) as decimal(10, 2)) amount", "timestamp as at"
        )
        output = ottla.to_jdbc(orders, postgres.url, "orders", properties=driver)
        query = output.start(checkpoint=str(tmp_path / "checkpoint"), trigger="once")
        assert query.awaitTermination(120)

    def table(query: str) -> list[tuple[Any, ...]]:
        found = spark.read.format("jdbc").options(url=postgres.url, query=query, **driver).load()
        return [tuple(row) for row in found.collect()]

    with Blocking(node.bootstrap) as client:
        client.admin.topics.create(topic, 2)
        for number in range(40):
            client.send(topic, b"%d.25" % number, b"s%d" % (number % 3), timestamp=1_700_000_000_000 + number)
        advance()
        client.send(topic, b"1000.5", "Łódź".encode(), timestamp=1_700_000_000_999)
        client.send(topic, None, b"s0", timestamp=1_700_000_000_040)
        advance()
        advance()  # nothing new
    sums = "select shop, count(*), sum(amount)::text, max(extract(epoch from at) * 1000)::bigint % 1000 from orders "
    assert table(f'{sums} group by shop order by shop collate "C"') == [
        ("s0", 15, "276.50", 40),
        ("s1", 13, "250.25", 37),
        ("s2", 13, "263.25", 38),
        ("Łódź", 1, "1000.50", 999),
    ]
