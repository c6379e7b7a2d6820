"""The steps of `ottla demo`, each of which shows something and checks that it is true."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sys
from typing import TYPE_CHECKING

from ottla.cli import log_lines
from ottla.cli.output import out, size_text, time_text
from ottla.cli.server import DEFAULT_LISTEN
from ottla.cli.terminal import CommandError
from ottla.client import EARLIEST, LATEST, Admin, Cluster, Producer, ProducerOptions, RangeReader, Span
from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.log import verify
from ottla.log.findings import Severity, Totals
from ottla.records.compress import Codec
from ottla.server.osdisk import OsDisk

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.client.ranges import ConsumedRecord

TOPIC = "orders"
PARTITIONS = 3
RECORDS = 10_000
CUSTOMERS = 100


async def run(bootstrap: str, data: Path, *, started_in_ms: float) -> None:
    """All steps, in order; the first thing that does not hold raises."""
    console = out()
    console.print("[bold]Ottla[/bold] speaks Kafka's protocol and keeps Kafka's files. A first look:\n")
    step("node", f"serving at [bold cyan]{bootstrap}[/bold cyan], started in {started_in_ms:.0f} ms")
    async with Cluster(ClientOptions(parse_bootstrap(bootstrap), client_id="ottla-demo")) as cluster:
        await _create(Admin(cluster))
        sent = await _produce(cluster)
        records = await _consume(cluster, sent)
        await _travel(cluster, records)
    await asyncio.get_running_loop().run_in_executor(None, _look, data)
    _next(bootstrap)


def step(name: str, text: str) -> None:
    """A line of the demo."""
    out().print(f" [green]✓[/green] [bold]{name:<9}[/bold] {text}")


def check(holds: bool, what: str) -> None:
    """The demo claims nothing it has not seen."""
    if not holds:
        raise CommandError(f"the demo failed: {what}")


async def _create(admin: Admin) -> None:
    if TOPIC in await admin.topics.names():
        await admin.topics.delete(TOPIC)
    made = await admin.topics.create(TOPIC, PARTITIONS, 1, {"retention.ms": "604800000"})
    check(made.partitions == PARTITIONS, f"the topic has {made.partitions} partitions")
    step("topic", f"[cyan]{TOPIC}[/cyan] with {PARTITIONS} partitions, retention 7 days")


async def _produce(cluster: Cluster) -> list[tuple[bytes, bytes]]:
    """Idempotent, acknowledged by all, compressed; the client's batches go to disk as they are."""
    records = [
        (b"customer-%d" % (n % CUSTOMERS), b'{"order":%d,"amount":%d.%02d}' % (n, n % 97, n % 100))
        for n in range(RECORDS)
    ]
    loop = asyncio.get_running_loop()
    started_s = loop.time()
    options = ProducerOptions(codec=Codec.LZ4, batch_size_bytes=64 * 1024)
    async with Producer(cluster, options) as producer:
        waiting = [await producer.enqueue(TOPIC, value, key) for key, value in records]
        await producer.flush()
        places = [await each for each in waiting]
    seconds = loop.time() - started_s
    check(len(places) == RECORDS and all(each.offset >= 0 for each in places), "not all records were acknowledged")
    step("produce", f"{RECORDS:,} records, lz4, acks=all, idempotent: {RECORDS / seconds:,.0f} records/s")
    return records


async def _consume(cluster: Cluster, sent: list[tuple[bytes, bytes]]) -> list[ConsumedRecord]:
    loop = asyncio.get_running_loop()
    started_s = loop.time()
    spans = [Span(TOPIC, index, EARLIEST, LATEST) for index in range(PARTITIONS)]
    async with RangeReader(cluster, spans) as reader:
        found = [record async for record in reader]
    seconds = loop.time() - started_s
    check(len(found) == len(sent), f"{len(sent)} records were written, {len(found)} came back")
    check(
        _by_key(sent) == _by_key([(each.key or b"", each.value or b"") for each in found]),
        "what came back is not what was written, in the order of each key",
    )
    digest = hashlib.sha256(b"".join(sorted(each.value or b"" for each in found))).hexdigest()[:12]
    step("consume", f"the same records, in order per key (sha256 {digest}…): {len(found) / seconds:,.0f} records/s")
    return found


def _by_key(records: list[tuple[bytes, bytes]]) -> dict[bytes, list[bytes]]:
    found: dict[bytes, list[bytes]] = {}
    for key, value in records:
        found.setdefault(key, []).append(value)
    return found


async def _travel(cluster: Cluster, records: list[ConsumedRecord]) -> None:
    """Any offset is a place to start from."""
    last = max((each for each in records if each.partition == 0), key=lambda each: each.offset)
    async with RangeReader(cluster, [Span(TOPIC, 0, last.offset - 2, last.offset + 1)]) as reader:
        found = [record async for record in reader]
    check([each.offset for each in found] == list(range(last.offset - 2, last.offset + 1)), "a range has other offsets")
    step("offsets", f"the last three of partition 0, read from offset {last.offset - 2}:")
    for record in found:
        key, value = (record.key or b"").decode(), (record.value or b"").decode()
        out().print(f"     [dim]{time_text(record.timestamp)}[/dim]  [yellow]{key}[/yellow]  ", end="")
        out().print(value, markup=False)


def _look(data: Path) -> None:
    """The files, read without the broker."""
    partition = data / f"{TOPIC}-0"
    files = sorted(file for file in partition.iterdir() if file.is_file())
    step("log", f"partition 0 on disk, in Kafka's own formats ([dim]{partition}[/dim]):")
    for file in files:
        out().print(f"     {file.name:<32} [dim]{size_text(file.stat().st_size):>10}[/dim]")
    batches = [line for line in log_lines.of_directory(partition, 0, records=False) if line["kind"] == "batch"]
    check(bool(batches) and not any("problem" in line for line in batches), "a batch on disk is damaged")
    shown = batches[0]
    out().print(
        f"     first batch: offsets {shown['offsets']}, {shown['size_bytes']} bytes, {shown['codec']}, "
        f"producer {shown['producer_id']}, sequence {shown['base_sequence']}"
    )
    totals = Totals()
    errors = [
        str(each)
        for each in verify.verify(
            OsDisk(str(data)), partitions=[f"{TOPIC}-{n}" for n in range(PARTITIONS)], totals=totals
        )
        if each.severity is Severity.ERROR
    ]
    check(not errors, "; ".join(errors))
    check(totals.records == RECORDS, f"{totals.records} records lie on disk")
    step("verify", f"{totals.batches} batches, {totals.records:,} records: every checksum and index entry holds")


def _next(bootstrap: str) -> None:
    suffix = "" if bootstrap == DEFAULT_LISTEN else f" -b {bootstrap}"
    program = "ottla" if shutil.which("ottla") else os.path.relpath(sys.argv[0])
    console = out()
    console.print("\n[bold]Try next[/bold], in another terminal (any Kafka client works as well):")
    for command in (
        f"ottla topic describe {TOPIC}{suffix}",
        f"ottla consume {TOPIC} --last 5{suffix}",
        f"ottla produce {TOPIC} 'hello' --key me{suffix}",
        f"ottla consume {TOPIC} --follow{suffix}",
        f"ottla config get topic {TOPIC} --all{suffix}",
        f"ottla api{suffix}",
    ):
        console.print(f"   {program}{command.removeprefix('ottla')}")
