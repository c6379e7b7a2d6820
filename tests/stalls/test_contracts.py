"""The first record of a schema: it is parsed by whoever looks at the record, a worker, and not on the loop."""

from __future__ import annotations

import json
import struct
from pathlib import Path

from tests.server.talk import create
from tests.stalls.measuring.measure import BUDGET_MS, MeasuredNode
from tests.stalls.test_produce import produce_once

from ottla.model.errors import ErrorCode
from ottla.records.build import build_batch

FIELDS = 20_000  # nearly as much text as a schema may have


def test_a_large_schema_is_parsed_beside_the_loop(tmp_path: Path) -> None:
    fields = [{"name": f"f{number}", "type": "int"} for number in range(FIELDS)]
    schema = json.dumps({"type": "record", "name": "R", "fields": fields})
    key = {"keytype": "SCHEMA", "subject": "orders-value", "version": 1, "magic": 1}
    value = {"subject": "orders-value", "version": 1, "id": 1, "schema": schema, "deleted": False}
    registration = build_batch([(json.dumps(key).encode(), json.dumps(value).encode())])
    order = build_batch([(None, b"\0" + struct.pack(">i", 1) + bytes(FIELDS))])
    with MeasuredNode(tmp_path) as node, node.connect() as connection:
        create(connection, "_schemas", 1)
        create(connection, "orders", 1, ottla_schema_validation="full")
        create(connection, "first", 1, ottla_schema_validation="id")
        produce_once(node, "first", 1, order)  # what contracts need is imported when the first one is used
        produced = []
        for topic, batch in [("_schemas", registration), *[("orders", order)] * 20]:
            cost, said = produce_once(node, topic, 1, batch)
            produced.append((topic, cost, said))
            if topic == "orders" and said == {ErrorCode.NONE}:
                break
        assert produced[-1][2] == {ErrorCode.NONE}, produced
        assert max(cost.cpu_ms for _, cost, _ in produced) <= BUDGET_MS, produced
