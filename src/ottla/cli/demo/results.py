"""Read the results of the pipeline, as any client could, and check whether they are right."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.cli.demo.shop import SALES, Sale, Shop
from ottla.client.consumer.ranges import ReadOptions
from ottla.operations.errors import CommandError
from ottla.schemas.avro.json_values import AvroValues
from ottla.schemas.framing import unframe

if TYPE_CHECKING:
    from ottla.client.blocking.blocking import Blocking

Windows = dict[tuple[int, str], tuple[int, int]]


def windows(directory: Path) -> Windows:
    """Sales and cents by window and country, from the Parquet files that are in Spark's log of the directory. The
    directory may also have files of interrupted batches, which do not count.
    """
    import pyarrow.parquet as parquet

    found: Windows = {}
    for file in _committed_files(directory):
        for row in parquet.read_table(file).to_pylist():
            key = (round(row["start"].timestamp() * 1000), row["country"])
            if key in found:
                raise CommandError(f"the demo failed: the window {key} came out twice")
            found[key] = (row["sales"], row["cents"])
    return found


def _committed_files(directory: Path) -> list[Path]:
    """The files in `_spark_metadata`, which has a file per batch, and now and then a compacted one for all batches
    before it.
    """
    logs = directory / "_spark_metadata"
    if not logs.is_dir():
        return []
    compacted = [int(path.name.removesuffix(".compact")) for path in logs.glob("*.compact")]
    first = max(compacted, default=-1)
    names = [logs / f"{first}.compact"] if compacted else []
    names += sorted(
        (path for path in logs.iterdir() if path.name.isdecimal() and int(path.name) > first),
        key=lambda path: int(path.name),
    )
    entries = [json.loads(line) for name in names for line in name.read_text().splitlines()[1:]]
    return [directory / Path(each["path"]).name for each in entries if each["action"] == "add"]


class SalesCount:
    """Counts the committed sales of the topic, each look those that came since the last one. It counts records, not
    offsets, because the markers of transactions take offsets, too. The closing order is no sale.
    """

    def __init__(self, client: Blocking, shop: Shop, partitions: int) -> None:
        self._client = client
        self._closing_key = str(shop.orders).encode()
        self._next = dict.fromkeys(range(partitions), 0)  # the first offset that was not counted, by partition
        self._count = 0

    def look(self) -> int:
        """The number of sales that are in the topic now."""
        for index, start in self._next.items():
            for record in self._client.read(SALES, index, start=start, options=ReadOptions(read_committed=True)):
                self._count += record.key != self._closing_key
                self._next[index] = record.offset + 1
        return self._count


def check_sales(client: Blocking, registry_url: str, shop: Shop) -> int:
    """Check that every order that was paid in time is in the topic, once, with the right country and amount; their
    number.
    """
    sold = _read_sales(client, registry_url)
    counts = Counter(sale.order_id for sale in sold)
    twice = [order_id for order_id, count in counts.items() if count > 1]
    found = {sale.order_id: sale for sale in sold if sale.order_id != shop.orders}  # without the closing order
    missing = [order_id for order_id in shop.sales if order_id not in found]
    strange = [order_id for order_id, sale in found.items() if shop.sales.get(order_id) != sale]
    if twice or missing or strange:
        raise CommandError(
            f"the demo failed: of {len(shop.sales)} sales {len(missing)} are missing, {len(twice)} came twice and "
            f"{len(strange)} are wrong; the first of them: {[*missing, *twice, *strange][:5]}"
        )
    return len(found)


def _read_sales(client: Blocking, registry_url: str) -> list[Sale]:
    from ottla.client.registry import RegistryOptions, SchemaRegistry

    registry = SchemaRegistry(RegistryOptions.of(registry_url))
    values: dict[int, AvroValues] = {}
    sold = []
    for record in client.read(SALES, options=ReadOptions(read_committed=True)):
        assert record.value is not None
        framed = unframe(record.value)
        assert framed.schema_id is not None
        if framed.schema_id not in values:
            values[framed.schema_id] = AvroValues(registry.by_id(framed.schema_id))
        row = values[framed.schema_id].to_json(record.value[framed.payload_begin :])
        sold.append(Sale(row["order_id"], row["country"], row["cents"], row["ordered_at"]))
    return sold


def check_windows(found: Windows, shop: Shop) -> tuple[int, int]:
    """Check that every window has the shop's own totals; the number of windows, and the cents of all."""
    expected = shop.revenue()
    wrong = {key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key)}
    if wrong:
        key = min(wrong)
        raise CommandError(
            f"the demo failed: {len(wrong)} of {len(expected)} windows are wrong; the first, {key}, is "
            f"{found.get(key)} and should be {expected.get(key)}"
        )
    return len(found), sum(cents for _, cents in found.values())
