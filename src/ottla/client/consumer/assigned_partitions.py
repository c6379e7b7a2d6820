"""The partitions a consumer reads: position, pause, and fetched records that were not handed out yet. Pure bookkeeping.

Rules:
- `position` is the next offset to hand out, which is what is committed; the fetch cursor is ahead of it. The position
  moves when the records before it are handed out, and when a new position is found; nothing else moves it.
- A new position (seek, reset) gets a new cursor. Answers for an old cursor are dropped, so no record from before a
  seek is handed out after it.
- Records leave by the batch: the first request decodes a whole batch. A batch that cannot be decoded stays buffered.
- `failure` is the reason why the partition yields no records; it is cleared when records arrive or the position moves.
"""

from collections import deque
from collections.abc import Iterator

from ottla.client.consumer.fetched import ConsumedRecord, FetchCursor, Fetched, RawBatch, decode_batch
from ottla.client.consumer.offsets import Time
from ottla.model.ids import NO_ID, NO_LEADER_EPOCH, TopicPartition


class AssignedPartition:
    """One assigned partition."""

    __slots__ = (
        "_batches",
        "_current",
        "_decoded",
        "_next_offsets",
        "asked",
        "buffered_bytes",
        "committed",
        "cursor",
        "failure",
        "high_watermark",
        "is_revoked",
        "is_set_aside",
        "is_told",
        "last_stable_offset",
        "leader_epoch",
        "partition",
        "paused",
        "position",
        "tries",
    )

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.position: int | None = None  # None: not known yet (see the cursor's time, or the committed offset)
        self.leader_epoch: int = NO_LEADER_EPOCH  # of the last record handed out, or as committed
        self.failure: Exception | None = None
        self.is_told = False  # whether the failure was raised to the caller
        # Whether the next records could not be read a moment ago: for a while the partition then counts as empty.
        self.is_set_aside = False
        self.tries = 0  # attempts to find the committed offset, or to read the next records
        self.committed: int | None = None  # the last committed offset that this consumer knows of
        # The offset that the caller asked to commit since the last move, whether or not that succeeded.
        self.asked: int | None = None
        self.is_revoked = False  # by the group: whatever happens to the partition now is another owner's
        self.paused = False
        self.cursor: FetchCursor | None = None
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.buffered_bytes = 0
        self._batches: deque[RawBatch] = deque()
        self._next_offsets: deque[int] = deque()  # per batch: the position once all of it was handed out
        self._current: RawBatch | None = None  # the batch that was decoded last
        self._decoded: list[ConsumedRecord] = []  # the rest of a batch that was too large for the last caller

    def move(self, position: int | Time | None, leader_epoch: int = NO_LEADER_EPOCH, topic_id: bytes = NO_ID) -> None:
        """Continue from this position. A `Time` is resolved to an offset first; None: look up the committed offset. If
        a topic id is given, the position is valid only in the topic with that id, not in another topic of the same
        name.
        """
        self.position = None if isinstance(position, Time) else position
        self.leader_epoch = leader_epoch
        if self.cursor is not None:
            self.cursor.is_dropped = True
        self.tries = 0
        self.cursor = None if position is None else FetchCursor(self.partition, position, topic_id=topic_id)
        self.failure = None
        self.is_set_aside = False
        self._batches.clear()
        self._next_offsets.clear()
        self._decoded = []
        self.buffered_bytes = 0
        self.asked = None

    def add(self, fetched: Fetched) -> None:
        """Buffer what was fetched, unless the position was moved after it was requested."""
        if fetched.cursor is not self.cursor:
            return
        if not self.has_records:  # otherwise it was requested before the buffered records turned out to be unreadable
            self.failure = None
        if self.position is None:
            self.position = fetched.next_offset  # the offset that the cursor's time was resolved to
            return
        self.high_watermark, self.last_stable_offset = fetched.high_watermark, fetched.last_stable_offset
        if not fetched.batches:
            if not self.has_records:
                self.position = fetched.next_offset  # there are only control batches or aborted records before it
            elif self._next_offsets:
                self._next_offsets[-1] = fetched.next_offset
            return
        for raw, following in zip(fetched.batches, fetched.batches[1:], strict=False):
            self._next_offsets.append(following.header.base_offset)
            self._batches.append(raw)
        self._batches.append(fetched.batches[-1])
        self._next_offsets.append(fetched.next_offset)
        self.buffered_bytes += fetched.size_bytes

    @property
    def topic_id(self) -> bytes:
        """Id of the topic that the position belongs to, as far as it is known."""
        return NO_ID if self.cursor is None else self.cursor.topic_id

    @property
    def has_records(self) -> bool:
        return bool(self._batches or self._decoded)

    @property
    def is_open(self) -> bool:
        """Whether records of this partition may be handed out."""
        return not (self.paused or self.is_set_aside)

    def take(self, records_max: int) -> tuple[list[ConsumedRecord], int]:
        """Return records of one batch to hand out, and the position after the last of them. The position itself does
        not move: `hand_out` moves it.
        """
        while True:
            found = self._decoded
            if not found:
                if not self._batches:
                    return [], self._position_or(0)
                raw = self._current = self._batches[0]
                found = list(decode_batch(raw))  # a batch that cannot be decoded stays buffered
                self._batches.popleft()
                self.buffered_bytes -= raw.header.size_bytes
            if len(found) > records_max:
                self._decoded = found[records_max:]
                return found[:records_max], found[records_max].offset
            self._decoded = []
            next_offset = self._next_offsets.popleft()
            if found or not self._batches:
                return found, next_offset

    def hand_out(self, records: list[ConsumedRecord], next_offset: int) -> None:
        """Move the position behind records that were taken and are handed out now."""
        self.position = next_offset
        if records:
            self.leader_epoch = records[-1].leader_epoch

    def batches(self) -> Iterator[RawBatch]:
        """Yield the buffered batches, undecoded, beginning with the rest of a partly taken batch. Changes nothing."""
        if self._decoded:
            assert self._current is not None, "they came from somewhere"
            yield self._current._replace(start=self._decoded[0].offset)
        yield from self._batches

    def hand_out_batch(self) -> None:
        """Remove the first of the `batches` and move the position behind it: it is handed out now."""
        if self._decoded:
            raw = self._current
            assert raw is not None, "they came from somewhere"
            self._decoded = []
        else:
            raw = self._batches.popleft()
            self.buffered_bytes -= raw.header.size_bytes
        self.position, self.leader_epoch = self._next_offsets.popleft(), raw.header.leader_epoch

    @property
    def buffered_rows(self) -> int:
        return sum(raw.header.count for raw in self._batches)

    def put_back(self, records: list[ConsumedRecord], next_offset: int) -> None:
        """Put records that were taken but not handed out back to the front of the buffer."""
        if not self._decoded:
            self._next_offsets.appendleft(next_offset)
        self._decoded = records + self._decoded

    def _position_or(self, default: int) -> int:
        return default if self.position is None else self.position

    def lag(self, *, read_committed: bool) -> int | None:
        """Return the number of records between position and end as of the last answer; None before the first one."""
        end = self.last_stable_offset if read_committed else self.high_watermark
        return None if end < 0 or self.position is None else max(end - self.position, 0)
