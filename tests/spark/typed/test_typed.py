"""Typed columns as the reader and the writer apply them to Arrow batches, with a registry over a live broker."""

from __future__ import annotations

import datetime as dt
import json
import pickle
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from tests.columns.avro.cases import encoded
from tests.spark.raw_rows import rows

from ottla.client.blocking.blocking import Blocking
from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.client.registry import RegistryError, RegistryOptions, RegistryUnreachable, SchemaRegistry
from ottla.columns.codec import UnsupportedSchema
from ottla.schemas.framing import guid_of, schema_mark
from ottla.schemas.schema import SchemaSource, SchemaType
from ottla.spark.typed.dead_letters import Undelivered, send_dead
from ottla.spark.typed.reading import CORRUPT_TYPE, Applied, BadRecord, TypedColumns, typed_columns
from ottla.spark.typed.writing import typed_output
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.registry import Registry

V1 = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}, {"name": "old", "type": "string"}]}
V2 = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}],
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture(scope="module")
def url(broker: EmbeddedBroker) -> Iterator[str]:
    registry = Registry(broker.bootstrap).start()
    try:
        yield registry.url
    finally:
        registry.stop()


@pytest.fixture
def client(url: str) -> SchemaRegistry:
    return SchemaRegistry(RegistryOptions.of(url))


@pytest.fixture
def ids(client: SchemaRegistry) -> tuple[int, int]:
    first = client.register("orders-value", SchemaSource(json.dumps(V1)))
    return first, client.register("orders-value", SchemaSource(json.dumps(V2)))


def reading(url: str, **options: str) -> TypedColumns:
    given = {"schema.registry.url": url, "value.format": "avro", **{k.replace("_", "."): v for k, v in options.items()}}
    made = typed_columns(given, ["orders"])
    assert made is not None
    return pickle.loads(pickle.dumps(made))


def test_mixed_schemas_are_read_with_the_newest(url: str, ids: tuple[int, int]) -> None:
    values = [
        encoded(V1, {"id": 1, "old": "x"}, schema_mark(ids[0])),
        None,
        encoded(V2, {"id": 2**40, "note": "n"}, schema_mark(ids[1])),
        encoded(V1, {"id": 3, "old": "x"}, schema_mark(ids[0])),
    ]
    applied = reading(url).apply(rows(values))
    assert applied.dead is None
    assert applied.batch.column("value").to_pylist() == [
        {"id": 1, "note": None}, None, {"id": 2**40, "note": "n"}, {"id": 3, "note": None},
    ]  # fmt: skip
    assert applied.batch.schema == reading(url).schema(rows(values).schema)


def test_an_older_version_can_be_asked_for(url: str, ids: tuple[int, int]) -> None:
    made = reading(url, value_version="1")
    assert made.schema(rows([]).schema).field("value").type.names == ["id", "old"]


def test_fields_as_columns_of_their_own(url: str, ids: tuple[int, int]) -> None:
    batch = rows([encoded(V2, {"id": 5, "note": "n"}, schema_mark(ids[1])), None])
    made = reading(url, columns_flatten="true").apply(batch, ["value", "offset"]).batch
    assert made.to_pylist() == [{"id": 5, "note": "n", "offset": 100}, {"id": None, "note": None, "offset": 101}]


def test_ids_in_headers_and_guids(url: str, ids: tuple[int, int], client: SchemaRegistry) -> None:
    payload = encoded(V1, {"id": 7, "old": ""})
    guid = guid_of(client.by_id(ids[0]).text)
    headers = [
        [{"key": "a", "value": b"b"}, {"key": "__value_schema_id", "value": schema_mark(guid)}],
        None,
        [{"key": "__value_schema_id", "value": schema_mark(ids[0])}],
    ]
    framed = schema_mark(guid) + payload
    made = reading(url).apply(rows([payload, framed, payload], headers=headers)).batch
    assert [each["id"] for each in made.column("value").to_pylist()] == [7, 7, 7]


BAD = [
    (b"", "value: the value is empty: no magic byte and no schema id"),
    (b"\x07abcdef", "value: the value begins with byte 7, not with the magic byte 0 (schema id) or 1 (schema GUID)"),
    (schema_mark(99_999) + b"abc", "value: the registry has no schema 99999"),
    (b"\0\0\0", "value: the value ends within the schema id: 3 bytes, at least 5 are needed"),
]


def bad_rows(ids: tuple[int, int]) -> pa.RecordBatch:
    good = encoded(V1, {"id": 1, "old": "x"}, schema_mark(ids[0]))
    return rows([good, *(value for value, _ in BAD), good[:-1], good], keys=[b"k"] * 7)


def test_bad_records_are_null_with_reasons_beside_them(url: str, ids: tuple[int, int]) -> None:
    batch = bad_rows(ids)
    made = reading(url, on_bad="corrupt").apply(batch).batch
    assert made.schema.field("_corrupt").type == CORRUPT_TYPE
    assert [each and each["id"] for each in made.column("value").to_pylist()] == [1, None, None, None, None, None, 1]
    expected: list[Any] = [{"reason": why, "key": b"k", "value": value} for value, why in BAD]
    cut = {"reason": "value: old: the value ends too early", "key": b"k", "value": batch["value"][5].as_py()}
    assert made.column("_corrupt").to_pylist() == [None, *expected, cut, None]
    assert reading(url, on_bad="null").apply(batch).batch.column("value").null_count == 5


def test_bad_records_fail_with_their_place(url: str, ids: tuple[int, int]) -> None:
    with pytest.raises(BadRecord, match="offset 101 of orders-1 does not decode: value: the value is empty"):
        reading(url).apply(bad_rows(ids))


def test_bad_records_go_to_the_dead_letter_topic(broker: EmbeddedBroker, url: str, ids: tuple[int, int]) -> None:
    made = reading(url, on_bad="dlq", dlq_topic="dead")
    applied = made.apply(bad_rows(ids), ["value"])
    assert applied.batch.num_rows == 2 and applied.dead is not None
    assert made.needs <= set(bad_rows(ids).schema.names)
    send_dead(ClientOptions(parse_bootstrap(broker.bootstrap)), "dead", applied.dead)
    with Blocking(broker.bootstrap) as reader:
        letters = list(reader.read("dead"))
    assert [letter.value for letter in letters] == applied.dead.column("value").to_pylist()
    headers = dict(letters[0].headers)
    assert headers["ottla.dlq.topic"] == b"orders" and headers["ottla.dlq.offset"] == b"101"
    assert headers["ottla.dlq.reason"] == BAD[0][1].encode()


def test_a_dead_letter_that_cannot_be_sent_is_said(broker: EmbeddedBroker, url: str, ids: tuple[int, int]) -> None:
    with Blocking(broker.bootstrap) as client:
        client.admin.topics.create("narrow", 1, configs={"max.message.bytes": "1000"})
    bad = rows([encoded(V1, {"id": 1, "old": "x"}, schema_mark(ids[0])), b"\x07" * 5000])
    dead = reading(url, on_bad="dlq", dlq_topic="narrow").apply(bad).dead
    assert dead is not None
    with pytest.raises(
        Undelivered, match=r"offset 101 of orders-1 does not decode .value: .*cannot be sent to narrow: "
    ):
        send_dead(ClientOptions(parse_bootstrap(broker.bootstrap)), "narrow", dead)


def test_keys_as_text_beside_typed_values(url: str, ids: tuple[int, int]) -> None:
    value = encoded(V2, {"id": 5, "note": "n"}, schema_mark(ids[1]))
    batch = rows([value, value], keys=["schlüssel".encode(), b"\xff"])
    made = reading(url, key_format="string", on_bad="corrupt").apply(batch).batch
    assert made.column("key").to_pylist() == ["schlüssel", None]
    assert made.column("_corrupt")[1].as_py()["reason"] == "key: the text is not UTF-8"


def test_text_is_written_of_columns_whose_text_is_beyond_doubt() -> None:
    for value, text in (("x", b"x"), (7, b"7"), (True, b"true"), (b"y", b"y"), (dt.date(2026, 1, 2), b"2026-01-02")):
        frame = pa.record_batch({"value": pa.array([value, None])})
        made = typed_output({"value.format": "string"}, frame.schema, "t")
        assert made is not None
        assert made.apply(frame).column("value").to_pylist() == [text, None]
    with pytest.raises(UnsupportedSchema, match=r"value.format=string: a column of type double is no text: cast it"):
        typed_output({"value.format": "string"}, pa.schema([("value", pa.float64())]), "t")
    bytes_out = typed_output({"value.format": "string"}, pa.schema([("value", pa.binary())]), "t")
    assert bytes_out is not None
    with pytest.raises(ValueError, match="row 1: the text is not UTF-8"):
        bytes_out.apply(pa.record_batch({"value": pa.array([b"x", b"\xff"])}))


def test_columns_that_say_nothing_else_of_the_record_are_fields_of_the_value() -> None:
    columns = {"id": [1], "timestamp": ["now"], "topic": ["elsewhere"], "partition": pa.array([0], pa.int32())}
    frame = pa.record_batch(columns)
    for topic, in_value in (("t", ["id", "timestamp", "topic"]), (None, ["id", "timestamp"])):
        made = typed_output({"value.format": "json"}, frame.schema, topic)
        assert made is not None
        (row,) = made.apply(frame).to_pylist()
        assert list(json.loads(row.pop("value"))) == in_value
        assert sorted([*row, *in_value]) == ["id", "partition", "timestamp", "topic"], "each column is in one place"


def test_plain_payloads_need_no_registry() -> None:
    made = typed_columns({"Value.Format": "avro", "value.schema": json.dumps(V1)}, ["orders"])
    assert made is not None
    batch = made.apply(rows([encoded(V1, {"id": 9, "old": "o"})])).batch
    assert batch.column("value").to_pylist() == [{"id": 9, "old": "o"}]


def test_any_bytes_in_every_mode() -> None:
    kinds = ["boolean", "int", "double", ["null", "string"], {"type": "array", "items": ["null", "string", "float"]}]
    kinds += [{"type": "enum", "name": "E", "symbols": ["A"]}, {"type": "map", "values": "bytes"}]
    fields = [{"name": f"f{number}", "type": of} for number, of in enumerate(kinds)]
    text = json.dumps({"type": "record", "name": "R", "fields": fields})
    rng = random.Random(13)
    row = [True, -3, 1.5, "é", ["a", None, 2.0], "A", {"k": b"v"}]
    good = encoded(json.loads(text), {f"f{number}": value for number, value in enumerate(row)})
    values: list[bytes | None] = [good, None]
    for _ in range(300):
        made = bytearray(good)
        made[rng.randrange(len(good))] = rng.choice([0, 1, 2, 0x7F, 0x80, 0xFF])
        values.append(bytes(made[: rng.randrange(len(good) + 1) or None]))
    options = {"value.format": "avro", "value.schema": text, "dlq.topic": "dead"}

    def applied(mode: str) -> Applied:
        columns = typed_columns({**options, "on.bad": mode}, ["orders"])
        assert columns is not None
        return columns.apply(rows(values))

    null, corrupt, dlq = map(applied, ("null", "corrupt", "dlq"))
    bad = [each is not None for each in corrupt.batch.column("_corrupt").to_pylist()]
    assert 0 < sum(bad) < len(values) - 2 and not bad[0] and not bad[1]
    assert null.batch.column("value").null_count == sum(bad) + 1
    assert dlq.dead is not None and dlq.dead.num_rows == sum(bad)
    assert dlq.batch.num_rows == len(values) - sum(bad)
    first = 100 + bad.index(True)
    with pytest.raises(BadRecord, match=f"offset {first} of orders-1 does not decode: value: "):
        applied("fail")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"value.format": "avro"}, "needs schema.registry.url or value.schema"),
        ({"value.format": "xml"}, "one of avro, json, protobuf, raw, string"),
        ({"value.format": "string", "on.bad": "dlq"}, "needs dlq.topic"),
        ({"value.format": "avro", "schema.registry.url": "localhost"}, "is no URL of a schema registry"),
        ({"value.format": "avro", "schema.registry.url": "http://h:99999"}, "is no URL of a schema registry"),
        ({"value.format": "avro", "schema.registry.url": "http://[::1"}, "is no URL of a schema registry"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        typed_columns(options, ["orders"])


def test_several_topics_have_no_subject_of_their_own(url: str, ids: tuple[int, int]) -> None:
    options = {"value.format": "avro", "schema.registry.url": url}
    with pytest.raises(ValueError, match=r"value\.subject is needed"):
        typed_columns(options, ["a", "b"])
    assert typed_columns({**options, "value.subject": "orders-value"}, ["a", "b"]) is not None
    assert typed_columns({"value.format": "raw"}, []) is None


def test_a_subject_that_is_not_there_and_a_registry_that_is_not() -> None:
    with pytest.raises(RegistryUnreachable, match="does not answer"):
        SchemaRegistry(RegistryOptions.of("http://127.0.0.1:9", attempts=2, backoff_s=0.01)).latest("x")


def test_an_unknown_subject_is_said(url: str) -> None:
    with pytest.raises(RegistryError, match="40401"):
        typed_columns({"value.format": "avro", "schema.registry.url": url}, ["nobody"])


def test_what_is_written_confluents_deserializer_reads(url: str) -> None:
    frame = pa.table({"key": ["a", "b"], "id": pa.array([1, 2], pa.int64()), "note": ["x", None]}).to_batches()[0]
    options = {"value.format": "avro", "key.format": "string", "schema.registry.url": url}
    made = typed_output(options, frame.schema, "written")
    assert made is not None
    batch = pickle.loads(pickle.dumps(made)).apply(frame)
    assert batch.schema == made.schema() == pa.schema([("key", pa.binary()), ("value", pa.binary())])
    context = SerializationContext("written", MessageField.VALUE)
    with SchemaRegistryClient({"url": url}) as theirs:
        reader = AvroDeserializer(theirs)
        found = [reader(value, context) for value in batch.column("value").to_pylist()]
    assert found == [{"id": 1, "note": "x"}, {"id": 2, "note": None}]


def test_what_confluents_serializer_wrote_is_read(url: str) -> None:
    context = SerializationContext("theirs", MessageField.VALUE)
    with SchemaRegistryClient({"url": url}) as theirs:
        writer = AvroSerializer(theirs, json.dumps(V2))
        values = [writer({"id": number, "note": None}, context) for number in range(3)]
    made = typed_columns({"value.format": "avro", "schema.registry.url": url}, ["theirs"])
    assert made is not None
    assert [each["id"] for each in made.apply(rows(values)).batch.column("value").to_pylist()] == [0, 1, 2]


def test_output_by_a_registered_version(url: str, ids: tuple[int, int]) -> None:
    frame = pa.table({"value": pa.array([{"id": 1}], pa.struct([("id", pa.int16())]))}).to_batches()[0]
    options = {"value.format": "avro", "schema.registry.url": url, "value.version": "latest"}
    made = typed_output(options, frame.schema, "orders")
    assert made is not None
    assert made.apply(frame).column("value").to_pylist() == [schema_mark(ids[1]) + b"\x02\0"]
    with pytest.raises(ValueError, match="needs old"):
        typed_output({**options, "value.version": "1"}, frame.schema, "orders")


PROTO = 'syntax = "proto3"; package p; message First { int32 x = 1; } message Order { int64 id = 1; string note = 2; }'


def test_json_as_confluent_writes_it_and_plain_json(url: str) -> None:
    schema = {"title": "O", "type": "object", "properties": {"id": {"type": "integer"}, "note": {"type": "string"}}}
    context = SerializationContext("json", MessageField.VALUE)
    with SchemaRegistryClient({"url": url}) as theirs:
        values = [
            JSONSerializer(json.dumps(schema), theirs)({"id": 1, "note": "x"}, context),
            b'{"id": 2}',
            b"nonsense",
        ]
    made = typed_columns({"value.format": "json", "schema.registry.url": url, "on.bad": "null"}, ["json"])
    assert made is not None
    found = made.apply(rows(values)).batch.column("value").to_pylist()
    assert found == [{"id": 1, "note": "x"}, {"id": 2, "note": None}, None]


def test_json_that_is_written_confluents_deserializer_reads(url: str) -> None:
    frame = pa.table({"id": pa.array([1, 2], pa.int64()), "note": ["x", None]}).to_batches()[0]
    made = typed_output({"value.format": "json", "schema.registry.url": url}, frame.schema, "json-out")
    assert made is not None
    context = SerializationContext("json-out", MessageField.VALUE)
    with SchemaRegistryClient({"url": url}) as theirs:
        reader = JSONDeserializer(None, schema_registry_client=theirs)
        found = [reader(value, context) for value in made.apply(frame).column("value").to_pylist()]
    assert found == [{"id": 1, "note": "x"}, {"id": 2}]


def test_protobuf_by_message(url: str, client: SchemaRegistry) -> None:
    schema_id = client.register("proto-value", SchemaSource(PROTO, SchemaType.PROTOBUF))
    order, first = schema_mark(schema_id, (1,)) + b"\x08\x05\x12\x01x", schema_mark(schema_id, (0,)) + b"\x08\x07"
    options = {"value.format": "protobuf", "schema.registry.url": url, "on.bad": "corrupt"}
    made = typed_columns({**options, "value.message": "p.Order"}, ["proto"])
    assert made is not None
    batch = made.apply(rows([order, first, order[:-1]])).batch
    assert batch.column("value").to_pylist() == [{"id": 5, "note": "x"}, None, None]
    reasons = [each and each["reason"] for each in batch.column("_corrupt").to_pylist()]
    assert reasons == [None, "value: these are messages p.First, not p.Order", "value: the value ends too early"]
    made = typed_columns(options, ["proto"])
    assert made is not None
    assert made.apply(rows([order, first])).batch.column("value").to_pylist() == [None, {"x": 7}]


def test_protobuf_that_is_written_is_read_again(url: str) -> None:
    frame = pa.table({"id": pa.array([1, 2], pa.int64()), "note": ["x", None]}).to_batches()[0]
    options = {"value.format": "protobuf", "schema.registry.url": url}
    written = typed_output(options, frame.schema, "proto-out")
    read = typed_columns(options, ["proto-out"])
    assert written is not None and read is not None
    values = written.apply(frame).column("value").to_pylist()
    assert values[0][5] == 0
    assert read.apply(rows(values)).batch.column("value").to_pylist() == [
        {"id": 1, "note": "x"},
        {"id": 2, "note": None},
    ]
