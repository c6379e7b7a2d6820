"""Dead letters: real ones of a share group and of a contract; browsing, editing and sending them back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape

import pytest
from tests.console.consoles import Visitor, running_console
from tests.console.pages.groups.people import token, weak_visitor
from tests.server.share_talk import REJECT, SMALL, Queue
from tests.support.requests.raw import RawConnection

from ottla.client.admin.configs import Change
from ottla.client.blocking.blocking import Blocking
from ottla.client.consumer.ranges import ConsumedRecord, Span
from ottla.client.registry import RegistryOptions, SchemaRegistry
from ottla.console.options import ConsoleOptions
from ottla.model import limits
from ottla.model.resources import Resource
from ottla.operations.payloads import PayloadType, SubjectEncoder
from ottla.records.record import NO_OFFSET, Record
from ottla.schemas.schema import SchemaSource, SchemaType
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.secure import SecureBroker

SAID = {"topic": "orders", "partition": "0", "offset": "7", "timestamp": "1000", "reason": "schema"}
EVIL = '<script>alert(1)</script>"><img src=x onerror=alert(2)>\u202e\x00'


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), SMALL) as broker:
        yield broker


@pytest.fixture(scope="module")
def client(broker: EmbeddedBroker) -> Iterator[Blocking]:
    with Blocking(broker.bootstrap) as client:
        yield client


@pytest.fixture(scope="module")
def queue(broker: EmbeddedBroker) -> Iterator[Queue]:
    """A share group that has rejected three of four records."""
    with (
        RawConnection(broker.bootstrap) as connection,
        Queue(broker, connection, ottla_share_dlq_topic="graves") as queue,
    ):
        queue.put(
            Record(NO_OFFSET, 1_000, b"k", b"bad", (("trace", b"7"),)),
            Record(NO_OFFSET, 2_000, None, b"good"),
            Record(NO_OFFSET, 3_000, b"\x00\xff", EVIL.encode()),
            Record(NO_OFFSET, 4_000, b"k", None, (("h", None), ("b", b"\xff"))),
        )
        member = queue.join()
        member.poll()
        member.poll([(0, 0, [REJECT]), (2, 3, [REJECT, REJECT])])
        member.heartbeat(-1)
        yield queue


def put_letter(client: Blocking, letters: str, value: bytes | None = b"v", **said: str) -> None:
    """Put a letter into a topic as Ottla's contracts do, unless other things are said of it."""
    headers = [(f"ottla.dlq.{name}", text.encode()) for name, text in {**SAID, **said}.items()]
    client.run(client.inner.send(letters, value, headers=headers))


def records(client: Blocking, topic: str) -> list[ConsumedRecord]:
    count = client.admin.topics.describe(topic).partition_count
    reader = client.ranges([Span(topic, index) for index in range(count)])
    return list(client.iterate(reader.records()))


def new_topic(client: Blocking, name: str, partitions: int = 1) -> None:
    if name not in client.admin.topics.names():
        client.admin.topics.create(name, partitions)


def test_topics_are_found(client: Blocking, queue: Queue, visitor: Visitor) -> None:
    new_topic(client, "payments-dlq")
    new_topic(client, "typed")
    client.admin.configs.alter(
        Resource.topic("typed"),
        [Change("ottla.schema.validation", "id"), Change("ottla.schema.validation.action", "dlq")],
    )
    words = visitor.get("/letters").words
    assert f"graves share group {queue.group} 3" in words
    assert "payments-dlq its own name 0" in words
    assert "typed.dlq contract of typed" in words
    assert "Letter" in visitor.get("/letters?topic=graves").words


def test_letters_with_their_provenance(client: Blocking, queue: Queue, visitor: Visitor) -> None:
    page = visitor.get("/letters/graves")
    assert f"rejected {queue.topic} {queue.group} k bad 3 B" in page.words
    assert "3 letters" in page.words and "<script>alert" not in page.text and "\u202e" not in page.text
    assert "0 of 3 letters" in visitor.get("/letters/graves?q=nowhere").words
    assert "0 letters" in visitor.get("/letters/graves?reason=schema").words
    one = visitor.get("/letters/graves/0/1")
    assert f"Topic {queue.topic} Partition and offset 0:2" in one.words
    assert f"Share group {queue.group} Deliveries 1" in one.words
    assert "<script>alert" not in one.text and "<img" not in one.text and "\u202e" not in one.text
    assert "b ff" in visitor.get("/letters/graves/0/2").words, "bytes that are no text are hexadecimal digits"
    assert f"/topics/{queue.topic}/records/0/2" in one.text and "/topics/graves/records/0/1" in one.text
    for place in ("0/99", "7/0", "x/0", "0/-1"):
        assert visitor.get(f"/letters/graves/{place}").status in (400, 404)
    assert visitor.get("/letters/nosuch").status == 404


def test_chosen_letters_are_sent_back_and_no_others(client: Blocking, queue: Queue, visitor: Visitor) -> None:
    before = len(records(client, queue.topic))
    assert "no letter is chosen" in visitor.send("/letters/graves", "/letters/graves/preview").words
    assert visitor.send("/letters/graves", "/letters/graves/preview", letter="five").status == 400
    assert "there is no letter" in visitor.send("/letters/graves", "/letters/graves/preview", letter="0:99").words
    preview = visitor.send("/letters/graves", "/letters/graves/preview", letter="0:0")
    assert "1 letters would be sent" in preview.words and f"{queue.topic} 1" in preview.words
    assert len(records(client, queue.topic)) == before, "a preview sends nothing"
    (places,) = re.findall('name="places" value="([^"]*)"', preview.text)
    fields = {"_token": token(visitor, "/letters/graves/redrive"), "places": unescape(places)}
    done = visitor.post("/letters/graves/redrive", fields)
    assert "1 of 1 letters were sent to where they come from." in done.words
    (sent,) = records(client, queue.topic)[before:]
    assert (sent.key, sent.value) == (b"k", b"bad")
    assert sent.headers == (("trace", b"7"), ("ottla.dlq.redriven-from", b"graves-0@0"))


def test_all_that_match_go_to_another_topic(client: Blocking, queue: Queue, visitor: Visitor) -> None:
    new_topic(client, "mixed.dlq", 2)
    new_topic(client, "elsewhere", 3)
    for number in range(5):
        put_letter(client, "mixed.dlq", b"%d" % number, error="<b>wrong</b>")
    put_letter(client, "mixed.dlq", b"typed", reason="it ends too early")
    client.send_all("mixed.dlq", [(None, b"no letter")])
    page = visitor.get("/letters/mixed.dlq")
    assert "1 of the records here are no dead letters" in page.words and "schema 5" in page.words
    assert "<b>wrong" not in page.text and "<b>wrong</b>" in page.words and "it ends too early" in page.words
    preview = "/letters/mixed.dlq/redrive?reason=schema&to=elsewhere"
    assert "elsewhere 5" in visitor.get(preview).words
    assert visitor.get("/letters/mixed.dlq/redrive?to=nosuch").status == 404
    assert "5 of 5 letters were sent to elsewhere." in visitor.send(preview, "/letters/mixed.dlq/redrive").words
    assert sorted(each.value or b"" for each in records(client, "elsewhere")) == [b"0", b"1", b"2", b"3", b"4"]


def test_what_there_is_no_time_for_can_be_gone_on_with(
    client: Blocking, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_topic(client, "slow.dlq")
    new_topic(client, "patient")
    put_letter(client, "slow.dlq", topic="patient")
    monkeypatch.setattr(limits, "CONSOLE_LETTERS_SEND_S", -1)
    page = visitor.send("/letters/slow.dlq/redrive", "/letters/slow.dlq/redrive")
    assert "0 of 1 letters were sent" in page.words and "Go on with 1 letter" in page.words
    assert "there was no time for it" in page.words
    assert not records(client, "patient")
    for text in ("{", "[1]", "[[0]]", '[["a", 1]]', "[[-1, 0]]", "[[0, 1e999]]", "[" * 200_000):
        assert visitor.send("/letters/slow.dlq/redrive", "/letters/slow.dlq/redrive", places=text).status == 400
    fields = {"_token": token(visitor, "/letters/slow.dlq/redrive"), "places": "[[0, 0], [0, 1]]"}
    monkeypatch.setattr(limits, "CONSOLE_LETTERS_SENT_MAX", 1)
    assert "at most 1 letters are sent" in visitor.post("/letters/slow.dlq/redrive", fields).words


def test_an_outcome_for_each_letter(client: Blocking, visitor: Visitor) -> None:
    """What was not sent can be gone on with, and what was sent does not come twice."""
    for name in ("mishap.dlq", "roomy", "narrow"):
        new_topic(client, name)
    client.admin.configs.alter(Resource.topic("narrow"), [Change("max.message.bytes", "200")])
    for target in ("narrow", "roomy", "roomy"):
        put_letter(client, "mishap.dlq", b"v" * 1_000, topic=target)
    fields = {"_token": token(visitor, "/letters/mishap.dlq/redrive"), "places": "[[0,0],[0,1],[0,2],[0,9]]"}
    page = visitor.post("/letters/mishap.dlq/redrive", fields)
    assert page.status == 200 and "2 of 4 letters were sent" in page.words, page.words
    assert "Not sent: 1" in page.words and "MESSAGE_TOO_LARGE" in page.words and "Perhaps sent" not in page.words
    assert "Gone: 1" in page.words and "Go on with 1 letter" in page.words
    (places,) = re.findall('name="places" value="([^"]*)"', page.text)
    assert json.loads(unescape(places)) == [[0, 0]]
    client.admin.configs.alter(Resource.topic("narrow"), [Change("max.message.bytes", "20000")])
    again = visitor.post("/letters/mishap.dlq/redrive", fields | {"places": unescape(places)})
    assert "1 of 1 letters were sent" in again.words
    assert (len(records(client, "roomy")), len(records(client, "narrow"))) == (2, 1)


def test_earlier_letters(client: Blocking, visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    new_topic(client, "many.dlq")
    for number in range(5):
        put_letter(client, "many.dlq", b"value-%d" % number)
    monkeypatch.setattr(limits, "CONSOLE_LETTERS_LOOKED_AT", 2)
    first, last = visitor.get("/letters/many.dlq"), visitor.get("/letters/many.dlq?back=2")
    assert "value-4" in first.words and "value-2" not in first.words and "Earlier letters" in first.words
    assert "value-2" in visitor.get("/letters/many.dlq?back=1").words
    assert "value-0" in last.words and "Earlier letters" not in last.words and "Later letters" in last.words
    monkeypatch.setattr(limits, "CONSOLE_LETTERS_LOOKED_AT_BYTES", 3)
    assert "only the first 3 B" in visitor.get("/letters/many.dlq").words


def test_a_letter_is_edited_and_sent(client: Blocking, queue: Queue, visitor: Visitor) -> None:
    new_topic(client, "fixed", 2)
    edit, send = "/letters/graves/0/2/edit", "/letters/graves/0/2/send"
    assert "<script>alert" not in visitor.get("/letters/graves/0/1/edit").text
    fields = {
        "topic": "fixed",
        "partition": "1",
        "key": "00 ff",
        "key_format": "hex",
        "value": "first\r\n<b>second</b>",
        "value_format": "text",
        "headers": "h=null:\r\nb=hex:ff\r\nnew=x\r\nottla.dlq.reason=forged",
    }
    for name, wrong, told in (
        ("key", "0", "the key is not hex"),
        ("headers", "h: x", "a header is typed as NAME=VALUE"),
        ("headers", "h=hex:0", "the header h is not hex"),
        ("partition", "2", "has the partitions 0 to 1"),
        ("value_format", "odd", "there is no format"),
        ("topic", " ", "topic is missing"),
    ):
        refused = visitor.send(edit, send, **{**fields, name: wrong})
        assert refused.status == 400 and told in refused.words, refused.words
        assert "&lt;b&gt;second" in refused.text, "the form keeps what was typed"
    assert not records(client, "fixed")
    assert "it is at offset 0 of fixed-1" in visitor.send(edit, send, **fields).words
    (sent,) = records(client, "fixed")
    assert (sent.partition, sent.key, sent.value) == (1, b"\x00\xff", b"first\n<b>second</b>")
    assert sent.headers == (
        ("h", None), ("b", b"\xff"), ("new", b"x"), ("ottla.dlq.redriven-from", b"graves-0@2"),
    )  # fmt: skip
    assert visitor.send(edit, send, **{**fields, "topic": "nosuch"}).status == 404


def test_a_megabyte(client: Blocking, visitor: Visitor) -> None:
    new_topic(client, "huge.dlq")
    put_letter(client, "huge.dlq", b"<" * 1_000_000, topic="elsewhere")
    new_topic(client, "elsewhere", 3)
    assert len(visitor.get("/letters/huge.dlq").text) < 100_000
    one = visitor.get("/letters/huge.dlq/0/0")
    assert "cut at 256.0 KiB" in one.words and "too large to be edited" in one.words
    assert visitor.get("/letters/huge.dlq/0/0/edit").status == 400
    assert "1 of 1 letters" in visitor.send("/letters/huge.dlq/redrive", "/letters/huge.dlq/redrive").words


def test_an_avro_letter_is_edited_as_json(broker: EmbeddedBroker, client: Blocking) -> None:
    registry = RegistryOptions.of(broker.registry.url)
    schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}
    with running_console(ConsoleOptions(broker.bootstrap, port=0, registry=registry)) as console:
        visitor = Visitor(console.url)
        known = SchemaRegistry(registry)
        known.register("avro-value", SchemaSource(json.dumps(schema), SchemaType.AVRO))
        payload = SubjectEncoder(known, "avro-value", PayloadType.auto).encode({"n": 7})
        new_topic(client, "avro")
        new_topic(client, "avro.dlq")
        put_letter(client, "avro.dlq", payload, topic="avro")
        assert '"n": 7' in visitor.get("/letters/avro.dlq/0/0").words
        edit, send = "/letters/avro.dlq/0/0/edit", "/letters/avro.dlq/0/0/send"
        assert 'value="registry" selected' in visitor.get(edit).text
        fields = {"topic": "avro", "key_format": "null", "value_format": "registry"}
        assert "not a value of avro-value" in visitor.send(edit, send, value='{"n": "x"}', **fields).words
        for unreadable in ("{", "[" * 200_000):
            shown = visitor.send(edit, send, value=unreadable, **fields)
            assert (shown.status, "the value is not JSON" in shown.words) == (400, True)
        assert "it is at offset 0 of avro-0" in visitor.send(edit, send, value='{"n": 8}', **fields).words
        (sent,) = records(client, "avro")
        assert sent.value == SubjectEncoder(known, "avro-value", PayloadType.auto).encode({"n": 8})


def test_a_user_without_rights(tmp_path_factory: pytest.TempPathFactory) -> None:
    with (
        SecureBroker(tmp_path_factory.mktemp("secure")) as broker,
        Blocking(broker.bootstrap, security=broker.security) as client,
        weak_visitor(broker, "weak") as visitor,
    ):
        new_topic(client, "orders")
        new_topic(client, "orders.dlq")
        put_letter(client, "orders.dlq")
        assert "orders.dlq" not in visitor.get("/letters").words
        for path in ("/letters/orders.dlq", "/letters/orders.dlq/0/0", "/letters/orders.dlq/redrive"):
            assert visitor.get(path).status in (403, 404), path
        for right in ("Describe", "Read"):
            broker.allow("weak", right, topic="orders.dlq")
        broker.allow("weak", "Describe", topic="orders")
        assert "schema orders" in visitor.get("/letters/orders.dlq").words
        refused = visitor.send("/letters/orders.dlq/redrive", "/letters/orders.dlq/redrive")
        assert refused.status == 403, refused.words
        refused = visitor.send("/letters/orders.dlq/0/0/edit", "/letters/orders.dlq/0/0/send", value="v")
        assert refused.status in (400, 403), refused.words
        assert not records(client, "orders")
