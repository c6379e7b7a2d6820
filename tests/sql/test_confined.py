"""A confined session reads topics, and nothing of this machine."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.client.blocking.blocking import Blocking
from ottla.sql import Sql, SqlError
from ottla.testing.broker import EmbeddedBroker


@pytest.fixture(scope="module")
def sql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sql]:
    with EmbeddedBroker(tmp_path_factory.mktemp("sql")) as broker:
        with Blocking(broker.bootstrap) as client:
            client.admin.topics.create("orders", 2)
            client.send_all("orders", [(b"k", b"v")] * 10)
        with Sql(broker.bootstrap, is_confined=True) as session:
            yield session


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_csv('FILE')",
        "select * from read_text('FILE')",
        "select * from read_blob('FILE')",
        "select * from read_json('FILE')",
        "select * from read_parquet('FILE')",
        "select * from parquet_metadata('FILE')",
        "select * from sniff_csv('FILE')",
        "select * from 'FILE'",
        "select * from glob('FOLDER/*')",
        "from query('select * from read_text(''FILE'')')",
        "with x as materialized (copy (select 1) to 'FOLDER/out') select 1",
        "explain analyze select * from read_text('FILE')",
        "explain analyze copy (select 1) to 'FOLDER/out'",
        "attach 'FOLDER/x.duckdb'",
        "attach ':memory:' as other",
        "copy (select 1) to 'FOLDER/out'",
        "copy t from 'FILE'",
        "export database 'FOLDER/out'",
        "import database 'FOLDER'",
        "install httpfs",
        "load httpfs",
        "load 'FILE'",
        "select * from read_csv('http://ADDRESS/x')",
        "select * from read_parquet('s3://bucket/x')",
        "set enable_external_access = true",
        "set global enable_external_access = true",
        "reset enable_external_access",
        "set memory_limit = '100GB'",
        "pragma enable_external_access",
        "select 1; set enable_external_access = true",
        "set enable_external_access = true; select * from read_text('FILE')",
        "create table t as select * from read_text('FILE')",
        "create macro m() as table select * from read_text('FILE')",
        "prepare p as select 1",
        "call pragma_version()",
        "create secret (type s3)",
        "select * from duckdb_secrets()",
        "select getenv('HOME')",
        "use memory",
        "select * from task",
        "select * from sql",
        "select * from dataset",
        "-- nothing",
        "",
    ],
)
def test_a_query_reaches_no_files_and_no_network(sql: Sql, tmp_path: Path, query: str) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("word\nTOPSECRET\n")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.05)
        place = f"127.0.0.1:{listening.getsockname()[1]}"
        query = query.replace("FILE", str(secret)).replace("FOLDER", str(tmp_path)).replace("ADDRESS", place)
        with pytest.raises(SqlError) as refused:
            sql.query(query).fetchall()
        with pytest.raises(TimeoutError):
            listening.accept()
    assert "TOPSECRET" not in str(refused.value)
    assert [each.name for each in tmp_path.iterdir()] == ["secret.csv"]


def test_topics_are_read(sql: Sql) -> None:
    assert sql.query("select count(*) from topic('orders')").fetchall() == [(10,)]
    assert sql.rows_read == 10


def test_another_session_is_not_confined(tmp_path: Path) -> None:
    """`ottla sql` is a command of whoever may read the files anyway."""
    file = tmp_path / "rows.csv"
    file.write_text("n\n42\n")
    with Sql("127.0.0.1:1") as session:
        assert session.query(f"select n from read_csv('{file}')").fetchall() == [(42,)]
