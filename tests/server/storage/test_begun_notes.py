"""Notes of partitions that were made anew: a worker removes them, after checkpoints (`storage/checkpoints.py`)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.server.replicas import Pair, topic_id

from ottla.log.files import checkpoint
from ottla.log.files.disk import StorageError
from ottla.model.ids import TopicPartition
from ottla.server.storage.directories import DataDirectory
from ottla.sim.world.disk import SimDisk
from ottla.wire.journal import cluster_metadata as journal

PARTITIONS = [TopicPartition("t", index) for index in range(3)]


@pytest.fixture
def worker() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as made:
        yield made


def notes(directory: DataDirectory) -> list[TopicPartition]:
    return [each for each in PARTITIONS if directory.disk.exists(f"{each}/{checkpoint.BEGUN_ANEW}")]


async def make_anew(pair: Pair) -> DataDirectory:
    """The directory in which checkpoints speak of others of their names."""
    directory, checkpoints = pair.leader.directories[0], pair.leader.storage.checkpoints
    for is_anew in (False, True):
        pair.create(partitions=len(PARTITIONS))
        for each in PARTITIONS:
            pair.leader.produce(index=each.partition)
        if not is_anew:
            await checkpoints.write(checkpoints.collect(directory))
            pair.apply(journal.RemoveTopicRecord(topic_id=topic_id("t")))
    assert notes(directory) == PARTITIONS
    return directory


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


def test_the_loop_removes_none(worker: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        pair = Pair()
        directory, checkpoints = await make_anew(pair), pair.leader.storage.checkpoints
        removing: list[threading.Thread] = []
        honest = SimDisk.remove

        def remove(self: SimDisk, path: str) -> None:
            removing.append(threading.current_thread())
            honest(self, path)

        monkeypatch.setattr(SimDisk, "remove", remove)
        checkpoints._executor = worker
        await checkpoints.write(checkpoints.collect(directory))
        assert notes(directory) == [] and not directory.begun
        assert len(removing) >= len(PARTITIONS) and threading.current_thread() not in removing
        await pair.close()

    run(test())


def test_one_that_resists_is_tried_again(worker: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        pair = Pair()
        directory, checkpoints = await make_anew(pair), pair.leader.storage.checkpoints
        honest = SimDisk.remove

        def remove(self: SimDisk, path: str) -> None:
            if path.startswith("t-1/"):
                raise StorageError(5, "the disk does not want to")
            honest(self, path)

        with monkeypatch.context() as patch:
            patch.setattr(SimDisk, "remove", remove)
            checkpoints._executor = worker
            assert await checkpoints.write(checkpoints.collect(directory)) is None
        assert notes(directory) == list(directory.begun) == [PARTITIONS[1]]
        checkpoints._executor = worker
        await checkpoints.write(checkpoints.collect(directory))
        assert notes(directory) == []
        await pair.close()

    run(test())


def test_one_that_is_made_meanwhile_stays() -> None:
    """The partition is made anew once more between the writing of the checkpoints and the removal."""

    async def test() -> None:
        pair = Pair()
        directory, checkpoints = await make_anew(pair), pair.leader.storage.checkpoints
        collection = checkpoints.collect(directory)
        remove_notes = checkpoints.written(collection, collection.write())
        assert remove_notes is not None
        pair.apply(journal.RemoveTopicRecord(topic_id=topic_id("t")))
        pair.create(partitions=len(PARTITIONS))
        pair.leader.produce(index=2)
        remove_notes()
        assert notes(directory) == list(directory.begun) == [PARTITIONS[2]]
        await pair.close()

    run(test())
