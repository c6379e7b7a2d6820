"""`ottla group` and `ottla txn` against a broker with groups and transactions of stock clients."""

from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from tests.cli.conftest import Run
from tests.support.waiting import WAIT_S, until

from ottla.client.blocking.blocking import Blocking
from ottla.model.ids import TopicPartition as Place
from ottla.testing.broker import EmbeddedBroker

Ottla = Callable[..., Run]
RECORDS = 10


def consume(broker: EmbeddedBroker, group: str, count: int, **settings: object) -> Consumer:
    """A member that has read and committed `count` records."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "client.id": "reader",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )
    consumer.subscribe(["orders"])
    last = None
    for _ in range(count):
        last = until(lambda: consumer.poll(0.3), lambda message: message is not None and message.error() is None)
    consumer.commit(message=last, asynchronous=False)
    return consumer


@pytest.fixture
def orders(ottla_broker: EmbeddedBroker) -> EmbeddedBroker:
    """A topic with ten records, the later five a minute younger."""
    start_ms = ottla_broker.clock.now_ms() - 120_000
    with Blocking(ottla_broker.bootstrap) as client:
        for number in range(RECORDS):
            minute = 0 if number < RECORDS // 2 else 60_000
            client.send("orders", b"%d" % number, partition=0, timestamp=start_ms + minute)
    return ottla_broker


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_describe_with_lag(ottla: Ottla, orders: EmbeddedBroker, protocol: str) -> None:
    member = consume(orders, "shop", 5, **{"group.protocol": protocol})
    shown = ottla("group", "describe", "shop", "--json").json
    assert (shown["group"], shown["type"], shown["state"]) == ("shop", protocol, "Stable")
    (described,) = shown["members"]
    assert described["client"] == "reader" and described["partitions"] == ["orders-0"]
    (partition,) = shown["partitions"]
    assert partition["committed"] == 5 and partition["end"] == RECORDS and partition["lag"] == 5
    assert 59 <= partition["lag_seconds"] <= 119, "the sixth record is a minute old, the first ones two"
    assert partition["member"] == described["member"]
    text = ottla("group", "describe", "shop").out
    assert "lag_seconds" in text and "orders-0" in text
    member.close()
    assert ottla("group", "describe", "shop", "--json").json["state"] == "Empty"


def test_a_name_with_brackets_is_shown_as_it_is(ottla: Ottla, orders: EmbeddedBroker) -> None:
    """They are tags for Rich: `[/x]` used to end in a traceback, `[x]` was left out."""
    for name in ("shop[/x]", "shop[x]\\"):
        ottla("consume", "orders", "-g", name, "--from-beginning", "-n", "1")
        assert ottla("group", "describe", name).lines[0].startswith(f"{name}  classic  Empty")


def test_list(ottla: Ottla, orders: EmbeddedBroker) -> None:
    assert ottla("group", "list", "--json").json == []
    consume(orders, "shop", 5).close()
    assert ottla("group", "list", "--json").json == [
        {"group": "shop", "type": "classic", "state": "Empty", "protocol": "consumer"}
    ]
    (row,) = ottla("group", "list", "--lag", "--json").json
    assert row["lag"] == 5 and row["lag_seconds"] >= 59
    assert ottla("group", "list", "--state", "Stable", "--json").json == []
    assert ottla("group", "list", "--type", "share", "--json").json == []
    assert ottla("group", "list").lines[1].split("\t") == ["shop", "classic", "Empty", "consumer"]


def test_reset_offsets(ottla: Ottla, orders: EmbeddedBroker) -> None:
    consume(orders, "shop", 5).close()

    def committed() -> int:
        found: int = ottla("group", "describe", "shop", "--json").json["partitions"][0]["committed"]
        return found

    shown = ottla("group", "reset-offsets", "shop", "--to", "earliest", "--json")
    assert shown.json == [{"topic": "orders", "partition": 0, "from": 5, "to": 0}]
    assert "Nothing was changed" in shown.err and committed() == 5
    for arguments, expected in (
        (("--to", "earliest"), 0),
        (("--to", "7"), 7),
        (("--shift", "-3"), 4),
        (("--shift", "-30"), 0),
        (("--to", "latest"), RECORDS),
        (("--back", "90s"), 5),
        (("--to-time", "0"), 0),
        (("--to-time", str(orders.clock.now_ms() + 1000)), RECORDS),
        (("--to", "1000"), RECORDS),
    ):
        ottla("group", "reset-offsets", "shop", *arguments, "--topic", "orders", "--execute")
        assert committed() == expected, arguments
    beyond = ottla("group", "reset-offsets", "shop", "--to", "1000").err
    assert f"warning: orders-0 ends at {RECORDS}: there is no offset 1000" in beyond
    ottla("group", "reset-offsets", "new", "--to", "3", "--topic", "orders:0", "--execute")
    assert [row["group"] for row in ottla("group", "list", "--json").json] == ["new", "shop"]


def test_what_cannot_be_reset(ottla: Ottla, orders: EmbeddedBroker) -> None:
    assert "one of --to" in ottla("group", "reset-offsets", "shop", code=2).err
    assert "one of --to" in ottla("group", "reset-offsets", "shop", "--to", "latest", "--shift", "1", code=2).err
    assert "earliest, latest or an offset" in ottla("group", "reset-offsets", "shop", "--to", "x", code=2).err
    assert "no offsets" in ottla("group", "reset-offsets", "shop", "--to", "latest", code=1).err
    member = consume(orders, "shop", 1)
    refused = ottla("group", "reset-offsets", "shop", "--to", "latest", "--execute", code=1)
    assert refused.err.splitlines()[0] == "error: group shop has a member: its offsets cannot be changed"
    assert "hint: stop its consumers first" in refused.err
    assert "NON_EMPTY_GROUP" in ottla("group", "delete", "shop", code=1).err
    assert "GROUP_SUBSCRIBED_TO_TOPIC" in ottla("group", "delete-offsets", "shop", "-t", "orders", code=1).err
    member.close()


def test_delete(ottla: Ottla, orders: EmbeddedBroker) -> None:
    consume(orders, "shop", 5).close()
    ottla("group", "delete-offsets", "shop", "-t", "orders")
    assert ottla("group", "describe", "shop", "--json").json["partitions"] == []
    ottla("group", "delete", "shop")
    assert "there is no group 'shop'" in ottla("group", "describe", "shop", code=1).err
    assert "GROUP_ID_NOT_FOUND" in ottla("group", "delete", "shop", code=1).err


def test_some_of_several_are_deleted(ottla: Ottla, orders: EmbeddedBroker) -> None:
    with Blocking(orders.bootstrap) as client:
        for name in ("one", "two"):
            client.admin.groups.set_offsets(name, {Place("orders", 0): 1})
    dropped = ottla("group", "delete-offsets", "one", "-t", "orders:0", "-t", "orders:7", code=1)
    assert "forgotten orders-0" in dropped.err and "orders-7: UNKNOWN_TOPIC_OR_PARTITION" in dropped.err
    absent = ottla("group", "reset-offsets", "two", "-t", "orders:7", "--to", "earliest", code=1)
    assert "topic 'orders' has 1 partitions, there is no 7" in absent.err
    gone = ottla("group", "delete", "one", "nobody", "two", code=1)
    assert all(f"deleted group {name}" in gone.err for name in ("one", "two"))
    assert "group nobody: GROUP_ID_NOT_FOUND" in gone.err


def test_transactions(ottla: Ottla, orders: EmbeddedBroker) -> None:
    assert ottla("txn", "list", "--json").json == []
    assert "there is no transactional id 'pay'" in ottla("txn", "describe", "pay", code=1).err
    producer = Producer({"bootstrap.servers": orders.bootstrap, "transactional.id": "pay"})
    producer.init_transactions(WAIT_S)
    assert [each["state"] for each in ottla("txn", "list", "--json").json] == ["Empty"]
    assert ottla("txn", "list", "--running", "0", "--json").json == [], "nothing is open"
    producer.begin_transaction()
    producer.produce("orders", b"unseen", partition=0)
    producer.flush(WAIT_S)
    (row,) = ottla("txn", "list", "--json").json
    assert (row["id"], row["state"]) == ("pay", "Ongoing")
    assert ottla("txn", "list", "--running", "1h", "--json").json == []
    assert [each["id"] for each in ottla("txn", "list", "--running", "0", "--json").json] == ["pay"]
    assert "there is no transaction state" in ottla("txn", "list", "--state", "Odd", code=1).err
    shown = ottla("txn", "describe", "pay", "--json").json
    assert shown["partitions"] == ["orders-0"] and shown["running_seconds"] >= 0
    assert "orders-0" in ottla("txn", "describe", "pay").out
    ottla("txn", "abort", "pay")
    assert ottla("txn", "list", "--running", "0", "--json").json == []
    assert ottla("txn", "describe", "pay", "--json").json["partitions"] == []
    reader = Consumer({"bootstrap.servers": orders.bootstrap, "group.id": "r", "isolation.level": "read_committed"})
    reader.assign([TopicPartition("orders", 0, 0)])
    assert [each.value() for each in reader.consume(RECORDS, 30)] == [b"%d" % number for number in range(RECORDS)]
    reader.close()


def test_what_cannot_be_aborted(ottla: Ottla, orders: EmbeddedBroker) -> None:
    hanging = ("--partition", "orders:0", "--start-offset", "1")
    assert "--start-offset" in ottla("txn", "abort", code=2).err
    assert "--start-offset" in ottla("txn", "abort", "pay", *hanging, code=2).err
    assert "not TOPIC:PARTITION" in ottla("txn", "abort", "--partition", "orders", "--start-offset", "1", code=2).err
    assert "begins there" in ottla("txn", "abort", *hanging, code=1).err
    assert "there is no transactional id" in ottla("txn", "abort", "pay", code=1).err


def test_a_producer_between_transactions_is_not_fenced(ottla: Ottla, orders: EmbeddedBroker) -> None:
    producer = Producer({"bootstrap.servers": orders.bootstrap, "transactional.id": "pay"})
    producer.init_transactions(WAIT_S)
    refused = ottla("txn", "abort", "pay", code=1).err
    assert "pay has no open transaction to abort: it is in state Empty. Nothing was done" in refused
    assert "--force" in refused
    for value in (b"one", b"two"):  # the producer goes on
        producer.begin_transaction()
        producer.produce("orders", value, partition=0)
        producer.commit_transaction(WAIT_S)
        until(lambda: ottla("txn", "describe", "pay", "--json").json["state"] == "CompleteCommit")
        assert "it is in state CompleteCommit" in ottla("txn", "abort", "pay", code=1).err
    assert "its producer is fenced" in ottla("txn", "abort", "pay", "--force").err
    producer.begin_transaction()
    producer.produce("orders", b"three", partition=0)
    with pytest.raises(KafkaException):
        producer.commit_transaction(WAIT_S)
