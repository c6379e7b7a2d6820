"""Fetch: one request that reads several partitions, from its first attempt to its answer, for all kinds of readers.

    attempt ─ enough ─────────────────────────────────────────────────> answer
       └─ too little ─> wait ─ something changed ─> attempt ─ enough ──> answer
                         │  ^──────────────────────── too little ──┘
                         └─ time over, or ended ──> attempt ───────────> answer

Consumers, followers and members of share groups are answered in this way. They differ in their policy, a `Reads`: which
partitions an attempt reads, how it reads one, what makes an answer urgent, what it waits for, and how the response is
built (`consumer_reads.py`, `follower_reads.py`, `shares/share_reads.py`).

Rules:
- An answer is sent when it has `min_bytes`, when something in it is urgent, or when its time is over. `max_bytes`
  bounds all of its partitions together.
- A fetch waits in `Waiters` and nowhere else. The wait ends early when the connection is closed, when a follower sends
  its next fetch, and when other requests need the memory of a fetch that waits for many partitions.
- Records that were found in an earlier attempt are read again before the answer: their files may be about to be
  removed.
- A partition whose position has to be looked up on the disk (`Cold`) gives no records until that is in the page cache.
  Then it is read again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence, Sized
from typing import ClassVar, Generic, Protocol, TypeVar

from ottla.log.files.disk import Cold, StorageError
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.replica.partition import Partition
from ottla.server.loop.later import Later
from ottla.server.loop.waiters import Waiter, Waiters
from ottla.server.storage.cold_reads import ColdReads
from ottla.server.storage.partitions import Partitions

AskedT = TypeVar("AskedT", bound=Hashable)  # a partition, as the request names it
DataT = TypeVar("DataT", bound="Data")  # the data read from one partition
ResponseT = TypeVar("ResponseT")


class Data(Protocol):
    """The data read from one partition, as far as the engine needs it."""

    @property
    def records(self) -> Sized | None: ...


class Reads(ABC, Generic[AskedT, DataT, ResponseT]):
    """The policy of one kind of reader, for one request."""

    __slots__ = ("urgent",)

    # Whether an answer without data waits for cold reads, even if the request has no time to wait.
    waits_for_disk: ClassVar[bool] = False

    urgent: bool  # whether the result of the last attempt must be answered at once

    @abstractmethod
    def to_read(self, fetch: Fetch[AskedT, DataT, ResponseT], changed: Hashable | None) -> Sequence[AskedT]:
        """Return the partitions that an attempt reads: those that a changed key concerns, or (None) all that it should
        read.
        """

    @abstractmethod
    def count(self) -> int:
        """Return how many partitions the request reads."""

    @abstractmethod
    def find(self, asked: AskedT) -> Partition:
        """Return the partition. Raises ApiError."""

    @abstractmethod
    def read(
        self, fetch: Fetch[AskedT, DataT, ResponseT], asked: AskedT, partition: Partition, left_bytes: int
    ) -> DataT:
        """Read the partition now. Raises Cold, ApiError and StorageError."""

    @abstractmethod
    def nothing_yet(self, asked: AskedT, partition: Partition) -> DataT:
        """Return the data of a partition whose position is being looked up on the disk."""

    @abstractmethod
    def refuse(
        self, fetch: Fetch[AskedT, DataT, ResponseT], asked: AskedT, partition: Partition | None, error: ApiError
    ) -> DataT | None:
        """Return the data of a partition that cannot be read; None keeps it out of `found`."""

    @abstractmethod
    def wait_for(self, fetch: Fetch[AskedT, DataT, ResponseT]) -> Sequence[Hashable]:
        """Return the keys whose changes an answer without enough data waits for; if there are none, it does
        not wait.
        """

    @abstractmethod
    def respond(self, fetch: Fetch[AskedT, DataT, ResponseT]) -> ResponseT:
        """Return the response, made of what was found."""

    def look_up(self, fetch: Fetch[AskedT, DataT, ResponseT], asked: AskedT, partition: Partition, cold: Cold) -> bool:
        """Have the cold range read, and the partition read again after that; return whether a new read was started."""
        return fetch.engine.cold.look_up(cold, partition)

    def read_again(self, before: DataT) -> None:
        """Discount the data of a partition that is about to be read again."""

    def waits(self, fetch: Fetch[AskedT, DataT, ResponseT], waiter: Waiter) -> None:
        """Note that the answer waits from now on."""


class FetchEngine:
    """The dependencies that all fetches of a node share."""

    __slots__ = ("cold", "partitions", "waiters")

    def __init__(self, partitions: Partitions, waiters: Waiters, cold: ColdReads) -> None:
        self.partitions = partitions
        self.waiters = waiters
        self.cold = cold


class Fetch(Generic[AskedT, DataT, ResponseT]):
    __slots__ = (
        "_cold",
        "_cold_tries",
        "_is_for_disk",
        "_older_bytes",
        "engine",
        "found",
        "later",
        "max_bytes",
        "min_bytes",
        "patient",
        "reads",
        "size_bytes",
        "wait_ms",
    )

    def __init__(
        self, engine: FetchEngine, reads: Reads[AskedT, DataT, ResponseT], max_bytes: int, min_bytes: int, wait_ms: int
    ) -> None:
        self.engine = engine
        self.reads = reads
        most_bytes = engine.partitions.fetch_max_bytes
        self.max_bytes = max_bytes = max_bytes if max_bytes < most_bytes else most_bytes
        self.min_bytes = min_bytes if min_bytes < max_bytes else max_bytes
        self.wait_ms = wait_ms
        self.found: dict[AskedT, tuple[Partition | None, DataT]] = {}
        self.size_bytes = 0  # the size of the records in `found`
        self._older_bytes = 0  # the size of the records that the last attempt did not read
        self.patient = False  # reads cold data on the loop, after too many failed attempts
        self.later: Later[ResponseT] | None = None  # set if the fetch waits
        self._cold: dict[Partition, None] = {}  # partitions whose positions are being looked up on the disk
        self._cold_tries = 0
        self._is_for_disk = False  # whether it waits only for cold reads

    def answer(self) -> ResponseT | Later[ResponseT]:
        reads = self.reads
        self.look_at(reads.to_read(self, None))
        keys = self.keys()
        return self.wait(keys) if keys else reads.respond(self)

    # --- attempts

    def look_at(self, some: Sequence[AskedT]) -> None:
        """Read these partitions, perhaps again, within what is left of `max_bytes`."""
        reads, found = self.reads, self.found
        if found:
            self._give_back(some)
        self._older_bytes = self.size_bytes
        find, read, max_bytes = reads.find, reads.read, self.max_bytes
        data: DataT | None
        for asked in some:
            partition = None
            try:
                partition = find(asked)
                if self._cold:
                    self._cold.pop(partition, None)
                left_bytes = max_bytes - self.size_bytes
                data = read(self, asked, partition, left_bytes if left_bytes > 0 else 0)
            except Cold as cold:
                assert partition is not None, "finding it reads nothing"
                data = self._look_up(asked, partition, cold)
            except ApiError as error:
                data = reads.refuse(self, asked, partition, error)
            except StorageError as error:
                assert partition is not None, "finding it reads nothing"
                self.engine.partitions.storage_failed(partition, error)
                data = reads.refuse(self, asked, partition, ApiError(ErrorCode.KAFKA_STORAGE_ERROR))
            if data is not None:
                found[asked] = partition, data
                self.size_bytes += len(data.records)  # type: ignore[arg-type]  # never None here

    def _give_back(self, some: Sequence[AskedT]) -> None:
        """Discount what was found in these partitions."""
        for asked in some:
            before = self.found.get(asked)
            if before is not None:
                self.size_bytes -= len(before[1].records)  # type: ignore[arg-type]  # never None here
                self.reads.read_again(before[1])

    def begin_anew(self) -> None:
        """Drop what was found, because everything is about to be read again."""
        self._give_back(tuple(self.found))
        self.found.clear()
        self._cold.clear()

    def _look_up(self, asked: AskedT, partition: Partition, cold: Cold) -> DataT:
        self._cold[partition] = None
        self._cold_tries += self.reads.look_up(self, asked, partition, cold)
        self.patient = self._cold_tries > limits.COLD_TRIES_MAX * self.reads.count()
        return self.reads.nothing_yet(asked, partition)

    def look_again(self, changed: Hashable) -> bool:
        """Read the partitions that one change concerns; return whether there is enough to answer now.

        This makes waiting for many partitions cheap: each append to one of them costs one read.
        """
        self.look_at(self.reads.to_read(self, changed))
        return self.is_enough

    @property
    def is_enough(self) -> bool:
        if self._is_for_disk:
            return self.reads.urgent or self.size_bytes > 0 or not self._cold
        return self.reads.urgent or self.size_bytes >= self.min_bytes

    # --- waiting

    def keys(self) -> Sequence[Hashable]:
        """Return the keys that the answer has to wait for; none if it can be sent now."""
        reads = self.reads
        if self._cold and reads.waits_for_disk and not (reads.urgent or self.size_bytes):
            self._is_for_disk = True
            self.wait_ms = max(self.wait_ms, limits.COLD_WAIT_MS)
        elif reads.urgent or self.size_bytes >= self.min_bytes:
            return ()
        return reads.wait_for(self)

    def wait(self, keys: Sequence[Hashable]) -> Later[ResponseT]:
        later: Later[ResponseT] = Later()
        self.later = later
        waiter = self.engine.waiters.watch(later, keys, self.again, self.wait_ms, may_be_hurried=True)
        self.reads.waits(self, waiter)
        return later

    def again(self, changed: Hashable | None) -> bool:
        """Handle a changed key, or (None) the end of the wait; answer if there is enough."""
        assert self.later is not None, "it waits"
        if changed is None:
            self.look_at(self.reads.to_read(self, None))
        elif not self.look_again(changed):
            return False
        elif self._older_bytes:
            self.look_at(self.reads.to_read(self, None))
            if not self.is_enough:
                return False
        self.later.set(self.reads.respond(self))
        return True
