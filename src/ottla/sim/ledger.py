"""Ledger: what transactions wrote, how they ended, and what a read_committed reader may therefore see.

Claims: a transaction is visible as a whole or not at all; it is visible if its commit was acknowledged, and not if its
abort was acknowledged or no commit was sent; no record is visible twice; records that a read_committed reader has seen
stay visible.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass

from ottla.client.cluster import Cluster
from ottla.client.consumer.offsets import LATEST, list_offsets
from ottla.client.consumer.ranges import ReadOptions, Span
from ottla.client.errors import ClientError
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.sim.workload import PATIENCE_SECONDS, Surroundings, records_of

COMMITTED = ReadOptions(max_partition_bytes=20_000, read_committed=True)

Found = dict[TopicPartition, list[tuple[int, bytes | None]]]  # offsets and values


@dataclass(frozen=True, slots=True, order=True)
class TransactionName:
    """One transaction of one producer; every record of it carries this name and the record's number."""

    producer: int
    number: int

    def value(self, record: int) -> bytes:
        return f"{self.producer} {self.number} {record}".encode()


def parse(value: bytes | None) -> tuple[TransactionName, int]:
    """Return the transaction and the number of a record; the writer may have appended more."""
    producer, number, record = map(int, (value or b"").split()[:3])
    return TransactionName(producer, number), record


class Ledger:
    """What each transaction wrote where, and how it ended as far as its producer knows."""

    def __init__(self) -> None:
        self.written: dict[TransactionName, dict[int, TopicPartition]] = {}  # record number -> partition
        self.committed: dict[TransactionName, None] = {}
        self.refused: dict[TransactionName, None] = {}  # the producer never asked for a commit
        self.seen: Found = {}  # by the reader that follows the run
        self.violations: list[str] = []

    def begin(self, name: TransactionName) -> None:
        self.written[name] = {}
        self.refused[name] = None

    def judge(self, found: Found) -> None:
        """Check `found`: all records that a read_committed reader finds when everything has come to rest."""
        records: dict[TransactionName, dict[int, TopicPartition]] = {}
        for partition, content in found.items():
            for _, value in content:
                name, number = parse(value)
                if number in records.setdefault(name, {}):
                    self.violations.append(f"record {number} of {name} is there twice")
                records[name][number] = partition
        for name, wanted in self.written.items():
            present = records.get(name, {})
            if present and present != wanted:
                self.violations.append(f"{name} is torn: {sorted(present)} of {sorted(wanted)}")
            if name in self.committed and wanted and not present:
                self.violations.append(f"{name} was committed and is gone")
            if name in self.refused and present:
                self.violations.append(f"{name} was never committed and is seen")
        for partition, content in self.seen.items():
            if not set(content) <= set(found[partition]):
                self.violations.append(f"{partition}: a reader saw what is not committed after all")


class CommittedReader:
    """A read_committed reader that follows all partitions from the beginning."""

    def __init__(self, around: Surroundings, ledger: Ledger, rng: random.Random) -> None:
        self._around = around
        self._seen = ledger.seen
        self._rng = rng

    async def run(self) -> None:
        while True:
            try:
                async with Cluster(self._around.options("committed-reader", self._rng)) as cluster:
                    while True:
                        await self._look(cluster)
                        await asyncio.sleep(0.5)
            except (ClientError, ApiError):
                await asyncio.sleep(self._rng.uniform(0.1, 1.0))

    async def _look(self, cluster: Cluster) -> None:
        for partition in self._around.partitions:
            content = self._seen.setdefault(partition, [])
            start = content[-1][0] + 1 if content else 0
            end = (await list_offsets(cluster, {partition: LATEST}, read_committed=True))[partition].offset
            if start < end:
                async with records_of(cluster, [Span(*partition, start, end)], COMMITTED) as found:
                    async for record in found:
                        content.append((record.offset, record.value))


async def read_all_committed(around: Surroundings, found: Found, rng: random.Random) -> None:
    """Read everything when no transaction is open: the last stable offset is the end of the log."""
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    for partition in around.partitions:
        while True:
            try:
                async with Cluster(around.options("last-reader", rng)) as cluster:
                    stable = (await list_offsets(cluster, {partition: LATEST}, read_committed=True))[partition].offset
                    end = (await list_offsets(cluster, {partition: LATEST}))[partition].offset
                    if stable == end:
                        async with records_of(cluster, [Span(*partition, 0, end)], COMMITTED) as records:
                            found[partition] = [(record.offset, record.value) async for record in records]
                        break
            except (ClientError, ApiError) as error:
                around.tell(f"the last reader tries again: {error}")
            if asyncio.get_running_loop().time() > deadline:
                around.history.blame(f"{partition}: something is undecided still")
                found.setdefault(partition, [])
                break
            await asyncio.sleep(1)
