"""Contracts of topics: real clients write, the broker looks, and what fails goes where the topic says."""

import io
import json
import time
from collections.abc import Iterator
from typing import Any

import fastavro
import pytest
from confluent_kafka import Consumer, Producer
from tests.server.talk import produce
from tests.support.requests.raw import RawConnection
from tests.support.waiting import WAIT_S

from ottla.client.blocking.blocking import Blocking
from ottla.model.errors import ErrorCode
from ottla.model.ids import ProducerEpoch, ProducerId
from ottla.records.build import build_batch
from ottla.schemas.framing import frame, guid_of, schema_mark
from ottla.schemas.registry.commands import DeleteSubject, Register
from ottla.schemas.registry.entities import SchemaDraft
from ottla.schemas.registry.machine import RegistryMachine
from ottla.server.schemas.faulty_records import TAG
from ottla.testing.broker import EmbeddedBroker

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "who", "type": "string"}],
}


class Registry:
    """What a registry would write into `_schemas`."""

    def __init__(self, broker: EmbeddedBroker) -> None:
        self._machine = RegistryMachine()
        self._client = Blocking(broker.bootstrap)
        self._client.admin.topics.create("_schemas", partitions=1, configs={"cleanup.policy": "compact"})

    def do(self, command: Any) -> Any:
        result = self._machine.decide(command, 0)
        for record in result.records:
            self._machine.apply(record)
            self._client.send("_schemas", record.value, key=record.key)
        return result.reply

    def register(self, subject: str, schema: Any, kind: str | None = None) -> int:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        return int(self.do(Register(subject, SchemaDraft(text, kind))).id)

    def close(self) -> None:
        self._client.close()


def order(schema_id: int, **fields: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, ORDER, {"id": 1, "who": "ada"} | fields)
    return frame(schema_id, out.getvalue())


class Shop:
    """A broker with a registry's topic, a topic under a contract, and librdkafka on both sides."""

    def __init__(self, broker: EmbeddedBroker) -> None:
        self.broker = broker
        self.registry = Registry(broker)
        self.admin = self.registry._client.admin

    def topic(self, name: str, **settings: str) -> None:
        configs = {f"ottla.schema.validation{key.replace('_', '.')}": value for key, value in settings.items()}
        self.admin.topics.create(name, partitions=1, configs=configs)

    def produce(self, topic: str, *values: bytes | None, **options: Any) -> list[str | None]:
        """Each in a batch of its own unless options say otherwise; what became of each."""
        headers = options.pop("headers", None)
        outcomes: list[str | None] = []
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "linger.ms": 50, **options})
        for value in values:
            producer.produce(topic, value, headers=headers, on_delivery=lambda e, m: outcomes.append(e and e.str()))
        producer.flush(WAIT_S)
        return outcomes

    def read(self, topic: str, count: int) -> list[Any]:
        consumer = Consumer(
            {"bootstrap.servers": self.broker.bootstrap, "group.id": f"read-{topic}", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe([topic])
        found: list[Any] = []
        while len(found) < count:
            message = consumer.poll(WAIT_S)
            assert message is not None and message.error() is None, found
            found.append(message)
        assert consumer.poll(0.3) is None
        consumer.close()
        return found


@pytest.fixture
def shop(ottla_broker: EmbeddedBroker) -> Iterator[Shop]:
    shop = Shop(ottla_broker)
    yield shop
    shop.registry.close()


def test_a_batch_with_a_bad_record_is_refused_with_reasons(shop: Shop) -> None:
    shop.topic("orders", **{"": "full"})
    schema_id = shop.registry.register("orders-value", ORDER)
    other = shop.registry.register("elsewhere-value", {"type": "string"})
    assert shop.produce("orders", order(schema_id), None) == [None, None]
    for bad, why in [
        (b"", "no magic byte"),
        (b"plain text", "begins with byte 112"),
        (frame(999, b""), "no schema with id 999"),
        (frame(other, b"\x06abc"), "is not registered for orders-value"),
        (order(schema_id)[:-1], "ends too early"),
        (order(schema_id) + b"x", "1 bytes are left over"),
    ]:
        refused = shop.registry._client
        with pytest.raises(Exception, match="break the contract") as caught:
            refused.send("orders", bad)
        assert why in str(caught.value)
    assert [each.value() for each in shop.read("orders", 2)] == [order(schema_id), None]


def test_level_id_does_not_look_at_payloads(shop: Shop) -> None:
    shop.topic("orders", **{"": "id"})
    schema_id = shop.registry.register("orders-value", ORDER)
    assert shop.produce("orders", frame(schema_id, b"anything")) == [None]
    (refused,) = shop.produce("orders", frame(schema_id + 1, b"anything"))
    assert refused is not None
    shop.registry.do(DeleteSubject("orders-value"))
    (refused,) = shop.produce("orders", frame(schema_id, b"anything"))
    assert refused is not None  # deleted since


def test_ids_may_come_in_headers_and_from_any_subject(shop: Shop) -> None:
    shop.topic("orders", **{"": "full", "_subject": "any"})
    schema_id = shop.registry.register("whatever", ORDER)
    guid = guid_of(shop.registry._machine.state.versions("whatever")[0].text)
    payload = order(schema_id)[5:]
    assert shop.produce("orders", payload, headers=[("__value_schema_id", schema_mark(guid))]) == [None]
    assert shop.produce("orders", payload, headers=[("__value_schema_id", schema_mark(schema_id))]) == [None]
    (refused,) = shop.produce("orders", payload[1:], headers=[("__value_schema_id", schema_mark(guid))])
    assert refused is not None


def test_bad_records_become_dead_letters_and_the_rest_goes_on(shop: Shop) -> None:
    shop.topic("orders", **{"": "full", "_action": "dlq"})
    schema_id = shop.registry.register("orders-value", ORDER)
    good = [order(schema_id, id=number) for number in range(6)]
    producer = Producer({"bootstrap.servers": shop.broker.bootstrap, "linger.ms": 100, "enable.idempotence": True})
    outcomes: list[Any] = []
    for values in ([good[0], b"bad", good[1]], [b"worse"], [good[2], good[3]]):  # the second batch is all bad
        for value in values:
            producer.produce("orders", value, on_delivery=lambda e, m: outcomes.append((e, m.offset())))
        producer.flush(WAIT_S)
    assert outcomes == [(None, 0), (None, 1), (None, 2), (None, 3), (None, 4), (None, 5)]
    assert [(each.offset(), each.value()) for each in shop.read("orders", 4)] == [
        (0, good[0]),
        (2, good[1]),
        (4, good[2]),
        (5, good[3]),
    ]
    letters = shop.read("orders.dlq", 2)
    assert [each.value() for each in letters] == [b"bad", b"worse"]
    headers = dict(letters[1].headers())
    assert headers["ottla.dlq.topic"] == b"orders" and headers["ottla.dlq.offset"] == b"3"
    assert headers["ottla.dlq.reason"] == b"schema" and b"begins with byte 119" in headers["ottla.dlq.error"]


def test_a_retry_is_acknowledged_only_with_its_dead_letters(shop: Shop) -> None:
    """The leader that wrote a batch may die before the letters of the batch are stored, and the next leader takes the
    producer's retry for a duplicate. A restarted broker is such a next leader: it does not know of the letters."""
    shop.topic("orders", **{"": "full", "_action": "dlq"})
    good = order(shop.registry.register("orders-value", ORDER))
    batch = build_batch(
        [(None, good), (None, b"bad")],
        timestamp=int(time.time() * 1000),
        producer_id=ProducerId(7),
        producer_epoch=ProducerEpoch(0),
        base_sequence=0,
    )

    def send() -> tuple[int, int]:
        with RawConnection(shop.broker.bootstrap) as connection:
            answer = produce(connection, "orders", bytearray(batch))
            while answer[0] == ErrorCode.NOT_ENOUGH_REPLICAS:  # the dead-letter topic is made, the schemas are read
                answer = produce(connection, "orders", bytearray(batch))
            return answer

    assert [send(), send()] == [(0, 0), (0, 0)]
    assert [each.value() for each in shop.read("orders.dlq", 1)] == [b"bad"]  # the leader remembers it
    shop.broker.restart()
    assert send() == (0, 0)
    letters = shop.read("orders.dlq", 1)  # the group goes on behind the first
    assert [(each.value(), dict(each.headers())["ottla.dlq.offset"]) for each in letters] == [(b"bad", b"1")]
    assert [each.value() for each in shop.read("orders", 1)] == [good]


@pytest.mark.parametrize(("named", "why"), [("loops", "break the contract"), ("grave_yard", "collides with")])
def test_topics_that_cannot_take_letters(shop: Shop, named: str, why: str) -> None:
    shop.topic("grave.yard")
    shop.topic("loops", **{"": "id", "_action": "dlq", "_dlq": named})
    schema_id = shop.registry.register("loops-value", ORDER)
    for value in (order(schema_id), order(schema_id, id=2)):
        with pytest.raises(Exception, match=why):
            shop.registry._client.send("loops", b"bad")
        shop.registry._client.send("loops", value)
    assert [each.offset() for each in shop.read("loops", 2)] == [0, 1]


@pytest.mark.parametrize("named", ["__consumer_offsets", "__ottla_audit", "__new", "_schemas", "no/such", ".."])
def test_names_that_cannot_be_set(shop: Shop, named: str) -> None:
    with pytest.raises(Exception, match="Topic name is invalid"):
        shop.topic("orders", **{"": "id", "_action": "dlq", "_dlq": named})


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4", "zstd", "snappy"])
def test_bad_records_are_tagged(shop: Shop, codec: str) -> None:
    shop.topic("orders", **{"": "id", "_action": "tag"})
    schema_id = shop.registry.register("orders-value", ORDER)
    values = [order(schema_id), b"bad"] * 10
    assert shop.produce("orders", *values, **{"compression.type": codec}) == [None] * 20
    found = shop.read("orders", 20)
    assert [each.value() for each in found] == values
    assert [TAG in dict(each.headers() or ()) for each in found] == [False, True] * 10


def test_a_transaction_goes_on_without_its_bad_records(shop: Shop) -> None:
    shop.topic("orders", **{"": "full", "_action": "dlq"})
    schema_id = shop.registry.register("orders-value", ORDER)
    producer = Producer({"bootstrap.servers": shop.broker.bootstrap, "transactional.id": "t", "linger.ms": 50})
    producer.init_transactions(20)
    for abort in (True, False):
        producer.begin_transaction()
        for value in (order(schema_id), b"bad", order(schema_id)):
            producer.produce("orders", value)
        producer.flush(WAIT_S)
        (producer.abort_transaction if abort else producer.commit_transaction)(20)
    assert len(shop.read("orders", 2)) == 2
    assert len(shop.read("orders.dlq", 2)) == 2  # a letter is there whatever became of its transaction


def test_json_and_keys(shop: Shop) -> None:
    schema = {
        "type": "object",
        "properties": {"sku": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]+$"}, "n": {"type": "integer"}},
        "patternProperties": {"^x-": {"type": "string"}},
        "additionalProperties": False,
        "required": ["sku"],
    }
    shop.topic("items", **{"": "full", "_of": "both"})
    shop.registry.register("items-key", {"type": "string"})
    schema_id = shop.registry.register("items-value", schema, "JSON")
    send = shop.registry._client.send
    key = frame(shop.registry.register("items-key", {"type": "string"}), b"\x02k")
    send("items", frame(schema_id, b'{"sku": "ABC-1", "n": 2, "x-note": "ok"}'), key=key)
    for body, why in [
        (b'{"sku": "abc"}', "does not match"),
        (b'{"sku": "ABC-1", "x-note": 3}', "is not of type 'string'"),
        (b'{"sku": "ABC-1", "other": 3}', "Additional properties are not allowed"),
        (b'{"n": 1}', "'sku' is a required property"),
        (b"{", "is not JSON"),
    ]:
        with pytest.raises(Exception, match="break the contract") as caught:
            send("items", frame(schema_id, body), key=key)
        assert why in str(caught.value)
    with pytest.raises(Exception, match="key: the value begins with byte 107"):
        send("items", frame(schema_id, b'{"sku": "ABC-1"}'), key=b"k")


def test_a_record_that_claims_billions_of_nothing_is_refused(shop: Shop) -> None:
    shop.topic("traps", **{"": "full"})
    schema_id = shop.registry.register("traps-value", {"type": "array", "items": "null"})
    with pytest.raises(Exception, match="items that take no bytes"):
        shop.registry._client.send("traps", frame(schema_id, b"\xfe\xff\xff\xff\xff\xff\xff\x7f\x00"))
