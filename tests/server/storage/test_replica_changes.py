"""Replicas that change or go in great numbers (`server/storage/replica_changes.py`): a bounded piece per slice."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from tests.server.replicas import FOLLOWER, Pair, topic_id

from ottla.model import limits
from ottla.replica.partition import Partition
from ottla.sim.world.disk import SimDisk
from ottla.wire.journal import cluster_metadata as journal

PER_SLICE = 10
COUNT = 35


def pieces(pair: Pair, records: Sequence[Any], done: list[Any]) -> list[int]:
    """How much was `done` in each slice of the leader's work with these records."""
    changes = [change for record in records for change in pair.state.apply(record)]
    pair.leader.configs.forget()
    found = []
    for _ in pair.leader.storage.changes.following(changes):
        found.append(len(done))
        done.clear()
    return [*found, len(done)]


def test_directories_of_replicas_that_go_are_renamed_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DIRECTORIES_RENAMED_PER_TURN", PER_SLICE)
    renamed: list[str] = []
    honest = SimDisk.rename

    def rename(self: SimDisk, old: str, new: str) -> None:
        renamed.extend([new] if new.endswith("-delete") else [])
        honest(self, old, new)

    monkeypatch.setattr(SimDisk, "rename", rename)

    async def test() -> None:
        pair = Pair()
        pair.create(partitions=COUNT)
        for number in range(COUNT):
            pair.create(f"t{number}")
        for index in range(COUNT):
            pair.leader.produce(index=index)
            pair.leader.produce(f"t{index}")
        gone = [
            journal.PartitionChangeRecord(partition_id=index, topic_id=topic_id("t"), replicas=[FOLLOWER])
            for index in range(COUNT)
        ]
        deleted = [journal.RemoveTopicRecord(topic_id=topic_id(f"t{number}")) for number in range(COUNT)]
        for records in (gone, deleted):
            done = pieces(pair, records, renamed)
            assert 0 < max(done) <= PER_SLICE
            left = pair.leader.partitions.retirement.go_on()
            assert left == COUNT - 2 * PER_SLICE
            pair.leader.partitions.retirement.finish()
            renamed.clear()
        await pair.close()

    asyncio.run(test())


def test_partitions_get_their_settings_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "METADATA_RECORDS_PER_SLICE", PER_SLICE)
    configured: list[Partition] = []
    honest = Partition.configure

    def configure(self: Partition, config: Any) -> None:
        configured.append(self)
        honest(self, config)

    monkeypatch.setattr(Partition, "configure", configure)

    async def test() -> None:
        pair = Pair()
        pair.create(partitions=COUNT)
        for index in range(COUNT):
            pair.leader.produce(index=index)
        record = journal.ConfigRecord(resource_type=2, resource_name="t", name="flush.ms", value="7")
        done = pieces(pair, [record], configured)
        assert sum(done) == COUNT and max(done) <= PER_SLICE
        assert {pair.leader.log("t", index).config.flush_ms for index in range(COUNT)} == {7}
        await pair.close()

    asyncio.run(test())
