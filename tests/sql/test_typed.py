"""Values typed by a real registry, several schemas in one topic."""

import io
import json

import fastavro

from ottla.client.blocking.blocking import Blocking
from ottla.client.registry import RegistryOptions, SchemaRegistry
from ottla.schemas.framing import frame
from ottla.schemas.schema import SchemaSource, SchemaType
from ottla.sql import Sql
from ottla.testing.broker import EmbeddedBroker

OLD = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": "string"}],
}
NEW = {**OLD, "fields": [*OLD["fields"], {"name": "amount", "type": "double", "default": 0.5}]}  # type: ignore[misc]


def encoded(schema: dict[str, object], schema_id: int, value: dict[str, object]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return frame(schema_id, out.getvalue())


def test_values_are_columns_of_the_latest_schema(ottla_broker: EmbeddedBroker) -> None:
    registry = SchemaRegistry(RegistryOptions.of(ottla_broker.registry.url))
    ids = [registry.register("orders-value", SchemaSource(json.dumps(each))) for each in (OLD, NEW)]
    with Blocking(ottla_broker.bootstrap) as client:
        client.admin.topics.create("orders", 1)
        values = [
            encoded(OLD, ids[0], {"id": 1, "item": "tea"}),
            encoded(NEW, ids[1], {"id": 2, "item": "cup", "amount": 2.5}),
            b"not framed",
            encoded(OLD, 999, {"id": 3, "item": "?"}),
            None,
            encoded(OLD, ids[0], {"id": 4, "item": "pot"}),
        ]
        client.send_all("orders", [(b"k", value) for value in values])
    with Sql(ottla_broker.bootstrap, ottla_broker.registry.url) as sql:
        found = sql.query(
            "select value.id, value.item, value.amount from topic('orders') order by \"offset\""
        ).fetchall()
        assert found == [(1, "tea", 0.5), (2, "cup", 2.5), (None,) * 3, (None,) * 3, (None,) * 3, (4, "pot", 0.5)]
        assert sql.query("select sum(value.amount) from topic('orders') where value.id > 1").fetchall() == [(3.0,)]
        assert sql.query("select value from topic('orders', format := 'raw') limit 1").fetchall() == [(values[0],)]


def test_json_may_be_plain(ottla_broker: EmbeddedBroker) -> None:
    registry = SchemaRegistry(RegistryOptions.of(ottla_broker.registry.url))
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}}
    schema_id = registry.register("clicks-value", SchemaSource(json.dumps(schema), SchemaType.JSON))
    with Blocking(ottla_broker.bootstrap) as client:
        client.admin.topics.create("clicks", 1)
        values = [frame(schema_id, b'{"id": 1}'), b'{"id": 2}', b"\x00bad", b"{", b'{"id": 3}']
        client.send_all("clicks", [(b"k", value) for value in values])
    with Sql(ottla_broker.bootstrap, ottla_broker.registry.url) as sql:
        found = sql.query("select value.id from topic('clicks') order by \"offset\"").fetchall()
        assert found == [(1,), (2,), (None,), (None,), (3,)]


def test_without_a_registry_values_are_text(ottla_broker: EmbeddedBroker) -> None:
    with Blocking(ottla_broker.bootstrap) as client:
        client.admin.topics.create("orders", 1)
        client.send("orders", b"tea")
    warned: list[str] = []
    with Sql(ottla_broker.bootstrap, "http://127.0.0.1:9", warned.append) as sql:
        assert sql.query("select value from topic('orders')").fetchall() == [("tea",)]
    (told,) = warned  # once, though keys and values are asked for
    assert told.startswith("keys and values are shown as text: the schema registry at 127.0.0.1:9 does not answer")
