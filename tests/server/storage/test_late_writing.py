"""Writer: what becomes of a partition when the write of one of its logs is done, or fails."""

import asyncio
import errno
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, cast

import pytest
from tests.log.logs import NOW_MS, batch, open_log
from tests.support.neighbours import ALONE

from ottla.log.files.disk import StorageError
from ottla.log.log import Log
from ottla.log.state import LogState
from ottla.replica.neighbours import Neighbours
from ottla.replica.partition import Partition
from ottla.server.api.acknowledging import Pending, wait_for_placed
from ottla.server.storage.late_writes import Writer
from ottla.sim.world.disk import SimDisk

FULL = StorageError(errno.ENOSPC, "the disk is full")


class Around:
    """A loop whose workers end when the test says so, the node's partitions, and a partition's neighbours."""

    def __init__(self) -> None:
        self.jobs: list[tuple[asyncio.Future[None], Callable[[], None]]] = []
        self.failed: list[Log] = []
        self.writer = Writer(self, cast(Any, self), cast(Any, self), lambda partition: None)
        self.refuses = False

    def __getattr__(self, name: str) -> object:
        return getattr(ALONE, name)

    def of(self, disk: object) -> None:
        return None

    def run_in_executor(self, executor: Executor | None, work: Callable[..., None], *given: Any) -> Any:
        if self.refuses:
            raise RuntimeError("no more work is taken")
        job: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.jobs.append((job, lambda: work(*given)))
        return job

    def holds(self, partition: Partition) -> bool:
        return True

    def storage_failed(self, partition: Partition, error: StorageError) -> None:
        self.failed.append(partition.log)

    def must_write(self, partition: Partition) -> None:
        self.writer.request(partition)

    async def end_write(self, error: StorageError | None = None) -> None:
        job, work = self.jobs.pop(0)
        if error is None:
            work()
            job.set_result(None)
        else:
            job.set_exception(error)
        await asyncio.sleep(0)

    def partition(self) -> Partition:
        return Partition("topic", 0, slow_log(), leader_epoch=0, neighbours=cast(Neighbours[Partition], self))


def slow_log(may_wait: Callable[[LogState], bool] = lambda _: True) -> Log:
    disk = SimDisk()
    disk.faults.slow_writes = True
    return open_log(disk, may_wait=may_wait)


def append(partition: Partition) -> None:
    partition.append(batch(), now_ms=NOW_MS)


def copy_of(partition: Partition) -> Log:
    log, copy = partition.log, slow_log(partition.uses)
    records = log.read(0, 1 << 20, max_offset=log.next_offset).slice
    assert records is not None
    copy.append_replicated(records.read(), 0, NOW_MS)
    return copy


def run(test: Callable[[Around], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test(Around()))


def test_what_waits_is_written_in_turn() -> None:
    async def test(around: Around) -> None:
        partition = around.partition()
        append(partition)
        append(partition)
        assert len(around.jobs) == 1
        await around.end_write()
        assert partition.high_watermark == 2 and not around.jobs

    run(test)


def test_a_failed_write_takes_back_what_waited() -> None:
    async def test(around: Around) -> None:
        partition = around.partition()
        append(partition)
        await around.end_write(FULL)
        assert (partition.log.next_offset, around.failed) == (0, [partition.log])

    run(test)


def test_a_failed_write_of_a_log_that_was_left_concerns_nobody() -> None:
    async def test(around: Around) -> None:
        partition = around.partition()
        append(partition)
        partition.move_to(copy_of(partition))
        append(partition)
        await around.end_write(FULL)
        assert (partition.log.next_offset, partition.cuts, around.failed) == (2, 0, [])
        await around.end_write()
        assert partition.high_watermark == 2

    run(test)


@pytest.mark.parametrize("trouble", ["no worker", "an error in the program"])
def test_a_stop_does_not_wait_for_what_went_wrong(trouble: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(around: Around) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        partition = around.partition()
        append(partition)
        idle = asyncio.ensure_future(around.writer.idle())
        await asyncio.sleep(0)
        if trouble == "no worker":
            monkeypatch.setattr(Partition, "written", lambda self: None)
            around.refuses = True
        else:
            monkeypatch.setattr(Partition, "written", lambda self: 1 // 0)
        await around.end_write()
        await asyncio.wait_for(idle, 60)

    run(test)


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_dead_letters_that_wait_are_waited_for_whatever_their_sender_wants_to_know(acks: int) -> None:
    """With acks=0 its connection is held so long."""

    async def test(around: Around) -> None:
        partition = around.partition()
        append(partition)
        pending: list[Pending] = []
        wait_for_placed((cast(Any, (partition, partition.cuts, 1)),), acks, pending, cast(Any, None))
        assert [(each.partition, each.end) for each in pending] == [(partition, 1)]

    run(test)
