"""The metadata journal beside the loop: who waits for the disk hears nothing before the disk has done its work."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ottla.cluster.entry import MetadataEntry
from ottla.cluster.store import MetadataStore, StoreConfig
from ottla.raft.config import RaftConfig
from ottla.raft.journal import ReplicaKey
from ottla.raft.node import RaftNode
from ottla.raft.voters import Voter, VoterSet
from ottla.server.loop.runtime import Runtime
from ottla.server.peers.peers import Peers
from ottla.server.quorum.quorum import Quorum
from ottla.sim.world.disk import DiskFaults, SimDisk
from ottla.sim.world.loop import SimLoop
from ottla.wire.journal import cluster_metadata as records

CONFIG = StoreConfig(segment_bytes=8 << 20, segment_ms=1 << 40, bytes_between_snapshots=1 << 30)


class Listener:
    """Hears what consensus tells the node, and does nothing about it."""

    def taking(self, entries: Sequence[MetadataEntry], epoch: int, high_watermark: int) -> Iterator[None]:
        return iter(())

    def loading_snapshot(self, items: Any, offset: int, epoch: int) -> Iterator[None]:
        return iter(())

    def lead(self, epoch: int) -> None: ...

    def follow(self, leader_id: int, epoch: int) -> None: ...


class Journal:
    """A sole voter that serves, on a simulated loop whose workers do the syncs."""

    def __init__(self, seed: int) -> None:
        self.faults = DiskFaults()
        self.loop = SimLoop(random.Random(seed))
        self.store = MetadataStore.open(SimDisk(random.Random(seed), self.faults), CONFIG, now_ms=lambda: 0, clean=True)
        self.store.load()
        node = RaftNode(
            ReplicaKey(1, b"\x05" * 16),
            "c",
            self.store,
            VoterSet([Voter(1)]),
            config=RaftConfig(),
            rng=random.Random(seed),
        )
        executor = ThreadPoolExecutor(1)  # it never gets a thread
        runtime = Runtime(self.loop, now_ms=lambda: 2_000, rng=random.Random(seed), executor=executor)
        self.quorum = Quorum(node, self.store, runtime, Peers("test"), Listener())
        self.quorum.start()
        self.quorum.begin_to_serve()

    def run(self, seconds: float) -> None:
        self.loop.call_later(seconds, self.loop.stop)
        self.loop.run_forever()
        self.loop.close()
        assert not self.loop.errors

    def write(self) -> None:
        self.store.write_entries(
            [MetadataEntry(records.TopicRecord(name="t", topic_id=b"\x01" * 16))], self.quorum.epoch
        )


@pytest.mark.parametrize("failing_s", [0.01, 1.0, 10.0])
def test_flushed_means_on_disk_also_after_flushes_that_failed(failing_s: float) -> None:
    journal = Journal(1)
    journal.write()
    end_offset = journal.store.end_offset
    journal.faults.sync_error_rate = 1.0
    told: list[tuple[float, int]] = []
    journal.quorum.flushed().then(
        lambda _: told.append((journal.loop.time(), journal.store.flushed_offset)), pytest.fail
    )
    journal.loop.call_later(failing_s, setattr, journal.faults, "sync_error_rate", 0.0)
    journal.run(failing_s + 30)
    ((at, flushed_offset),) = told
    assert at >= failing_s
    assert flushed_offset >= end_offset
