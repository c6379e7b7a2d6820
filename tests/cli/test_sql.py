"""`ottla sql`."""

import json
from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import Run, invoke
from tests.support.profiles import profile_of, write_profiles

from ottla.testing.secure import SecureBroker

ROW = json.dumps({"type": "record", "name": "Row", "fields": [{"name": "a", "type": "long"}]})


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


def test_a_secured_cluster_by_its_profile(ottla_secure_broker: SecureBroker, tmp_path: Path) -> None:
    """The profile has everything: addresses, the login to the cluster, and with it that to the registry."""
    broker = ottla_secure_broker
    secret = broker.add_user("alice", "of alice")
    broker.allow("alice", "All", topic="alice", prefixed=True)
    profiles = {"alice": profile_of(broker, "alice"), "admin": profile_of(broker, "admin")}
    profiles["wrong"] = profiles["alice"] | {"sasl.password": "a guess"}
    profiles["stranger"] = profiles["alice"] | {"basic.auth.credentials.source": "URL"}
    env = write_profiles(tmp_path, profiles)

    def run(profile: str, *words: str, stdin: str | None = None, code: int = 0) -> Run:
        done = invoke(*words, "--profile", profile, stdin=stdin, env=env)
        assert done.code == code, done.out + done.err
        secrets = (secret, "a guess", broker.security["sasl.password"])
        assert not [each for each in secrets if each in done.out + done.err]
        return done

    run("admin", "topic", "create", "alice-rows", "--partitions", "1")
    run("admin", "topic", "create", "hidden", "--partitions", "1")
    run("alice", "schema", "register", "alice-rows-value", "-", stdin=ROW)
    run("alice", "produce", "alice-rows", "--value", "avro", stdin='{"a": 1}\n{"a": 41}\n')
    total = "select sum(value.a) as total from topic('alice-rows')"
    assert run("alice", "sql", total).lines == ["total", "42"]
    hidden = run("alice", "sql", "select 1 from topic('hidden')", code=1).err
    assert run("admin", "sql", "select count(*) as n from topic('hidden')").lines == ["n", "0"]
    assert "TOPIC_AUTHORIZATION_FAILED" in hidden or "there is no topic" in hidden, hidden
    print(hidden, run("wrong", "sql", total, code=1).err)
    assert "401" in run("stranger", "sql", total, code=1).err
