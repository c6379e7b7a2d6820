"""Fetch: one request to read several partitions while it is being answered, whatever kind of reader it is from.

    attempt ─ enough ─────────────────────────────────────────────────> answer
       └─ too little ─> wait ─ something changed ─> attempt ─ enough ──> answer
                         │  ^──────────────────────── too little ──┘
                         └─ time over, or ended ──> attempt ───────────> answer

Consumers, followers and members of share groups are answered in this way. What differs is their policy, a `Reads`:
which partitions an attempt looks at, what it reads of one, what must be told at once, what the answer waits for, and
how it is written (`consumer_reads.py`, `follower_reads.py`, `shares/share_reads.py`).

Rules:
- An answer leaves when it has `min_bytes`, when something in it is urgent, or when its time is over. `max_bytes` bounds
  all of its partitions together.
- A fetch waits in `Waiters` and nowhere else. The wait ends early when the connection is gone, when a follower sends
  its next fetch, and when others need the memory of a fetch that waits for many partitions.
- What was read some time ago is read again before it is answered: it may lie in files that are about to go.
- A partition whose place has to be looked up on the disk (`Cold`) has nothing to say until that is in memory. It is
  looked at again then.
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

AskedT = TypeVar("AskedT", bound=Hashable)  # a partition, as the reader asks for it
DataT = TypeVar("DataT", bound="Data")  # what was read of one
ResponseT = TypeVar("ResponseT")


class Data(Protocol):
    """What was read of one partition, as far as the engine has to know it."""

    @property
    def records(self) -> Sized | None: ...


class Reads(ABC, Generic[AskedT, DataT, ResponseT]):
    """The policy of one kind of reader, for one request."""

    __slots__ = ("urgent",)

    # Whether an answer without anything waits for cold reads, even if there is no time to wait.
    waits_for_disk: ClassVar[bool] = False

    urgent: bool  # whether what the last attempt has read must be told at once

    @abstractmethod
    def to_read(self, fetch: Fetch[AskedT, DataT, ResponseT], changed: Hashable | None) -> Sequence[AskedT]:
        """The partitions that an attempt looks at: because of one key that changed, or (None) all that it should."""

    @abstractmethod
    def count(self) -> int:
        """How many partitions the reader reads."""

    @abstractmethod
    def find(self, asked: AskedT) -> Partition:
        """Raises ApiError."""

    @abstractmethod
    def read(
        self, fetch: Fetch[AskedT, DataT, ResponseT], asked: AskedT, partition: Partition, left_bytes: int
    ) -> DataT:
        """What the partition has to say now. Raises Cold, ApiError and StorageError."""

    @abstractmethod
    def nothing_yet(self, asked: AskedT, partition: Partition) -> DataT:
        """What to say of a partition while its place is looked up on the disk."""

    @abstractmethod
    def refuse(
        self, fetch: Fetch[AskedT, DataT, ResponseT], asked: AskedT, partition: Partition | None, error: ApiError
    ) -> DataT | None:
        """What to say of a partition that cannot be read; None: it is not among what was found."""

    @abstractmethod
    def wait_for(self, fetch: Fetch[AskedT, DataT, ResponseT]) -> Sequence[Hashable]:
        """The keys whose changes an answer that has not enough waits for; none: it does not wait."""

    @abstractmethod
    def respond(self, fetch: Fetch[AskedT, DataT, ResponseT]) -> ResponseT:
        """The answer, with what was found."""

    def look_up(self, fetch: Fetch[AskedT, DataT, ResponseT], asked: AskedT, partition: Partition, cold: Cold) -> bool:
        """Has what is cold read, and the partition looked at again after that; whether the reading begins now."""
        return fetch.engine.cold.look_up(cold, partition)

    def read_again(self, before: DataT) -> None:
        """A partition is about to be read again: what was found the last time does not count any more."""

    def waits(self, fetch: Fetch[AskedT, DataT, ResponseT], waiter: Waiter) -> None:
        """The answer waits from now on."""


class FetchEngine:
    """What all fetches of a node share."""

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
        self.size_bytes = 0  # of what was found
        self._older_bytes = 0  # of what the last attempt did not look at
        self.patient = False  # looks up what is cold itself, after so many tries in vain
        self.later: Later[ResponseT] | None = None  # of one that waits
        self._cold: dict[Partition, None] = {}  # whose places are being looked up
        self._cold_tries = 0
        self._is_for_disk = False  # it waits for cold reads and for nothing else

    def answer(self) -> ResponseT | Later[ResponseT]:
        reads = self.reads
        self.look_at(reads.to_read(self, None))
        keys = self.keys()
        return self.wait(keys) if keys else reads.respond(self)

    # --- attempts

    def look_at(self, some: Sequence[AskedT]) -> None:
        """Reads these partitions, perhaps again, within what is left of `max_bytes`."""
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
        """What was found in these partitions counts no more."""
        for asked in some:
            before = self.found.get(asked)
            if before is not None:
                self.size_bytes -= len(before[1].records)  # type: ignore[arg-type]  # never None here
                self.reads.read_again(before[1])

    def begin_anew(self) -> None:
        """Forgets what was found; everything is about to be read again."""
        self._give_back(tuple(self.found))
        self.found.clear()
        self._cold.clear()

    def _look_up(self, asked: AskedT, partition: Partition, cold: Cold) -> DataT:
        self._cold[partition] = None
        self._cold_tries += self.reads.look_up(self, asked, partition, cold)
        self.patient = self._cold_tries > limits.COLD_TRIES_MAX * self.reads.count()
        return self.reads.nothing_yet(asked, partition)

    def look_again(self, changed: Hashable) -> bool:
        """Reads what one change concerns; whether there is enough to answer now.

        That is what makes waiting for many partitions cheap: each of their appends costs one look.
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
        """What the answer has to wait for; nothing if it can leave now."""
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
        """A key changed, or (None) the time is over: answers if that is enough."""
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
