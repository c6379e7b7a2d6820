"""`ottla topic hot` against a node."""

from collections.abc import Callable

import pytest
from tests.cli.conftest import Run
from tests.cli.explain.actors import produce, running

from ottla.client.blocking.blocking import Blocking
from ottla.testing.broker import EmbeddedBroker

Ottla = Callable[..., Run]


@pytest.fixture
def orders(ottla_broker: EmbeddedBroker) -> EmbeddedBroker:
    with Blocking(ottla_broker.bootstrap) as client:
        client.admin.topics.create("orders", partitions=3)
    return ottla_broker


def test_hot_key_and_partition(ottla: Ottla, orders: EmbeddedBroker) -> None:
    for number in range(100):
        produce(orders, 1, partition=number % 3, key=b"k%d" % number)
    produce(orders, 400, partition=1, key=b"big")
    produce(orders, 20, partition=1, key=b"\xff\x00")
    with running(lambda: produce(orders, 20, partition=1, key=b"big")):
        found = ottla("topic", "hot", "orders", "--json", "-s", "1", "-r", "1000000").json
    assert [each["partition"] for each in found["partitions"]] == [0, 1, 2]
    rates = [each["records_per_second"] for each in found["partitions"]]
    assert rates[0] == rates[2] == 0 < rates[1]
    assert all(each["size_bytes"] > 0 for each in found["partitions"])
    first, second, *_ = found["keys"]
    assert first["key"] == "big" and first["share"] > 0.5
    assert (second["key"], second["records"]) == ("0xff00", 20)
    assert "one key has" in found["advice"][0]
    text = ottla("topic", "hot", "orders", "-s", "0.2", "-k", "1").out  # of the last 10,000 records
    assert "big" in text and "0xff00" not in text and "-> one key has" in text


def test_sample_is_bounded_and_spread(ottla: Ottla, orders: EmbeddedBroker) -> None:
    for partition in range(3):
        produce(orders, 100, partition)
    found = ottla("topic", "hot", "orders", "--json", "-s", "0.2", "-r", "30").json
    assert (found["sampled"], found["without_key"], found["keys"]) == (30, 30, [])
    assert ottla("topic", "hot", "orders", "--json", "-s", "0.2", "-r", "0").json["sampled"] == 0


def test_empty_and_missing_topic(ottla: Ottla, orders: EmbeddedBroker) -> None:
    found = ottla("topic", "hot", "orders", "--json", "-s", "0.2").json
    assert (found["sampled"], found["records_per_second"], found["bytes_per_second"]) == (0, 0, None)
    assert "nothing was written" in ottla("topic", "hot", "orders", "-s", "0.2").out
    assert "ottla topic list" in ottla("topic", "hot", "nothing", code=1).err
