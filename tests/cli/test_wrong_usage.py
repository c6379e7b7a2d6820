"""Options that contradict each other, names that nobody knows, and what is told of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Run, invoke

from ottla.cli.records import text as records
from ottla.cli.records.produce import _unescaped
from ottla.model.errors import ApiError, ErrorCode
from ottla.operations.errors import CommandError

Cli = Callable[..., Run]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("consume t --from-beginning --last 3", "give only one of"),
        ("consume t -F json -t {value}", "exclude each other"),
        ("consume t --last -3", "greater than or equal to"),
        ("up --ephemeral --data elsewhere", "give one of them"),
        ("group list --type banana", "'banana' is none of classic"),
        ("registry --replication-factor 0", "0 is neither 1 or more nor -1"),
        ("registry --replication-factor -2", "-2 is neither 1 or more nor -1"),
        ("topic creat", "Did you mean 'create'?"),
        ("topic create", "Missing argument"),
        ("nope", "No such command 'nope'"),
        ("--nope", "No such option"),
    ],
)
def test_refused(words: str, told: str) -> None:
    """One line says what is wrong, another where to look; no boxes."""
    run = invoke(*words.split())
    error, hint = run.err.splitlines()
    assert run.code == 2 and error.startswith("error: ") and told in error
    named = " ".join(
        ["ottla", *(word for word in words.split()[:2] if word in ("consume", "up", "group", "list", "registry"))]
    )
    assert hint.startswith(f"hint: `{named}") and hint.endswith("--help` shows how it is used")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("topic delete-records t --before-offset -1", "'--before-offset': Input should be greater"),
        ("topic delete-records t --before-offset 99999999999999999999", "'--before-offset'"),
        ("topic delete-records t --before-time -1", "--before-time: -1 is before 1970"),
        ("topic delete-records t --before-time 1969-01-01", "is before 1970"),
        ("topic delete-records t --before-time 99999999999999999999", "--before-time: 99999999999999999999 is later"),
        ("topic delete t __consumer_offsets _schemas --yes", "__consumer_offsets, _schemas: groups"),
        ("topic create t -p 99999999999", "'--partitions'"),
        ("topic create t -r 99999", "'--replication-factor'"),
        ("topic add-partitions t 99999999999", "'total'"),
        ("consume t --from-timestamp 99999999999999999999", "--from-timestamp"),
        ("consume t --from-offset 99999999999999999999", "'--from-offset'"),
        ("consume t --since 99999999999999999999d", "--since"),
        ("produce t v -p 99999999999", "'--partition'"),
        ("group reset-offsets g --to-time 99999999999999999999", "--to-time"),
        ("txn list --running 99999999999999999999", "--running"),
        ("txn abort --partition t:99999999999 --start-offset 0", "is not TOPIC:PARTITION"),
        ("start b2.properties --config b1.properties", "one properties file only"),
        ("start --data d3 --set log.dirs=/x", "--data and --set log.dirs=... exclude each other"),
        ("start --data d3 --listen h:1 --set listeners=PLAINTEXT://h:2", "exclude each other"),
        ("up --set log.dirs=/x", "--data says where"),
        ("up --brokers 0", "'--brokers'"),
        ("produce t v -f some.txt", "values and --file exclude each other"),
        ("produce t v -k k -K :", "--key and --key-separator exclude each other"),
        ("cluster reassign t:0=1,2,3 --list", "take no moves"),
        ("cluster reassign --list --cancel", "exclude each other"),
        ("cluster reassign junk", "'junk' is not TOPIC:PARTITION=BROKER,BROKER"),
        ("cluster balance --throttle lots", "'lots' is no rate"),
        ("format f --standalone --no-initial-controllers", "exclude each other"),
        ("consume t -t {value.__class__}", "there is no field 'value.__class__'"),
        ("dlq redrive t --reason bogus", "'bogus' is none of rejected, delivery-limit"),
        ("group list --state bogus", "'bogus' is none of Empty, Stable"),
    ],
)
def test_refused_before_a_broker_is_asked(words: str, told: str) -> None:
    run = invoke(*words.split())
    error, hint = run.err.splitlines()
    assert run.code == 2 and error.startswith("error: ") and told in error and hint.startswith("hint: ")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ('"timestamp":99999999999999999999', "timestamp is not between -1 and 9223372036854775807"),
        ('"partition":99999999999', "partition is not between 0 and 2147483647"),
        ('"headers":[1]', "a header is not [name, value]"),
        ('"headers":7', "headers are neither an object nor a list"),
    ],
)
def test_a_record_as_json(fields: str, told: str) -> None:
    with pytest.raises(CommandError) as raised:
        records.from_json(f'{{"value":"v",{fields}}}'.encode())
    assert told in str(raised.value)


def test_without_words_the_help_is_shown() -> None:
    for words in ([], ["topic"]):
        run = invoke(*words)
        assert run.code in (0, 2) and "Usage: " in run.out + run.err and "error" not in run.err


def test_an_empty_topic() -> None:
    for command in ("produce", "consume"):
        run = invoke(command, "")
        assert run.code == 2 and "the name of the topic is empty" in run.err


def test_a_separator() -> None:
    for text in ("\\", ""):
        assert invoke("produce", "t", "v", "-K", text).code == 2
    assert [_unescaped(text) for text in ("\\t", "ü", "\\\\")] == [b"\t", "ü".encode(), b"\\"]


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("{nope}", "no field 'nope'"),
        ("{", "Single '{'"),
        ("{value.__class__}", "no field"),
        ("{value:{key}}", "no field"),
        ("{}", "no field"),
    ],
)
def test_a_template(pattern: str, told: str) -> None:
    with pytest.raises(CommandError, match=told) as raised:
        records.template(pattern)
    assert "{offset}" in (raised.value.hint or "")


def test_an_error_never_ends_with_a_colon() -> None:
    assert str(ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")).endswith("no such topic partition")


def test_brokers_and_groups_that_are_not_there(ottla: Cli) -> None:
    for words in (["get", "broker", "99"], ["set", "broker", "99", "a=b"], ["get", "broker-logger", "99"]):
        assert "error: broker 99 is not there: the brokers are 1" in ottla("config", *words, code=1).err
    warned = ottla("config", "set", "broker", "1", "log.retention.mss=5").err
    assert warned.startswith("warning: there is no setting log.retention.mss, did you mean log.retention.ms?")
    ottla("topic", "create", "t")
    ottla("produce", "t", "v")
    assert "group g has committed nothing: it begins at the end" in ottla("consume", "t", "-g", "g").err
    assert "committed nothing" not in ottla("consume", "t", "-g", "g").err
    assert "committed" not in ottla("consume", "t", "-g", "h", "--from-beginning", "-n", "1").err
    again = ottla("consume", "t", "-g", "h", "--from-beginning")
    reset = "ottla group reset-offsets h -t t --to earliest --execute"
    assert again.out == ""
    assert again.err == f"group h goes on from its committed offsets; `{reset}` sets them back\n"
    ottla(*reset.split()[1:])
    assert len(ottla("consume", "t", "-g", "h").lines) == 1


def test_format_makes_up_an_id(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        f"process.roles=broker,controller\nnode.id=1\nlog.dirs={tmp_path / 'd'}\n"
        "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:9093\ncontroller.listener.names=CONTROLLER\n"
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
    )
    joining = invoke("format", str(file), "--no-initial-controllers")
    assert joining.code == 2 and "--cluster-id is missing" in joining.err
    made = invoke("format", str(file), "--standalone")
    cluster_id = made.out.split()[-1]
    assert made.code == 0 and f"cluster.id={cluster_id}" in (tmp_path / "d" / "meta.properties").read_text()
