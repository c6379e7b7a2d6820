"""`ottla schema`: what it prints, what it sends, how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Run, invoke
from tests.support.ports import free_ports

from ottla.testing.broker import EmbeddedBroker

Schema = Callable[..., Run]
V1 = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
V2 = {**V1, "fields": [*V1["fields"], {"name": "note", "type": "string", "default": ""}]}
BAD = {**V1, "fields": [*V1["fields"], {"name": "price", "type": "double"}]}


@pytest.fixture
def schema(ottla_broker: EmbeddedBroker) -> Schema:
    url = ottla_broker.registry.url

    def run(*arguments: str, stdin: str | None = None, code: int = 0) -> Run:
        done = invoke("schema", *arguments, stdin=stdin, env={"OTTLA_REGISTRY": url})
        assert done.code == code, f"exit code {done.code}\n{done.out}\n{done.err}"
        return done

    return run


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    found = {}
    for name, content in (("v1.avsc", V1), ("v2.avsc", V2), ("bad.avsc", BAD)):
        (tmp_path / name).write_text(json.dumps(content))
        found[name.partition(".")[0]] = str(tmp_path / name)
    return found


def test_register_list_and_show(schema: Schema, files: dict[str, str]) -> None:
    assert "orders-value version 1 has id 1" in schema("register", "-t", "orders", files["v1"]).err
    again = schema("register", "--topic", "orders", files["v1"], "--json")
    assert again.json == {"subject": "orders-value", "version": 1, "id": 1}
    schema("register", "orders-key", "-", stdin='"string"')
    schema("register", "-t", "orders", files["v2"])
    assert schema("list").lines == [
        "subject\tversion\tid\ttype\treferences",
        "orders-key\t1\t2\tAVRO\t",
        "orders-value\t2\t3\tAVRO\t",
    ]
    assert [row["version"] for row in schema("list", "orders-v", "--all", "--json").json] == [1, 2]
    shown = schema("show", "-t", "orders")
    assert json.loads(shown.out) == V2 and "AVRO id 3: orders-value version 2, BACKWARD" in shown.err
    assert json.loads(schema("show", "-t", "orders", "1").out) == V1
    by_id = schema("show", "--id", "2")
    assert by_id.out == '"string"\n' and "orders-key version 1" in by_id.err
    assert schema("show", "-k", "orders", "--json").json["schema"] == '"string"'


def test_types_follow_from_extensions_and_references_are_named(schema: Schema, tmp_path: Path) -> None:
    proto, place = tmp_path / "trip.proto", tmp_path / "place.proto"
    place.write_text('syntax = "proto3"; package geo; message Place { string city = 1; }')
    proto.write_text('syntax = "proto3"; import "geo/place.proto"; message Trip { geo.Place to = 1; }')
    (tmp_path / "s.json").write_text('{"type": "object"}')
    schema("register", "place", str(place))
    schema("register", "trip", str(proto), "--ref", "geo/place.proto=place:1")
    schema("register", "s", str(tmp_path / "s.json"))
    rows = {row["subject"]: row for row in schema("list", "--json").json}
    assert [rows[name]["type"] for name in ("place", "trip", "s")] == ["PROTOBUF", "PROTOBUF", "JSON"]
    assert rows["trip"]["references"] == ["place:1"]
    shown = schema("show", "trip")
    assert "message Trip {" in shown.out and "geo/place.proto is place version 1" in shown.err
    (tmp_path / "x.txt").write_text("")
    assert "--type" in schema("register", "x", str(tmp_path / "x.txt"), code=2).err
    assert "NAME=SUBJECT:VERSION" in schema("register", "x", str(proto), "--ref", "nonsense", code=2).err


def test_check_says_why_and_ends_so(schema: Schema, files: dict[str, str]) -> None:
    new = schema("check", "-t", "orders", files["bad"])
    assert "orders-value has no versions yet: it would accept any valid schema" in new.err
    assert "compatible" not in new.err
    as_json = schema("check", "-t", "orders", files["bad"], "--json").json
    assert (as_json["is_compatible"], as_json["has_versions"]) == (True, False)
    assert "not found" in schema("check", "-t", "orders", files["bad"], "--version", "1", code=1).err
    schema("register", "-t", "orders", files["v1"])
    assert "✓ compatible with what is registered (BACKWARD)" in schema("check", "-t", "orders", files["v2"]).err
    assert schema("check", "-t", "orders", files["v2"], "--json").json["has_versions"] is True
    refused = schema("check", "-t", "orders", files["bad"], code=1)
    assert "✗ incompatible with what is registered (BACKWARD)" in refused.err and "price" in refused.err
    as_json = schema("check", "-t", "orders", files["bad"], "--version", "1", "--json", code=1).json
    assert as_json["is_compatible"] is False and any("price" in each for each in as_json["messages"])
    assert "incompatible" in schema("register", "-t", "orders", files["bad"], code=1).err
    assert "nonsense" in schema("check", "-t", "orders", "-", stdin='{"type": "nonsense"}', code=1).err


def test_diff_shows_lines_and_the_verdict(schema: Schema, files: dict[str, str]) -> None:
    schema("register", "-t", "orders", files["v1"])
    schema("register", "-t", "orders", files["v2"])
    last = schema("diff", "-t", "orders")
    assert last.lines[:2] == ["--- orders-value version 1", "+++ orders-value version 2"]
    assert '+      "name": "note",' in last.lines and "✓ compatible with version 1" in last.err
    back = schema("diff", "-t", "orders", "2", "1")
    assert '-      "name": "note",' in back.lines
    to_file = schema("diff", "-t", "orders", files["bad"])
    assert '+      "name": "price",' in to_file.lines and "✗ incompatible with version 2" in to_file.err
    assert schema("diff", "-t", "orders", files["bad"], "--json").json["is_compatible"] is False
    assert schema("diff", "-t", "orders", "1", "1").lines == []
    schema("delete", "-t", "orders", "1")
    assert schema("diff", "-t", "orders").lines == []  # nothing is left to compare the second version with


def test_delete(schema: Schema, files: dict[str, str]) -> None:
    for name in ("v1", "v2"):
        schema("register", "-t", "orders", files[name])
    assert "deleted orders-value version 1" in schema("delete", "-t", "orders", "1").err
    assert schema("delete", "-t", "orders", "--json").json == {
        "subject": "orders-value",
        "versions": [2],
        "permanent": False,
    }
    assert schema("list", "--json").json == []
    assert [row["version"] for row in schema("list", "--deleted", "--all", "--json").json] == [1, 2]
    # Softly deleted before or not: --permanent is for good.
    asked = schema("delete", "-t", "orders", "--permanent", stdin="y\n", code=1).err
    assert "Delete all versions of orders-value permanently?" in asked and "not a terminal" in asked
    assert (
        "Delete version 1 of orders-value permanently?"
        in schema("delete", "orders-value", "1", "--permanent", code=1).err
    )
    assert [row["version"] for row in schema("list", "--deleted", "--all", "--json").json] == [1, 2], "nothing was done"
    assert "versions 1, 2 for good" in schema("delete", "-t", "orders", "--permanent", "--yes").err
    assert schema("list", "--deleted", "--json").json == []
    gone = schema("delete", "-t", "orders", code=1)
    assert gone.err.startswith("error: Subject 'orders-value' not found.") and "ottla schema list" in gone.err


def test_no_registry_is_one_line(files: dict[str, str]) -> None:
    done = invoke("schema", "list", "--url", f"http://127.0.0.1:{free_ports(1)[0]}")
    assert done.code == 1 and "no registry answers at" in done.err and "ottla up" in done.err
    assert invoke("schema", "list", "--url", "ftp://x").code == 2
