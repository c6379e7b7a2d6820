"""`ottla produce --value avro` and `ottla consume --value avro`: payloads whose schemas a registry keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Run, invoke

from ottla.testing.broker import EmbeddedBroker

Cli = Callable[..., Run]
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}
OPEN = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"], "additionalProperties": False}
PROTO = 'syntax = "proto3";\nmessage Order { int64 id = 1; string note = 2; }\nmessage Other { bool yes = 1; }\n'
SCHEMAS = {"avro": ("a.avsc", json.dumps(ORDER)), "json": ("a.json", json.dumps(OPEN)), "protobuf": ("a.proto", PROTO)}


@pytest.fixture
def cli(ottla_broker: EmbeddedBroker, tmp_path: Path) -> Cli:
    """Commands against a node and its registry; a topic for each type of schema, named after it."""
    env = {"OTTLA_BOOTSTRAP": ottla_broker.bootstrap, "OTTLA_REGISTRY": ottla_broker.registry.url}

    def run(*arguments: str, stdin: str | None = None, code: int = 0) -> Run:
        done = invoke(*arguments, stdin=stdin, env=env)
        assert done.code == code, f"exit code {done.code}\n{done.out}\n{done.err}"
        return done

    for topic, (name, content) in SCHEMAS.items():
        (tmp_path / name).write_text(content)
        run("topic", "create", topic)
        run("schema", "register", "-t", topic, str(tmp_path / name))
    return run


@pytest.mark.parametrize("kind", list(SCHEMAS))
def test_there_and_back(cli: Cli, kind: str) -> None:
    cli("produce", kind, "--value", kind, stdin='{"id": 1}\n{"id": 2}\n')
    cli("produce", kind, "--value", "auto", "-F", "json", stdin='{"key": "k", "value": {"id": 3}}\n{"value": null}\n')
    rows = [json.loads(line) for line in cli("consume", kind, "--value", kind, "-F", "json").lines]
    ids = [None if row["value"] is None else int(row["value"]["id"]) for row in rows]  # Protobuf's JSON: int64 is text
    assert ids == [1, 2, 3, None]
    raw = cli("consume", kind, "--value", "auto", "-F", "raw", "--max", "1").out
    assert json.loads(raw)["id"] in (1, "1")
    again = "\n".join(json.dumps({"value": row["value"]}) for row in rows)
    cli("topic", "create", "copy")
    cli("produce", "copy", "--value-subject", f"{kind}-value", "-F", "json", stdin=again)
    copied = [json.loads(line)["value"] for line in cli("consume", "copy", "--value", kind, "-F", "json").lines]
    assert copied == [row["value"] for row in rows]


def test_pretty(cli: Cli) -> None:
    cli("produce", "avro", '{"id": 1, "note": "hé"}', "--value", "avro")
    run = cli("consume", "avro", "--value", "avro", "-F", "pretty")
    assert '\n  "value": {\n    "id": 1,\n    "note": "hé"\n  }\n' in run.out


def test_keys(cli: Cli) -> None:
    cli("schema", "register", "-k", "avro", "-", stdin='"string"')
    cli("produce", "avro", "-K", ":", "--key-type", "avro", "--value", "avro", stdin='k1:{"id": 1}\n')
    cli("produce", "avro", "-k", "k2", "--key-type", "avro", "--value", "avro", '{"id": 2}')
    shown = cli("consume", "avro", "--key", "avro", "--value", "avro", "-t", "{key} {value}\\n").lines
    assert shown == ['"k1" {"id":1,"note":null}', '"k2" {"id":2,"note":null}']


@pytest.mark.parametrize(
    ("kind", "line", "told"),
    [
        ("avro", '{"id": "x"}', "not a value of avro-value version 1: $.id: 'x' is no long"),
        ("avro", '{"nope": 1}', "Order has no field 'nope', only id, note"),
        ("avro", "{", "not JSON"),
        ("json", "{}", "'id' is a required property"),
        ("protobuf", '{"nope": 1}', 'has no field named "nope"'),
        ("protobuf", "[]", "is no object, as Order needs"),
    ],
)
def test_a_value_that_does_not_fit(cli: Cli, kind: str, line: str, told: str) -> None:
    run = cli("produce", kind, "--value", kind, stdin=line + "\n", code=1)
    error, hint = run.err.splitlines()
    assert told in error and error.startswith("error: line 1: ") and hint.startswith("hint: ")
    assert cli("consume", kind).lines == []


def test_another_type_and_no_subject(cli: Cli) -> None:
    run = cli("produce", "avro", "{}", "--value", "json", code=1)
    assert run.err.splitlines()[0] == "error: subject avro-value is AVRO, not JSON"
    run = cli("produce", "new", "{}", "--value", "json", code=1)
    assert "subject new-value: " in run.err and "`ottla schema register new-value FILE`" in run.err
    assert "new" not in cli("topic", "list").out, "nothing was sent, so no topic was created"


def test_what_cannot_be_decoded_is_shown_as_it_is(cli: Cli) -> None:
    cli("produce", "avro", *(f"plain {number}" for number in range(12)))
    run = cli("consume", "avro", "--value", "avro", "-F", "raw")
    assert len(run.lines) == 12 and run.lines[0] == "plain 0"
    warnings = run.err.splitlines()
    assert len(warnings) == 10 and warnings[0].startswith(
        "warning: avro-0@0: the value is shown as it is: the value beg"
    )
    assert warnings[-1].endswith("; further ones are not told")
    cli("produce", "avro", '{"id": 1}', "--value", "avro")
    assert "is AVRO, not JSON" in cli("consume", "avro", "--value", "json", "--last", "1").err


def test_a_registry_that_is_away(cli: Cli) -> None:
    cli("produce", "avro", '{"id": 1}', "--value", "avro")
    for words in (("produce", "avro", "{}"), ("consume", "avro")):
        run = cli(*words, "--value", "avro", "--registry", "127.0.0.1:9", code=1)
        error, hint = run.err.splitlines()
        assert "127.0.0.1:9 does not answer" in error and "--registry" in hint
    assert "is no URL" in cli("consume", "avro", "--value", "avro", "--registry", "ftp://x", code=2).err
