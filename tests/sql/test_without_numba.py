"""Where pyarrow and DuckDB are installed and numba is not: reading as Arrow and `ottla sql` work, only slower."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.support.waiting import COMMAND_S

from ottla.client.blocking.blocking import Blocking
from ottla.client.registry import RegistryOptions, SchemaRegistry
from ottla.schemas.avro.json_values import AvroValues
from ottla.schemas.framing import frame
from ottla.schemas.schema import SchemaSource
from ottla.testing.broker import EmbeddedBroker

SCHEMA = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
# numba is kept from being imported, as if it were not installed.
SCRIPT = """
import sys
sys.modules["numba"] = None
from ottla import Blocking
from ottla.sql import Sql
bootstrap, registry = sys.argv[1:]
with Sql(bootstrap, registry) as sql:
    print(sql.query("select sum(value.id), count(*) from topic('orders')").fetchall())
with Blocking(bootstrap) as client:
    from ottla.client.consumer.ranges import Span
    print(sum(batch.num_rows for batch in client.iterate(client.ranges([Span("orders", 0)]).arrow())))
"""


def test_sql_and_arrow(ottla_broker: EmbeddedBroker) -> None:
    source = SchemaSource(json.dumps(SCHEMA))
    registry = SchemaRegistry(RegistryOptions.of(ottla_broker.registry.url))
    schema_id, values = registry.register("orders-value", source), AvroValues(source)
    with Blocking(ottla_broker.bootstrap) as client:
        client.admin.topics.create("orders", 1)
        client.send_all("orders", [(None, frame(schema_id, values.to_payload({"id": each}))) for each in range(100)])
    words = [sys.executable, "-c", SCRIPT, ottla_broker.bootstrap, ottla_broker.registry.url]
    done = subprocess.run(words, capture_output=True, text=True, timeout=COMMAND_S, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split("\n")[:2] == ["[(4950, 100)]", "100"]
