"""The pages of schemas, with a real registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.console.consoles import Visitor, marked, running_console
from tests.console.signed_in import secured_console, signed_in
from tests.support.processes.kafka import RealKafka

from ottla.client.registry import RegistryOptions, SchemaRegistry
from ottla.client.registry_calls import level_of, set_level, version_of, versions_of
from ottla.console.options import ConsoleOptions
from ottla.schemas.compatibility import Level
from ottla.schemas.schema import Reference, SchemaSource, SchemaType
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.registry import Registry
from ottla.testing.secure import SecureBroker

SCRIPT = "<script>alert(1)</script>"


def record(*fields: dict[str, object], name: str = "Order") -> str:
    return json.dumps({"type": "record", "name": name, "fields": [{"name": "id", "type": "long"}, *fields]})


V1 = record()
V2 = record({"name": "note", "type": "string", "default": ""})
BAD = record({"name": "price", "type": "double"})


@pytest.fixture(scope="module")
def registry(broker: EmbeddedBroker) -> SchemaRegistry:
    return SchemaRegistry(RegistryOptions.of(broker.registry.url))


@pytest.fixture(scope="module")
def console(broker: EmbeddedBroker) -> Iterator[Visitor]:
    options = ConsoleOptions(broker.bootstrap, port=0, registry=RegistryOptions.of(broker.registry.url))
    with running_console(options) as service:
        yield Visitor(service.url)


@pytest.fixture
def orders(registry: SchemaRegistry, request: pytest.FixtureRequest) -> str:
    """A subject of this test, with two versions."""
    subject = f"{request.node.originalname}-value"
    for text in (V1, V2):
        registry.call("POST", "subjects", subject, "versions", body={"schema": text})
    return subject


def test_all_subjects(console: Visitor, registry: SchemaRegistry, orders: str) -> None:
    set_level(registry, orders, Level.FULL)
    shown = console.get(f"/schemas?q={orders}")
    assert f"{orders} AVRO 2" in shown.words and "FULL" in shown.words
    assert "BACKWARD" in shown.words  # the registry's own


def test_a_subject_and_its_versions(console: Visitor, orders: str) -> None:
    shown = console.get(f"/schemas/{orders}")
    assert '"default": ""' in shown.words and "Version 2" in shown.words and "READWRITE" in shown.words
    assert '"default": ""' not in console.get(f"/schemas/{orders}?version=1").words
    assert console.get(f"/schemas/{orders}?version=9").status == 404
    assert console.get("/schemas/nosuch").status == 404
    file = console.get(f"/schemas/{orders}/text?version=1")
    assert (json.loads(file.text), "avsc" in file.headers["content-disposition"]) == (json.loads(V1), True)


def test_references_lead_both_ways(console: Visitor, registry: SchemaRegistry) -> None:
    registry.register("ref-customer", SchemaSource(record(name="Customer")))
    field = {"name": "customer", "type": "Customer"}
    registry.register("ref-order", SchemaSource(record(field), references=(Reference("Customer", "ref-customer", 1),)))
    assert "Customer is ref-customer version 1" in console.get("/schemas/ref-order").words
    assert "referred to by ref-order version 1" in console.get("/schemas/ref-customer").words


def test_two_versions_differ_in_lines_and_in_meaning(console: Visitor, registry: SchemaRegistry, orders: str) -> None:
    set_level(registry, orders, Level.NONE)
    registry.call("POST", "subjects", orders, "versions", body={"schema": BAD})
    good = console.get(f"/schemas/{orders}/diff?old=1&new=2")
    assert good.words.count("not compatible") == 0 and good.words.count("compatible") >= 2
    assert 'class="added"' in good.text and "note" in good.words
    bad = console.get(f"/schemas/{orders}/diff?old=1&new=3")
    assert "Readers with version 3, data of version 1 not compatible reader field missing default value" in bad.words
    assert "Readers with version 1, data of version 3 compatible" in bad.words
    assert console.get(f"/schemas/{orders}/diff?old=1&new=9").status == 404
    assert console.get(f"/schemas/{orders}/diff?old=one").status == 400


@pytest.mark.parametrize(
    ("kind", "old", "new", "word"),
    [
        (
            SchemaType.PROTOBUF,
            'syntax = "proto3"; message M { string a = 1; }',
            'syntax = "proto3"; message M { int32 a = 1; }',
            "field scalar kind changed",
        ),
        (
            SchemaType.JSON,
            '{"type":"object","properties":{"a":{"type":"string"}}}',
            '{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}',
            "required attribute added",
        ),
    ],
)
def test_other_types_differ_in_meaning(
    console: Visitor, registry: SchemaRegistry, kind: SchemaType, old: str, new: str, word: str
) -> None:
    subject = f"meaning-{kind.value}"
    set_level(registry, subject, Level.NONE)
    for text in (old, new):
        registry.register(subject, SchemaSource(text, kind))
    shown = console.get(f"/schemas/{subject}/diff").words
    assert word in shown, shown


def test_a_candidate_is_checked_and_then_registered(
    console: Visitor, registry: SchemaRegistry, request: pytest.FixtureRequest
) -> None:
    subject = f"{request.node.originalname}"
    registry.register(subject, SchemaSource(V1))
    page = f"/schemas/{subject}/register"
    assert '"name": "Order"' in console.get(page).words
    bad = console.send(page, f"/schemas/{subject}/check", schema=BAD, kind="AVRO")
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in bad.words and "price" in bad.words
    assert "not compatible with what is registered" in bad.words
    broken = console.send(page, f"/schemas/{subject}/check", schema="{not a schema", kind="AVRO")
    assert broken.status == 200 and "{not a schema" in broken.words and "compatible: this" not in broken.words
    good = console.send(page, f"/schemas/{subject}/check", schema=V2, kind="AVRO")
    assert "compatible: this schema can be registered" in good.words and 'class="added"' in good.text
    assert versions_of(registry, subject) == [1]
    refused = console.send(page, f"/schemas/{subject}/check", schema=V2, kind="AVRO")
    token = refused.text.partition('name="_token" value="')[2].partition('"')[0]
    not_done = console.post(page, {"_token": token, "schema": BAD, "kind": "AVRO"})
    assert (not_done.status, "the registry refuses the schema" in not_done.words) == (400, True)
    assert '"name": "price"' in not_done.words, "what was typed is kept"
    assert versions_of(registry, subject) == [1]
    done = console.post(page, {"_token": token, "schema": V2, "kind": "AVRO"})
    assert "Version 2 of" in done.words and versions_of(registry, subject) == [1, 2]


def test_a_new_subject(console: Visitor, registry: SchemaRegistry) -> None:
    text = 'syntax = "proto3"; message M { string a = 1; }'
    shown = console.send("/schemas/-/new", "/schemas/-/new", subject="fresh-value", schema=text, kind="PROTOBUF")
    assert "Version 1 of fresh-value is registered" in shown.words
    assert version_of(registry, "fresh-value", 1).kind == "PROTOBUF"
    wrong = console.send("/schemas/-/new", "/schemas/-/new", subject="x", schema="no schema", kind="AVRO")
    assert "no schema" in wrong.words and versions_of(registry, "x") == []
    assert (wrong.status, 'name="subject" value="x"' in wrong.text) == (400, True)
    assert marked(wrong) == ["schema"]
    with_reference = record({"name": "c", "type": "Customer"})
    named = "Customer=fresh-customer:1"
    registry.register("fresh-customer", SchemaSource(record(name="Customer")))
    page = "/schemas/-/new"
    console.send(page, page, subject="refers", schema=with_reference, kind="AVRO", references=named)
    assert version_of(registry, "refers", 1).references == (Reference("Customer", "fresh-customer", 1),)
    wrong = console.send(page, page, subject="refers", schema=V1, kind="JSON", references="what", normalize="on")
    assert (wrong.status, marked(wrong)) == (400, ["references"])
    assert '<option value="JSON" selected>' in wrong.text and "what</textarea>" in wrong.text
    assert 'name="normalize" value="on" checked' in wrong.text and '"name": "Order"' in wrong.words


def test_what_was_typed_cannot_become_markup(console: Visitor) -> None:
    page = "/schemas/-/new"
    shown = console.send(page, page, subject=f'"><b {SCRIPT}', schema=f"</textarea>{SCRIPT}", references=SCRIPT)
    assert (shown.status, SCRIPT in shown.text) == (400, False)
    assert shown.words.count("alert(1)") >= 2, "it is there, as text"


def test_the_level_is_set_and_reset(console: Visitor, registry: SchemaRegistry, orders: str) -> None:
    page = f"/schemas/{orders}/level"
    shown = console.send(page, page, level="FULL_TRANSITIVE")
    assert "FULL_TRANSITIVE" in shown.words and level_of(registry, orders) == ("FULL_TRANSITIVE", True)
    console.send(page, page, level="default")
    assert level_of(registry, orders) == ("BACKWARD", False)
    wrong = console.send(page, page, level="SIDEWAYS")
    assert (wrong.status, marked(wrong)) == (400, ["level"])


def test_deleting_asks_for_the_name(console: Visitor, registry: SchemaRegistry, orders: str) -> None:
    page = f"/schemas/{orders}/delete"
    wrong = console.send(page, page, name="another", version="")
    assert (wrong.status, versions_of(registry, orders)) == (400, [1, 2])
    assert (marked(wrong), 'value="another"' in wrong.text) == (["name"], True)
    console.send(page, page, name=orders, version="1")
    assert versions_of(registry, orders) == [2]
    assert versions_of(registry, orders, deleted=True) == [1, 2]
    assert "version 1 deleted" in console.get(f"/schemas/{orders}").words
    console.send(page, page, name=orders, version="")
    assert orders in console.get("/schemas").words.partition("Softly deleted")[2]
    assert "softly deleted: registering a schema restores it" in console.get(f"/schemas/{orders}").words
    gone = console.send(page, page, name=orders, version="", permanent="on")
    assert "were deleted permanently" in gone.words and versions_of(registry, orders, deleted=True) == []


def test_what_others_refer_to_is_not_deleted(console: Visitor, registry: SchemaRegistry) -> None:
    registry.register("kept-customer", SchemaSource(record(name="Customer")))
    field = {"name": "customer", "type": "Customer"}
    registry.register(
        "kept-order", SchemaSource(record(field), references=(Reference("Customer", "kept-customer", 1),))
    )
    page = "/schemas/kept-customer/delete"
    assert "other schemas refer to it" in console.get(page).words
    assert console.send(page, page, name="kept-customer", version="").status == 400
    assert versions_of(registry, "kept-customer") == [1]


def test_names_and_texts_are_hostile(console: Visitor, registry: SchemaRegistry) -> None:
    for name in (SCRIPT, '"><img src=x onerror=alert(1)>', "a/b c?d#e%2F", "\u202esubject"):
        text = json.dumps({"type": "record", "name": "R", "doc": SCRIPT, "fields": []})
        registry.call("POST", "subjects", name, "versions", body={"schema": text})
        listed = console.get("/schemas")
        address = next(part for part in listed.text.split('"') if part.startswith("/schemas/") and _is_of(part, name))
        for place in ("", "/register", "/level", "/delete", "/diff"):
            shown = console.get(address + place)
            assert shown.status == 200, (name, place, shown.words)
            assert SCRIPT not in shown.text and "<img" not in shown.text and "\u202e" not in shown.text
        assert SCRIPT not in listed.text and "<img" not in listed.text


def _is_of(address: str, name: str) -> bool:
    from urllib.parse import unquote

    return unquote(address.removeprefix("/schemas/")) == name


def test_a_large_schema(console: Visitor, registry: SchemaRegistry) -> None:
    fields = [{"name": f"f{i}", "type": "long", "default": 0, "doc": "d" * 100} for i in range(5_000)]
    for count in (4_999, 5_000):
        registry.register("large-value", SchemaSource(record(*fields[:count])))
    shown = console.get("/schemas/large-value")
    assert "the first 262,144 of" in shown.words and len(shown.text) < 1_000_000
    assert "lines: its differences are not shown" in console.get("/schemas/large-value/diff").words


def test_no_registry(visitor: Visitor) -> None:
    shown = visitor.get("/schemas")
    assert (shown.status, "no schema registry is known" in shown.words) == (200, True)
    assert visitor.get("/schemas/x").status == 400


def test_a_registry_that_is_away(broker: EmbeddedBroker) -> None:
    away = RegistryOptions.of("http://127.0.0.1:1", attempts=1)
    with running_console(ConsoleOptions(broker.bootstrap, port=0, registry=away)) as service:
        shown = Visitor(service.url).get("/schemas")
    assert (shown.status, "Traceback" in shown.text) == (502, False)


def test_the_rights_are_those_of_the_visitor(tmp_path: Path) -> None:
    with SecureBroker(tmp_path / "data") as broker:
        password = broker.add_user("weak")
        broker.allow("weak", "Read", "Describe", topic="shown")
        admin = SchemaRegistry(RegistryOptions.of(broker.registry.url, broker.registry_security_of()))
        for topic in ("shown", "secret"):
            admin.register(f"{topic}-value", SchemaSource(V1))
        with secured_console(broker, registry=True) as url:
            visitor = signed_in(url, "weak", password)
            listed = visitor.get("/schemas").words
            assert "shown-value" in listed and "secret-value" not in listed
            assert "Version 1" in visitor.get("/schemas/shown-value").words
            assert visitor.get("/schemas/secret-value").status in (400, 403, 404)
            page = "/schemas/shown-value/delete"
            shown = visitor.send(page, page, name="shown-value", version="")
            assert shown.status in (400, 403), shown.words
            page = "/schemas/shown-value/register"
            token = visitor.get(page).text.partition('name="_token" value="')[2].partition('"')[0]
            visitor.post(page, {"_token": token, "schema": V2, "kind": "AVRO"})
            assert versions_of(admin, "shown-value") == [1]


@pytest.mark.slow
def test_a_real_kafka(real_kafka: RealKafka) -> None:
    registry = Registry(real_kafka.bootstrap).start()
    try:
        options = ConsoleOptions(real_kafka.bootstrap, port=0, registry=RegistryOptions.of(registry.url))
        with running_console(options) as service:
            visitor = Visitor(service.url)
            page = "/schemas/-/new"
            assert "is registered" in visitor.send(page, page, subject="k-value", schema=V1, kind="AVRO").words
            assert "k-value AVRO 1" in visitor.get("/schemas").words
    finally:
        registry.stop()
