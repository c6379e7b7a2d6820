"""Records in the console: pages, one record, searches, the live tail, producing. The contents are hostile."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
import time
from collections.abc import Iterator
from html import unescape

import pytest
from tests.console.consoles import Visitor, running_console
from tests.support.waiting import until

from ottla.client.admin import Admin
from ottla.client.consumer.ranges import ConsumedRecord, RangeReader, Span
from ottla.client.producer.producer import Producer, ProducerOptions
from ottla.client.registry import RegistryOptions, SchemaRegistry
from ottla.console.options import CLIENT_ID, ConsoleOptions
from ottla.model import limits
from ottla.operations.payloads import PayloadType, SubjectEncoder
from ottla.schemas.schema import SchemaSource, SchemaType
from ottla.testing.broker import EmbeddedBroker

AVRO = '{"type":"record","name":"O","fields":[{"name":"id","type":"long"},{"name":"user","type":"string"}]}'
PROTOBUF = 'syntax = "proto3"; message P { int64 id = 1; string user = 2; }'
JSON_SCHEMA = '{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}'
HOSTILE = (
    b"<script>alert(1)</script>",
    b'"><img src=x onerror=alert(1)>',
    "\u202eevil\u202c".encode(),
    b"a\0b",
    b"\xff\xfe",
    b"x" * 900_000,
    b'{"a":' + b"[" * 5_000,
    b"\x9f" + b"\x91" * 5_000,
    b"\0\0\0\0\1",
    b"\1" + b"\7" * 16,
    b"",
    b"=1+cmd()",
)


@pytest.fixture(scope="module")
def registry_visitor(broker: EmbeddedBroker) -> Iterator[Visitor]:
    """A visitor of a console that knows a registry."""
    options = ConsoleOptions(broker.bootstrap, port=0, registry=RegistryOptions.of(broker.registry.url))
    with running_console(options) as console:
        yield Visitor(console.url)


def make(broker: EmbeddedBroker, topic: str, partitions: int = 1) -> None:
    async def work() -> None:
        async with Admin(broker.bootstrap) as admin:
            await admin.topics.create(topic, partitions)

    asyncio.run(work())


def send(
    broker: EmbeddedBroker, topic: str, *values: bytes | None, key: bytes | None = None, partitions: int = 1
) -> None:
    async def work() -> None:
        async with Producer(broker.bootstrap, ProducerOptions(batch_size_bytes=1_000)) as producer:
            for number, value in enumerate(values):
                headers = [("trace", b"t%d" % number)]
                await producer.post(
                    topic, value, key, headers=headers, partition=number % partitions, timestamp=1_000 * (number + 1)
                )

    asyncio.run(work())


def read(broker: EmbeddedBroker, topic: str, partition: int = 0) -> list[ConsumedRecord]:
    async def work() -> list[ConsumedRecord]:
        async with RangeReader(broker.bootstrap, [Span(topic, partition)]) as reader:
            return [each async for each in reader]

    return asyncio.run(work())


def offsets(text: str) -> list[tuple[int, int]]:
    """The partition and offset of each row of a table."""
    found = re.findall(r'<td class="number">(\d+)</td><td class="number"><a href="[^"]*">(\d+)</a>', text)
    return [(int(partition), int(offset)) for partition, offset in found]


def way(text: str, name: str) -> str:
    """The address of a link of the page's pager."""
    return unescape(re.findall(rf'<a href="([^"]*)">{name}</a>', text)[0])


# --- pages -----------------------------------------------------------------------------------------------------------


def test_pages_to_and_fro(broker: EmbeddedBroker, visitor: Visitor) -> None:
    make(broker, "paged", 2)
    send(broker, "paged", *(b"%d" % number for number in range(60)), partitions=2)
    newest = visitor.get("/topics/paged/records?count=25")
    assert "25 records of 60 offsets in 2 partitions" in newest.words
    rows = offsets(newest.text)
    assert rows[:3] == [(1, 29), (0, 29), (1, 28)]
    older = visitor.get(way(newest.text, "Earlier"))
    oldest = visitor.get(way(older.text, "Earlier"))
    assert rows + offsets(older.text) + offsets(oldest.text) == [(p, o) for o in range(29, -1, -1) for p in (1, 0)]
    again = visitor.get(way(oldest.text, "Later"))
    assert sorted(offsets(again.text)) == sorted(offsets(older.text))
    assert not offsets(visitor.get(way(oldest.text, "Earlier")).text)
    send(broker, "paged", b"new")
    assert offsets(visitor.get(way(newest.text, "Later")).text) == [(0, 30)]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("start=oldest&count=3", [(0, 0), (1, 0), (0, 1)]),
        ("start=oldest&count=3&order=newest", [(0, 1), (1, 0), (0, 0)]),
        ("start=newest&count=3&order=oldest", [(1, 8), (0, 9), (1, 9)]),
        ("start=offset&from=8&count=10", [(0, 8), (1, 8), (0, 9), (1, 9)]),
        ("start=offset&from=8&count=10&partition=1", [(1, 8), (1, 9)]),
        ("start=offset&from=99", []),
        ("start=time&from=18000&count=10", [(1, 8), (0, 9), (1, 9)]),
        ("start=time&from=2100-01-01", []),
        ("partition=0&count=2", [(0, 9), (0, 8)]),
        ("committed=on&count=1", [(1, 9)]),
    ],
)
def test_where_pages_begin(broker: EmbeddedBroker, visitor: Visitor, query: str, rows: list[tuple[int, int]]) -> None:
    if "/topics/begun" not in visitor.get("/topics?q=begun").text:
        make(broker, "begun", 2)
        send(broker, "begun", *(b"%d" % number for number in range(20)), partitions=2)
    assert offsets(visitor.get(f"/topics/begun/records?{query}").text) == rows


@pytest.mark.parametrize(
    "query",
    [
        "partition=9",
        "partition=x",
        "start=luck",
        "start=offset&from=x",
        "start=time&from=soon",
        "count=100000",
        "order=luck",
        "key=luck",
        "place=luck",
        "place=0.1-" * 100,
    ],
)
def test_a_wrong_question_is_answered_in_a_sentence(broker: EmbeddedBroker, visitor: Visitor, query: str) -> None:
    if "/topics/asked" not in visitor.get("/topics?q=asked").text:
        make(broker, "asked")
    shown = visitor.get(f"/topics/asked/records?{query}")
    assert (shown.status, "That is not possible" in shown.words) == (400, True)


def test_open_transactions_are_left_out_if_wanted(broker: EmbeddedBroker, visitor: Visitor) -> None:
    make(broker, "open")

    async def work() -> tuple[str, str]:
        async with Producer(broker.bootstrap, ProducerOptions(transactional_id="open")) as producer:
            async with producer.transaction():
                await producer.send("open", b"open", partition=0)
                found = [
                    await asyncio.to_thread(visitor.get, f"/topics/open/records?{query}")
                    for query in ("", "committed=on")
                ]
            return found[0].words, found[1].words

    every, committed = asyncio.run(work())
    assert "1 records of 1 offsets" in every
    assert "0 records of 0 offsets" in committed


# --- contents --------------------------------------------------------------------------------------------------------


def test_contents_by_the_registry(broker: EmbeddedBroker, registry_visitor: Visitor) -> None:
    make(broker, "framed")
    registry = SchemaRegistry(RegistryOptions.of(broker.registry.url))
    values = []
    for kind, text in ((SchemaType.AVRO, AVRO), (SchemaType.PROTOBUF, PROTOBUF), (SchemaType.JSON, JSON_SCHEMA)):
        registry.register(f"framed-{kind}", SchemaSource(text, kind))
        values.append(
            SubjectEncoder(registry, f"framed-{kind}", PayloadType.auto).encode(
                {"id": 7} if kind is SchemaType.JSON else {"id": 7, "user": "Änne"}
            )
        )
    send(broker, "framed", *values, b"\0\0\0\x27\x0funknown")
    shown = registry_visitor.get("/topics/framed/records").words
    assert '{"id":7,"user":"Änne"} schema 1' in shown
    assert '{"id":"7","user":"Änne"} schema 2' in shown
    assert '{"id":7} schema 3' in shown
    assert "0000002" in shown
    assert "the registry answered 40403" in shown.replace("schema registry", "registry")
    one = registry_visitor.get("/topics/framed/records/0/0").words
    assert '"user": "Änne"' in one
    assert "schema 1" in one


def test_formats_are_chosen_for_keys_and_values(broker: EmbeddedBroker, visitor: Visitor) -> None:
    make(broker, "chosen")
    send(broker, "chosen", b"\x81\xa1a\x01", key=b"\0\0\0\0\0\0\0\7")
    shown = visitor.get("/topics/chosen/records?key=number&value=hex").words
    assert "7 number 81a16101 hex" in shown
    assert '{"a":1} msgpack' in visitor.get("/topics/chosen/records").words
    one = visitor.get("/topics/chosen/records/0/0?value=hex").words
    assert "00000000 81 a1 61 01" in one


@pytest.mark.parametrize(
    "path", ["records", "live/part", "search/run?in=anywhere&text=a", "records?value=json&key=msgpack"]
)
def test_hostile_contents_are_text(broker: EmbeddedBroker, registry_visitor: Visitor, path: str) -> None:
    if "/topics/hostile" not in registry_visitor.get("/topics?q=hostile").text:
        make(broker, "hostile")

        async def work() -> None:
            async with Producer(broker.bootstrap) as producer:
                for value in HOSTILE:
                    headers = [(value[:30].decode("utf-8", "replace"), value[:100])]
                    await producer.send("hostile", value, value[:100], headers=headers, partition=0)

        asyncio.run(work())
    shown = registry_visitor.get(f"/topics/hostile/{path}")
    assert shown.status == 200
    assert len(shown.text) < 200_000
    _check_harmless(shown.text)


@pytest.mark.parametrize("offset", range(len(HOSTILE)))
def test_one_hostile_record(broker: EmbeddedBroker, registry_visitor: Visitor, offset: int) -> None:
    test_hostile_contents_are_text(broker, registry_visitor, "records")
    for path in (f"records/0/{offset}", f"produce?partition=0&offset={offset}"):
        shown = registry_visitor.get(f"/topics/hostile/{path}")
        assert shown.status == (400 if "produce" in path and len(HOSTILE[offset]) > 500_000 else 200)
        assert len(shown.text) < 700_000
        _check_harmless(shown.text)


def _check_harmless(text: str) -> None:
    assert "<script>alert" not in text
    assert "<img" not in text
    assert "\u202e" not in text
    assert "\0" not in text


def test_one_record_and_its_bytes(broker: EmbeddedBroker, visitor: Visitor) -> None:
    make(broker, "single")
    send(broker, "single", b'{"n": [1]}', None, key=b"k")
    shown = visitor.get("/topics/single/records/0/0")
    assert "Time 1970-01-01" in shown.words
    assert '"n": [ 1 ]' in shown.words
    assert "trace t0" in shown.words
    assert visitor.get("/topics/single/records/0/0/value").text == '{"n": [1]}'
    assert "attachment" in visitor.get("/topics/single/records/0/0/value").headers["content-disposition"]
    assert "It is a tombstone" in visitor.get("/topics/single/records/0/1").words
    for path in ("0/2", "0/99999999999999999999", "1/0", "x/0", "0/-1", "0/1/value", "0/0/else"):
        assert visitor.get(f"/topics/single/records/{path}").status == 404, path


def test_a_partition_that_does_not_exist_is_not_waited_for(broker: EmbeddedBroker, visitor: Visitor) -> None:
    make(broker, "short")
    began_s = time.monotonic()
    shown = visitor.get("/topics/short/records/99/0")
    assert (shown.status, "topic short has no partition 99" in shown.words) == (404, True)
    assert time.monotonic() - began_s < limits.CONSOLE_DELIVERY_MS / 1_000


def test_a_page_is_kept_as_a_file(broker: EmbeddedBroker, visitor: Visitor) -> None:
    make(broker, "filed")
    send(broker, "filed", b'{"a":1}', b"=1+cmd()", b'say "x",\ny', key=b"@k")
    page = visitor.get("/topics/filed/records?start=oldest&count=2")
    rows = list(csv.reader(io.StringIO(visitor.get(way(page.text, "CSV")).text)))
    assert [row[:5] for row in rows[1:]] == [
        ["0", "0", "1000", "'@k", '{"a":1}'],
        ["0", "1", "2000", "'@k", "'=1+cmd()"],
    ]
    newest = visitor.get("/topics/filed/records?count=2")
    send(broker, "filed", b"later")
    kept = json.loads(visitor.get(way(newest.text, "JSON")).text)
    assert [(each["offset"], each["value"]) for each in kept] == [(2, 'say "x",\ny'), (1, "=1+cmd()")]
    assert kept[0]["headers"] == [["trace", "t2"]]


# --- searching -------------------------------------------------------------------------------------------------------


def test_a_search_streams_what_it_finds(broker: EmbeddedBroker, registry_visitor: Visitor) -> None:
    make(broker, "sought", 3)
    registry = SchemaRegistry(RegistryOptions.of(broker.registry.url))
    registry.register("sought-value", SchemaSource(AVRO, SchemaType.AVRO))
    encoder = SubjectEncoder(registry, "sought-value", PayloadType.auto)
    send(broker, "sought", *(encoder.encode({"id": n, "user": f"user {n % 10}"}) for n in range(90)), partitions=3)

    def found(query: str) -> list[tuple[int, int]]:
        parts = registry_visitor.stream(f"/topics/sought/search/run?{query}")
        hits = offsets("".join(each["html"] for each in parts if each["into"] == "found"))
        assert ("The search is over" if hits else "Nothing was found") in parts[-1]["html"]
        return hits

    assert len(found("in=value&text=USER%203")) == 9
    assert found("in=path&path=$.id%20==%2041") == [(2, 13)]
    assert found("in=path&path=$.user&text=user%209&partition=0") == [(0, 3), (0, 13), (0, 23)]
    assert found("in=header&text=trace=t8&until=3") == [(2, 2)]
    assert sorted(found("in=anywhere&text=user&since=29&until=30")) == [(0, 29), (1, 29), (2, 29)]
    assert sorted(found("in=value&text=user&since=1970-01-01T00:01:30%2B00:00")) == [(2, 29)]
    assert found("in=key&text=user") == []
    page = registry_visitor.get("/topics/sought/search?in=value&text=user")
    assert 'data-stream="/topics/sought/search/run?in=value&amp;text=user"' in page.text
    for query in ("in=value", "in=luck&text=a", "in=path&path=id", "in=path"):
        assert registry_visitor.get(f"/topics/sought/search?{query}").status == 400


def test_a_search_ends_after_so_many_hits(broker: EmbeddedBroker, visitor: Visitor) -> None:
    make(broker, "plenty")
    send(broker, "plenty", *[b"same"] * 1_000)
    parts = visitor.stream("/topics/plenty/search/run?in=value&text=same")
    assert "ended after 200 records" in parts[-1]["html"]
    assert sum(each["html"].count("<tr>") for each in parts if each["into"] == "found") == 200


def test_who_leaves_ends_the_search(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    make(broker, "left")
    send(broker, "left", *[b"value"] * 10)
    monkeypatch.setattr(limits, "CONSOLE_REQUESTS_PER_SESSION_MAX", 1)
    fetches = broker.fail("Fetch", delay="30s", times=None, client_id=CLIENT_ID)
    # A console of its own: what it fetches is late for the rest of its connection.
    with running_console(ConsoleOptions(broker.bootstrap, port=0)) as console:
        visitor = Visitor(console.url)
        try:
            with visitor.opened("/topics/left/search/run?in=value&text=v"):
                until(lambda: fetches.hits)
                assert visitor.get("/topics").status == 503
            until(lambda: visitor.get("/topics").status, lambda status: status == 200, timeout_s=25)
        finally:
            broker.heal()


# --- the live tail ---------------------------------------------------------------------------------------------------


def test_the_tail_shows_what_came_since(broker: EmbeddedBroker, visitor: Visitor) -> None:
    make(broker, "tailed", 2)
    send(broker, "tailed", b"before")
    page = visitor.get("/topics/tailed/live")
    part = unescape(re.findall(r'data-live="([^"]*)"', page.text)[0])
    assert offsets(visitor.part(part).text) == [(0, 0)]
    send(broker, "tailed", b"one", b"two", b"needle", partitions=2)
    assert offsets(visitor.part(part).text) == [(0, 2), (1, 0), (0, 1), (0, 0)]
    assert offsets(visitor.part(f"{part}&text=NEEDLE").text) == [(0, 2)]
    paused = visitor.get(way(page.text, "Pause"))
    assert ("data-live" in paused.text, offsets(paused.text)) == (False, [(0, 0)])
    cleared = visitor.get(way(visitor.get("/topics/tailed/live").text, "Clear"))
    part = unescape(re.findall(r'data-live="([^"]*)"', cleared.text)[0])
    assert "Waiting for records" in visitor.part(part).words


# --- producing -------------------------------------------------------------------------------------------------------


def produce(visitor: Visitor, topic: str, **fields: str) -> str:
    form = {"key_format": "null", "value_format": "text", "partition": "", **fields}
    return visitor.send(f"/topics/{topic}/produce", f"/topics/{topic}/produce", **form).words


def test_records_are_produced(broker: EmbeddedBroker, visitor: Visitor) -> None:
    make(broker, "written", 2)
    said = produce(
        visitor,
        "written",
        key_format="text",
        key="k",
        value="one\r\ntwo",
        headers="a=b\r\nraw=hex:00ff\r\nnone=null:",
        partition="1",
    )
    assert "written to partition 1, offset 0" in said
    produce(visitor, "written", value_format="json", value='{ "a": 1 }', partition="0")
    produce(visitor, "written", value_format="hex", value="00 ff", partition="0")
    produce(visitor, "written", key_format="text", key="gone", value_format="null", partition="0")
    (record,) = read(broker, "written", 1)
    assert (record.key, record.value) == (b"k", b"one\ntwo")
    assert record.headers == (("a", b"b"), ("raw", b"\0\xff"), ("none", None))
    assert [each.value for each in read(broker, "written")] == [b'{"a":1}', b"\0\xff", None]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"value_format": "json", "value": "{kept"}, "the value is not JSON"),
        ({"value_format": "hex", "value": "kept"}, "the value is not hex"),
        ({"value_format": "luck", "value": "kept"}, "there is no format"),
        ({"value_format": "registry", "value": "kept"}, "no schema registry is known"),
        ({"partition": "7", "value": "kept"}, "has no partition 7"),
        ({"key": "kept", "value": "v"}, "a key is typed, but the key is to be null"),
        ({"headers": "a=hex:zz", "value": "kept"}, "is not hex"),
        ({"value": "kept" * 300_000}, "max.message.bytes"),
    ],
)
def test_what_cannot_be_produced_stays_in_the_form(
    broker: EmbeddedBroker, visitor: Visitor, fields: dict[str, str], said: str
) -> None:
    if "/topics/refused" not in visitor.get("/topics?q=refused").text:
        make(broker, "refused")
    form = {"key_format": "null", "value_format": "text", "partition": "", **fields}
    shown = visitor.send("/topics/refused/produce", "/topics/refused/produce", **form)
    assert shown.status == 400
    assert said in shown.words
    assert "kept" in shown.text
    assert read(broker, "refused") == []


def test_a_schema_says_what_does_not_fit(broker: EmbeddedBroker, registry_visitor: Visitor) -> None:
    make(broker, "typed")
    said = produce(registry_visitor, "typed", value_format="registry", value='{"id": 1}')
    assert "subject typed-value" in said
    SchemaRegistry(RegistryOptions.of(broker.registry.url)).register("typed-value", SchemaSource(AVRO, SchemaType.AVRO))
    assert "not a value of typed-value version 1" in produce(
        registry_visitor, "typed", value_format="registry", value='{"id": "x"}'
    )
    said = produce(registry_visitor, "typed", value_format="registry", value='{"id": 1, "user": "a"}')
    assert "written to partition 0, offset 0" in said
    again = registry_visitor.get("/topics/typed/produce?partition=0&offset=0").words
    assert '"user": "a"' in again
    (record,) = read(broker, "typed")
    assert (record.value or b"")[:1] == b"\0"


def test_a_record_is_edited_and_sent_again(broker: EmbeddedBroker, visitor: Visitor) -> None:
    make(broker, "again")
    send(broker, "again", b"\0raw\xff", key=b"key\n1")
    page = visitor.get("/topics/again/produce?partition=0&offset=0")
    assert "This is the record at offset 0" in page.words
    assert ">\n00 726177ff" in page.text
    said = visitor.send(
        "/topics/again/produce?partition=0&offset=0",
        "/topics/again/produce",
        key_format="text",
        key="key\r\n1",
        value_format="hex",
        value="00726177ff",
        headers="trace=t0",
        partition="0",
    ).words
    assert "offset 1" in said
    first, second = read(broker, "again")
    assert (first.key, first.value, first.headers) == (second.key, second.value, second.headers)
