"""Recovery: after an unclean shutdown, opens all logs before the node serves, several per data directory in parallel.

Each log is read by one thread (num.recovery.threads.per.data.dir of them for each directory) and used by nothing else
until it is open; `Partitions` takes the logs over one by one, in the calling thread. A log that cannot be opened is
logged, and its partition answers with storage errors; the others go on. The next request for such a partition causes
another attempt, in a worker.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, Future, as_completed
from contextlib import ExitStack

from ottla.log.files.disk import StorageError
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.model.limits import MIB
from ottla.replica.partition import Partition
from ottla.server.storage.directories import DataDirectory
from ottla.server.storage.open_failures import OpenFailures
from ottla.server.storage.opening import Opening
from ottla.server.storage.partitions import Partitions

log = logging.getLogger(__name__)

# Progress is logged after so many bytes of one log (some seconds of reading), and after so many logs.
TELL_BYTES = 64 * MIB
TELL_LOGS = 1_000

Threads = Callable[[int], Executor]
# Called while a log is read, in the reading thread, with its partition, the bytes done and the bytes in total.
Watch = Callable[[TopicPartition, int, int], None]


def recover(
    partitions: Partitions,
    threads: Threads | None,
    per_directory: int,
    *,
    now_ms: Callable[[], int],
    watch: Watch | None = None,
) -> None:
    """Open all partitions in directories without a clean shutdown; without `threads`, one after the other."""
    begun_ms = now_ms()
    told: list[_Progress] = []
    failures = OpenFailures(partitions)
    with ExitStack() as running:
        futures: dict[Future[Partition], tuple[TopicPartition, _Progress]] = {}
        for directory, names in partitions.unclean().items():
            executor = running.enter_context(threads(per_directory)) if threads is not None else None
            count = per_directory if threads is not None else 1
            log.info("%s was not closed in order: recovering %d logs, %d at a time", directory.path, len(names), count)
            progress = _Progress(directory, len(names), watch)
            told.append(progress)
            for name in names:
                opening = _opening(partitions, name, progress, failures)
                if opening is None:
                    continue
                if executor is None:
                    _take_over(partitions, name, opening.open, progress, failures)
                else:
                    futures[executor.submit(opening.open)] = name, progress
        for future in as_completed(futures):
            name, progress = futures.pop(future)
            _take_over(partitions, name, future.result, progress, failures)
    failures.tell()
    for progress in told:
        progress.all_done(now_ms() - begun_ms)


async def recover_late(partitions: Partitions, in_worker: Callable[..., Awaitable[Partition]]) -> None:
    """Open partitions, while the node serves, that failed to open at the start and were requested again since."""
    failures = OpenFailures(partitions)
    for name in tuple(partitions.unrecovered):
        del partitions.unrecovered[name]
        topic_id = partitions.topic_id(name.topic)
        if partitions.if_opened(*name) is not None or topic_id is None:
            continue
        directory = partitions.directory_of(name)
        if directory is not None and directory.offline:
            continue  # the directory has told so; nothing in it is opened before the next start
        try:
            opening = partitions.opening(name)
            opened = await in_worker(opening.open)
            if partitions.topic_id(name.topic) == topic_id and partitions.directory_of(name) is opening.directory:
                partitions.take_over(name, opened)
        except ApiError as error:
            failures.add(name, error.message)
        except StorageError as error:
            if partitions.directory_of(name) is not None:  # otherwise the partition was deleted meanwhile
                failures.add(name, partitions.not_opened(name, error).message)
    failures.tell()


def _opening(
    partitions: Partitions, name: TopicPartition, progress: _Progress, failures: OpenFailures
) -> Opening | None:
    try:
        return partitions.opening(name, progress.of(name))
    except ApiError as error:
        failures.add(name, error.message)
        progress.one_done()
        return None


def _take_over(
    partitions: Partitions,
    name: TopicPartition,
    opened: Callable[[], Partition],
    progress: _Progress,
    failures: OpenFailures,
) -> None:
    try:
        partitions.take_over(name, opened())
    except StorageError as error:
        failures.add(name, partitions.not_opened(name, error).message)
    progress.one_done()


class _Progress:
    """The progress of one directory, for the log. Reading threads report their own log, the caller reports finished
    logs.
    """

    def __init__(self, directory: DataDirectory, count: int, watch: Watch | None) -> None:
        self._path = directory.path
        self._count = count
        self._watch = watch
        self._done = 0
        self._told_bytes: dict[TopicPartition, int] = {}
        self._size_bytes: dict[TopicPartition, int] = {}

    def of(self, name: TopicPartition) -> Callable[[int, int], None]:
        def tell(done_bytes: int, total_bytes: int) -> None:
            self._size_bytes[name] = total_bytes
            if self._watch is not None:
                self._watch(name, done_bytes, total_bytes)
            if done_bytes - self._told_bytes.get(name, 0) < TELL_BYTES:
                return
            self._told_bytes[name] = done_bytes
            log.info(
                "%s: recovering %s-%d: %d of %d MiB; %d of %d logs are left",
                self._path,
                *name,
                done_bytes // MIB,
                total_bytes // MIB,
                self._count - self._done,
                self._count,
            )

        return tell

    def one_done(self) -> None:
        self._done += 1
        if self._done % TELL_LOGS == 0:
            log.info("%s: %d of %d logs are recovered", self._path, self._done, self._count)

    def all_done(self, took_ms: int) -> None:
        size_bytes = sum(self._size_bytes.values())
        log.info(
            "%s: recovered %d logs in %.1f s; %.1f MiB were read",
            self._path,
            self._done,
            took_ms / 1000,
            size_bytes / MIB,
        )
