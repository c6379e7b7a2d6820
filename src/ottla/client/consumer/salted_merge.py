"""Salted hot keys, the consumer's side: restores the order of the records of each key (see `client.producer.hot_keys`).

The merge must see every partition of the topic: in one consumer, or behind one. Records without the header pass
unchanged; so do records with foreign headers of the same name.

Semantics:
- Records of one key and one source leave in the order of their numbers. A record that arrives early is held until those
  before it have come. A source begins with number 0, or, if reading started in the middle, with the lowest number
  seen once every shard has shown one (a shard's numbers only grow).
- A record whose number has left already passes at once. A record whose number is held already is held with the first:
  an application that made several records of one and copied its headers made several of one number. (The same record,
  read twice while it is held, is held once.)
- Memory: at most `held_max` records are held in all; one more, and the longest waiting key and source stops waiting for
  missing records (`gaps` counts that) and its records leave, in order. At most `sources_max` keys and sources are
  remembered; the one without records for longest is forgotten.
- Held records were read but have not left: commit no offset above `held_offsets()`. `merge_salted` makes its consumer
  obey that, and counts the record that left last as handled when the next one is asked for. `flush` lets all records
  leave.
"""

from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar, runtime_checkable

from ottla.client.producer.hot_keys import SALT_HEADER, Salt
from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.records.record import Headers


class SaltedRecord(Protocol):
    """The fields of a record that the merge reads: any consumer's record will do."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def headers(self) -> Headers: ...


@runtime_checkable
class HoldsBack(Protocol):
    """A consumer whose commits can be limited to the records that have left the merge."""

    def hold_back(self, held: Callable[[], Mapping[TopicPartition, int]]) -> None: ...


R = TypeVar("R", bound=SaltedRecord)
_Name = tuple[str, bytes, int]  # topic, key, source


class _Stream(Generic[R]):
    """The records of one key by one source."""

    __slots__ = ("count", "expected", "held", "lowest", "shards")

    def __init__(self, shards: int) -> None:
        self.shards = shards
        self.expected: int | None = None  # the number that leaves next; None until the first number is known
        self.held: dict[int, dict[tuple[int, int], R]] = {}  # number -> (partition, offset) -> record
        self.count = 0  # number of records held
        self.lowest: dict[int, int] = {}  # shard -> its first number, until the source's first number is known

    def take(self, salt: Salt, record: R) -> list[R]:
        if self.expected is not None and salt.number < self.expected:
            return [record]
        same = self.held.setdefault(salt.number, {})
        self.count -= len(same)
        same[record.partition, record.offset] = record
        self.count += len(same)
        if self.expected is None:
            self.lowest.setdefault(salt.shard, salt.number)
            if salt.number == 0:
                self.expected = 0
            elif len(self.lowest) == self.shards:
                self.expected = min(self.lowest.values())
        return self.leave()

    def leave(self) -> list[R]:
        """Remove and return the records that wait for no other."""
        found: list[R] = []
        while self.expected is not None and self.expected in self.held:
            found += self._let_go(self.expected)
            self.expected += 1
        return found

    def give_up(self) -> list[R]:
        """Remove and return all records in order, even if some are missing."""
        numbers = sorted(self.held)
        found = [record for number in numbers for record in self._let_go(number)]
        if numbers:
            self.expected = numbers[-1] + 1
        return found

    def records(self) -> Iterator[R]:
        """Yield the held records."""
        for same in self.held.values():
            yield from same.values()

    def _let_go(self, number: int) -> list[R]:
        same = self.held.pop(number)
        self.count -= len(same)
        return list(same.values())


class SaltedMerge(Generic[R]):
    """Takes records of all partitions as they come and returns them in the order of each key."""

    def __init__(
        self, held_max: int = limits.SALTED_RECORDS_HELD_MAX, sources_max: int = limits.SALTED_SOURCES_MAX
    ) -> None:
        self.gaps = 0
        self._held_max = held_max
        self._sources_max = sources_max
        self._streams: dict[_Name, _Stream[R]] = {}  # the most recently used at the end
        self._waiting: dict[_Name, None] = {}  # streams with held records, the longest waiting first
        self._held = 0

    @property
    def held(self) -> int:
        """How many records are held at present."""
        return self._held

    def held_offsets(self) -> dict[TopicPartition, int]:
        """Return, per partition, the offset of the first record that was read but has not left."""
        return _first_offsets((each for name in self._waiting for each in self._streams[name].records()), {})

    def push(self, record: R) -> list[R]:
        """Take one record and return the records that may leave now, in order."""
        salt = salt_of(record)
        if salt is None or record.key is None:
            return [record]
        name = (record.topic, record.key, salt.source)
        stream = self._streams.pop(name, None)
        if stream is None:
            stream = _Stream(salt.shards)
        self._streams[name] = stream
        before = stream.count
        found = stream.take(salt, record)
        self._held += stream.count - before
        if not stream.held:
            self._waiting.pop(name, None)
        else:
            self._waiting.setdefault(name)
        while self._held > self._held_max:
            found += self._stop_waiting(next(iter(self._waiting)))
        if len(self._streams) > self._sources_max:
            oldest = next(iter(self._streams))
            found += self._stop_waiting(oldest)
            del self._streams[oldest]
        return found

    def flush(self) -> list[R]:
        """Return all held records: there are no more to come."""
        return [record for name in list(self._waiting) for record in self._stop_waiting(name)]

    def _stop_waiting(self, name: _Name) -> list[R]:
        if name not in self._waiting:
            return []
        del self._waiting[name]
        found = self._streams[name].give_up()
        self._held -= len(found)
        self.gaps += 1
        return found


def salt_of(record: SaltedRecord) -> Salt | None:
    """Return the record's salt, or None."""
    for name, content in record.headers:
        if name == SALT_HEADER:
            return Salt.decode(content)
    return None


async def merge_salted(
    records: AsyncIterable[R],
    *,
    held_max: int = limits.SALTED_RECORDS_HELD_MAX,
    sources_max: int = limits.SALTED_SOURCES_MAX,
) -> AsyncIterator[R]:
    """Yield the same records with the order of every key restored: `async for record in merge_salted(consumer)`."""
    merge: SaltedMerge[R] = SaltedMerge(held_max, sources_max)
    leaving: deque[R] = deque()  # the caller works on the first until it asks for the next

    def held() -> dict[TopicPartition, int]:
        return _first_offsets(leaving, merge.held_offsets())

    if isinstance(records, HoldsBack):
        records.hold_back(held)
    async for record in records:
        leaving.extend(merge.push(record))
        while leaving:
            yield leaving[0]
            leaving.popleft()
    for each in merge.flush():
        yield each


def _first_offsets(records: Iterable[SaltedRecord], known: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Return, per partition, the lowest offset among these records and `known`."""
    for record in records:
        place = TopicPartition(record.topic, record.partition)
        known[place] = min(record.offset, known.get(place, record.offset))
    return known
