"""Transactions: open ones, those that hang, aborting them."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import KafkaException, Producer
from tests.console.consoles import Visitor
from tests.console.pages.groups.people import HOSTILE, fill, token, weak_visitor
from tests.support.requests.same import Side
from tests.support.requests.transactional import Transactional

from ottla.client.blocking.blocking import Blocking
from ottla.console.named import named_path
from ottla.model.ids import TopicPartition
from ottla.observe import logs
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.secure import SecureBroker

HELD = "/transactions/held/partitions"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A broker that takes records into transactions of which its coordinator knows nothing, as old Kafkas did."""
    trusting = {"transaction.partition.verification.enable": "false"}
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), trusting) as broker:
        yield broker


@contextmanager
def opened(settings: dict[str, str], name: str, topic: str, count: int = 3) -> Iterator[Producer]:
    """A transaction of librdkafka's producer that stays open."""
    producer = Producer({**settings, "transactional.id": name, "transaction.timeout.ms": 600_000})
    producer.init_transactions(30)
    producer.begin_transaction()
    for _ in range(count):
        producer.produce(topic, b"x", partition=0)
    producer.flush(30)
    yield producer


def open_in(broker: EmbeddedBroker, topic: str, name: str) -> bool:
    with Blocking(broker.bootstrap, security=broker.security) as client:
        return any(
            each.current_txn_start_offset >= 0 for each in client.admin.topics.producers(TopicPartition(topic, 0))
        )


@pytest.fixture
def action_log() -> Iterator[io.StringIO]:
    """What the console of `ottla up` logs."""
    stream = io.StringIO()
    handler = logs.set_up(stream, level="WARNING")
    yield stream
    logs.tear_down(handler)


def test_an_open_transaction_is_shown_and_aborted(
    broker: EmbeddedBroker, visitor: Visitor, action_log: io.StringIO
) -> None:
    fill(broker.bootstrap, "paid", 5)
    with opened({"bootstrap.servers": broker.bootstrap}, "pay", "paid") as producer:
        assert "pay Ongoing" in visitor.get("/transactions?state=Ongoing").words
        page = visitor.get("/transactions/pay")
        assert "paid-0 5 8 3" in page.words and "Ends by itself after 10 min" in page.words
        (*_, last) = visitor.stream(f"{HELD}/run")
        assert last["into"] == "found" and "/transactions/pay" in last["html"] and "hangs" not in last["html"]
        preview = visitor.get("/transactions/pay/abort")
        assert "up to 3 records" in preview.words and "Its producer is fenced" in preview.words
        wrong = visitor.send("/transactions/pay/abort", "/transactions/pay/abort", name="pa", reason="r")
        assert wrong.status == 400 and open_in(broker, "paid", "pay")
        other = {"name": "pay", "reason": "r", "started_ms": "1"}
        shown = visitor.send("/transactions/pay/abort", "/transactions/pay/abort", **other)
        assert "another one has begun" in shown.words
        done = visitor.send("/transactions/pay/abort", "/transactions/pay/abort", name="pay", reason="ticket\n7")
        assert "is aborted, and its producer fenced" in done.words and not open_in(broker, "paid", "pay")
        assert "everybody at 127.0.0.1: the transaction of pay was aborted; reason: ticket" in action_log.getvalue()
        with pytest.raises(KafkaException):
            producer.commit_transaction(30)
        refused = visitor.get("/transactions/pay/abort")
        assert "There is no open transaction to abort" in refused.words and "Type the" not in refused.words


def test_a_hostile_transactional_id(broker: EmbeddedBroker, visitor: Visitor) -> None:
    fill(broker.bootstrap, "odd", 1)
    name = HOSTILE.replace("\x00", "")
    for each in (name, ".."):
        with opened({"bootstrap.servers": broker.bootstrap}, each, "odd"):
            for path in ("/transactions", named_path("transactions", each), named_path("transactions", each, "abort")):
                page = visitor.get(path)
                assert page.status == 200 and "<script>alert" not in page.text and "<img" not in page.text
                assert "\u202e" not in page.text
            to = named_path("transactions", each, "abort")
            assert "is aborted" in visitor.send(to, to, name=each, reason="r").words


def test_a_hanging_transaction_is_found_and_ended(
    broker: EmbeddedBroker, visitor: Visitor, action_log: io.StringIO
) -> None:
    with Blocking(broker.bootstrap) as client:
        client.admin.topics.create("hung")
    side = Side("ottla", broker.bootstrap)
    try:
        Transactional(side, "nobody").find().begin().produce("hung", version=10)
        (*_, last) = visitor.stream(f"{HELD}/run")
        assert "1 transactions hang" in last["html"] and "/transactions/in/hung/0/0" in last["html"]
        preview = visitor.get("/transactions/in/hung/0/0")
        assert "A marker is written into hung-0" in preview.words and "Held back 1 records" in preview.words
        to = "/transactions/in/hung/0/0"
        assert "not the hanging transaction" in visitor.send(to, to, reason="r", producer_id="999999").words
        assert "that hung in hung-0 is aborted" in visitor.send(to, to, reason="r").words
        assert "the transaction that hung in hung-0 since offset 0 was aborted; reason: r" in action_log.getvalue()
        assert not open_in(broker, "hung", "nobody")
        gone = visitor.get(to)
        assert gone.status == 400 and "has ended meanwhile" in gone.words
    finally:
        side.close()


def test_a_known_transaction_is_not_aborted_in_one_partition(broker: EmbeddedBroker, visitor: Visitor) -> None:
    fill(broker.bootstrap, "known", 2)
    with opened({"bootstrap.servers": broker.bootstrap}, "familiar", "known") as producer:
        page = visitor.get("/transactions/in/known/0/2")
        assert "abort it by its id" in page.words
        with Blocking(broker.bootstrap) as client:
            (found,) = client.admin.topics.producers(TopicPartition("known", 0))[-1:]
        fields = {"_token": token(visitor, "/transactions/familiar/abort"), "reason": "r"}
        shown = visitor.post("/transactions/in/known/0/2", {**fields, "producer_id": str(found.producer_id)})
        assert shown.status == 400 and open_in(broker, "known", "familiar")
        producer.abort_transaction(30)


@pytest.mark.parametrize("path", ["no-one", "in/t/x/0", "in/t/0/-1", "in/nosuch/0/0", "in/paid/9/0"])
def test_what_is_not_there(visitor: Visitor, path: str) -> None:
    began_s = time.monotonic()
    assert visitor.get(f"/transactions/{path}").status in (400, 404)
    assert time.monotonic() - began_s < 10, "nobody waits for a partition that is not there"


def test_a_user_without_rights(tmp_path_factory: pytest.TempPathFactory) -> None:
    with SecureBroker(tmp_path_factory.mktemp("secure")) as broker:
        with Blocking(broker.bootstrap, security=broker.security) as client:
            client.admin.topics.create("paid", 1)
        with opened(broker.client_settings(), "theirs", "paid"), weak_visitor(broker, "weak") as visitor:
            assert "theirs" not in visitor.get("/transactions").words
            assert visitor.get("/transactions/theirs").status in (403, 404)
            broker.allow("weak", "Describe", transactional_id="theirs")
            broker.allow("weak", "Describe", topic="paid")
            assert "theirs Ongoing" in visitor.get("/transactions").words
            to = "/transactions/theirs/abort"
            refused = visitor.send(to, to, name="theirs", reason="r")
            assert refused.status == 403 and "No permission" in refused.words
            assert open_in(broker, "paid", "theirs")
