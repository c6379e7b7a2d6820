"""`ottla topic` and `ottla config` against a node."""

from collections.abc import Callable

from tests.cli.conftest import Run

Cli = Callable[..., Run]


def test_the_life_of_a_topic(ottla: Cli) -> None:
    assert "created topic t with 2 partitions" in ottla("topic", "create", "t", "-p", "2", "-c", "retention.ms=77").err
    assert [(row["topic"], row["partitions"]) for row in ottla("topic", "list", "--json").json] == [("t", 2)]
    assert ottla("topic", "list").lines[1].startswith("t\t2\t1\t")
    ottla("topic", "add-partitions", "t", "3")
    (topic,) = ottla("topic", "describe", "t", "--json").json
    assert topic["settings"] == {"retention.ms": "77"} and len(topic["partitions"]) == 3
    ottla("topic", "alter", "t", "cleanup.policy=compact", "--unset", "retention.ms")
    ottla("topic", "alter", "t", "--append", "cleanup.policy=delete")
    (topic,) = ottla("topic", "describe", "t", "--json").json
    assert topic["settings"] == {"cleanup.policy": "compact,delete"}
    assert "deleted topic t" in ottla("topic", "delete", "t", "--yes").err
    assert ottla("topic", "list", "--json").json == []


def test_errors_are_one_line_with_a_hint(ottla: Cli) -> None:
    ottla("topic", "create", "t")
    again = ottla("topic", "create", "t", code=1)
    assert again.err.splitlines()[0] == "error: TOPIC_ALREADY_EXISTS: Topic 't' already exists."
    assert again.err.splitlines()[1].startswith("hint: ") and not again.out
    ottla("topic", "create", "t", "--if-not-exists")
    assert "INVALID_TOPIC_EXCEPTION" in ottla("topic", "create", "a b", code=1).err
    assert "there is no topic 'x'" in ottla("topic", "describe", "x", code=1).err
    assert "INVALID_CONFIG" in ottla("topic", "alter", "t", "no.such=1", code=1).err
    mixed = ottla("topic", "delete", "t", "x", "--yes", code=1)
    assert "deleted topic t" in mixed.err and "topic x: UNKNOWN_TOPIC_OR_PARTITION" in mixed.err


def test_what_can_be_done_is_done(ottla: Cli) -> None:
    """Of several things each is told, and one that fails takes nothing from the others."""
    for name in ("a", "b"):
        ottla("topic", "create", name, "-p", "2")
    ottla("produce", "a", "-F", "json", stdin='{"value": "v", "partition": 0}')
    seen = ottla("topic", "describe", "a", "x", "b", "--json", code=1)
    assert [topic["topic"] for topic in seen.json] == ["a", "b"] and "topic x: UNKNOWN_TOPIC_OR" in seen.err
    cut = ottla("topic", "delete-records", "a", "--before-offset", "1", "--json", code=1)
    assert cut.json == [{"partition": 0, "start": 1}] and "partition a-1: OFFSET_OUT_OF_RANGE" in cut.err
    gone = ottla("topic", "delete", "x", "a", "y", "b", "--yes", code=1)
    assert [line.split(":")[0] for line in gone.err.splitlines() if not line.startswith("hint")] == [
        "✓ deleted topic a",
        "✓ deleted topic b",
        "error",
        "error",
    ]


def test_wrong_usage_is_exit_code_2(ottla: Cli) -> None:
    assert "NAME=VALUE" in ottla("topic", "create", "t", "-c", "retention.ms", code=2).err
    assert "nothing to change" in ottla("topic", "alter", "t", code=2).err
    assert "give one of" in ottla("topic", "delete-records", "t", code=2).err
    assert "No such command" in ottla("topics", code=2).err


def test_delete_records(ottla: Cli) -> None:
    ottla("topic", "create", "t", "-p", "2")
    lines = [f'{{"value": "v", "timestamp": {1000 + n}, "partition": {n % 2}}}' for n in range(10)]
    ottla("produce", "t", "-F", "json", stdin="\n".join(lines))
    rows = ottla("topic", "delete-records", "t", "--before-offset", "2", "-p", "0", "--json").json
    assert rows == [{"partition": 0, "start": 2}]
    rows = ottla("topic", "delete-records", "t", "--before-time", "1007", "--json").json
    assert rows == [{"partition": 0, "start": 4}, {"partition": 1, "start": 3}]
    rows = ottla("topic", "delete-records", "t", "--all", "--yes", "--json").json
    assert [row["start"] for row in rows] == [5, 5]
    assert "OFFSET_OUT_OF_RANGE" in ottla("topic", "delete-records", "t", "--before-offset", "50", code=1).err
    ottla("topic", "alter", "t", "cleanup.policy=compact")
    assert "cleanup.policy contains delete" in ottla("topic", "delete-records", "t", "--all", "-y", code=1).err


def test_config(ottla: Cli) -> None:
    ottla("topic", "create", "t")
    ottla("config", "set", "topic", "t", "retention.ms=5", "segment.bytes=2000000")
    found = ottla("config", "get", "topic", "t", "retention.ms", "--json").json
    assert found[0]["value"] == "5" and found[0]["source"] == "topic"
    shown = ottla("config", "get", "topic", "t")
    assert "segment.bytes\t2000000\ttopic\t1073741824" in shown.lines
    assert not any(line.startswith("flush.ms") for line in shown.lines) and "--all" in shown.err
    assert len(ottla("config", "get", "topic", "t", "--all", "--json").json) >= 32
    assert any(len(line.split("\t")[-1]) > 20 for line in ottla("config", "get", "topic", "t", "--docs").lines)
    ottla("config", "set", "broker", "default", "log.retention.ms=123456")
    ottla("config", "set", "topic", "t", "--unset", "retention.ms")
    found = ottla("config", "get", "topic", "t", "retention.ms", "--json").json
    assert found[0]["value"] == "123456" and found[0]["source"] == "dynamic-default-broker"
    assert "no setting nope" in ottla("config", "get", "topic", "t", "nope", code=1).err
    assert "not a broker id" in ottla("config", "get", "broker", "one", code=2).err
    assert any(row["name"] == "node.id" for row in ottla("config", "get", "broker", "1", "--json").json)
