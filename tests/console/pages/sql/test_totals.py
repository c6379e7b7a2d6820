"""Totals of a topic: counted and summed by a field, with and without a schema, with names that are hostile."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.console.consoles import Visitor, marked, running_console

from ottla.client.blocking.blocking import Blocking
from ottla.client.registry import RegistryOptions, SchemaRegistry
from ottla.client.registry_calls import SubjectEntry
from ottla.console.options import ConsoleOptions
from ottla.console.pages.sql.totals_query import fields_of, totals_query
from ottla.console.refusals import WrongInput
from ottla.model import limits
from ottla.schemas.avro.json_values import AvroValues
from ottla.schemas.framing import frame
from ottla.schemas.schema import SchemaSource
from ottla.testing.broker import EmbeddedBroker

SALES = json.dumps(
    {
        "type": "record",
        "name": "Sale",
        "fields": [
            {"name": "country", "type": "string"},
            {"name": "cents", "type": ["null", "long"]},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }
)
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def console(broker: EmbeddedBroker) -> Iterator[Visitor]:
    registry = RegistryOptions.of(broker.registry.url)
    registered = SchemaRegistry(registry).register("sales-value", SchemaSource(SALES))
    values = AvroValues(SchemaRegistry(registry).by_id(registered))
    rows = [{"country": "CH", "cents": 5}, {"country": "FR", "cents": 7}, {"country": "CH", "cents": None}]
    with Blocking(broker.bootstrap) as client:
        client.admin.topics.create("sales", 2)
        for number, row in enumerate(rows):
            client.send("sales", frame(registered, values.to_payload({**row, "at": 0})), partition=number % 2)
        client.admin.topics.create("plain", 1)
        for each in (b'{"shop": {"name": "a"}, "cents": 1}', b'{"shop": {"name": "<b>"}, "cents": "x"}', b"none"):
            client.send("plain", each)
    with running_console(ConsoleOptions(broker.bootstrap, port=0, registry=registry)) as service:
        yield Visitor(service.url)


def test_totals_by_a_field_of_the_schema(console: Visitor) -> None:
    page = console.get("/topics/sales/totals?by=country&sum=cents")
    assert (page.status, '<option value="country">' in page.text, '<option value="cents">' in page.text) == (
        200,
        True,
        True,
    )
    assert '<option value="at">' not in page.text, "a sum of times means nothing"
    part = next(each for each in page.text.split('"') if each.startswith("/topics/sales/totals/part"))
    shown = console.part(part.replace("&amp;", "&")).words
    assert "FR 1 7 CH 2 5" in shown and "3 records read" in shown
    assert "sum of cents by country" in shown, "it is drawn, too"
    assert "VARCHAR" in console.get("/sql/table?" + page.text.partition("/sql/table?")[2].partition('"')[0]).words


def test_totals_of_all_records(console: Visitor) -> None:
    assert "3" in console.part("/topics/sales/totals/part").words
    assert "12" in console.part("/topics/sales/totals/part?sum=cents").words
    assert "2 records read" in console.part("/topics/sales/totals/part?last=1").words, "one of each partition"


def test_totals_of_plain_json(console: Visitor) -> None:
    assert "No schema is known" in console.get("/topics/plain/totals").words
    shown = console.part("/topics/plain/totals/part?by=shop.name&sum=cents")
    assert "a 1 1.0" in shown.words and "null 1 null" in shown.words
    assert "&lt;b&gt; 1 null" in " ".join(shown.text.split()) or "<b> 1 null" in shown.words
    assert "<b>" not in shown.text


@pytest.mark.parametrize(("query", "field"), [("last=0", "last"), ("last=many", "last"), ("by=a..b", "")])
def test_a_wrong_question_keeps_what_was_typed(console: Visitor, query: str, field: str) -> None:
    page = console.get(f"/topics/sales/totals?sum=cents&{query}")
    assert (page.status, marked(page)) == (400, [field] if field else [])
    assert 'name="sum" value="cents"' in page.text
    assert console.part(f"/topics/sales/totals/part?{query}").status == 400


def test_names_are_hostile(console: Visitor) -> None:
    for name in (HOSTILE, "a' or 1=1 --", 'x"; drop table y', "a" * 9_000):
        for path in ("/topics/sales/totals", "/topics/plain/totals/part"):
            shown = console.get(f"{path}?" + "by=" + "".join(f"%{each:02x}" for each in name.encode()))
            assert shown.status in (200, 400), shown.words
            assert HOSTILE not in shown.text and "Traceback" not in shown.text
    assert console.get("/topics/nosuch/totals").status == 404


def test_the_query_has_names_as_names() -> None:
    typed, plain = fields_of(SubjectEntry("s", 1, 1, "PROTOBUF", "message M {}", ())), fields_of(None)
    assert 'value."a""b"' in totals_query("t", typed, 'a"b', "", 5)
    assert "topic('o''clock', last := 5)" in totals_query("o'clock", plain, "", "", 5)
    assert """try_cast(value as json)->>'$."it''s"'""" in totals_query("t", plain, "it's", "", 5)
    with pytest.raises(WrongInput):
        totals_query("t", plain, 'a"b', "", 5)


@pytest.mark.parametrize("text", ["[", "[]", '{"fields": 1}', '{"fields": [1, {"name": 2}]}', '"string"'])
def test_strange_schemas_have_no_fields(text: str) -> None:
    for kind in ("AVRO", "JSON"):
        found = fields_of(SubjectEntry("s", 1, 1, kind, text, ()))
        assert found == (True, (), ())


def test_many_fields_are_not_all_offered() -> None:
    fields = [{"name": f"f{number}", "type": "string"} for number in range(1_000)]
    text = json.dumps({"type": "record", "name": "R", "fields": fields})
    assert len(fields_of(SubjectEntry("s", 1, 1, "AVRO", text, ())).texts) == limits.CONSOLE_TOTALS_FIELDS_MAX
