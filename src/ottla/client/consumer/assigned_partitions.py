"""The partitions a consumer reads: position, pause, and what was fetched but not handed out yet. Pure bookkeeping.

Rules:
- `position` is the next offset to hand out, which is what is committed; the cursor runs ahead of it. It moves when what
  lies before it was handed out, and to where a new position was found; nothing else moves it.
- A new position (seek, reset) gets a new cursor. What arrives for an old cursor is dropped, so no record from before a
  seek is handed out after it.
- Records leave by the batch: the first to be asked decodes a whole batch. One that cannot be decoded stays where it is.
- `failure` is why nothing comes of this place, until something does or it is moved.
"""

from collections import deque
from collections.abc import Iterator

from ottla.client.consumer.fetched import ConsumedRecord, FetchCursor, Fetched, RawBatch, decode_batch
from ottla.client.consumer.offsets import Time
from ottla.model.ids import NO_ID, TopicPartition

NO_EPOCH = -1


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
        self.position: int | None = None  # None: to be found, by the cursor's time or where the group left off
        self.leader_epoch = NO_EPOCH  # of the last record handed out, or as committed
        self.failure: Exception | None = None
        self.is_told = False  # whether the caller has heard of the failure
        # Whether what comes next could not be read a moment ago: meanwhile it does not count as records.
        self.is_set_aside = False
        self.tries = 0  # to find out where the group left off, or to read what comes next
        self.committed: int | None = None  # what this consumer knows to be committed
        # What the caller wanted to be committed since the last move, whatever became of it.
        self.asked: int | None = None
        self.paused = False
        self.cursor: FetchCursor | None = None
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.buffered_bytes = 0
        self._batches: deque[RawBatch] = deque()
        self._next_offsets: deque[int] = deque()  # per batch: where the position is when all of it was handed out
        self._current: RawBatch | None = None  # the batch that was decoded last
        self._decoded: list[ConsumedRecord] = []  # what is left of a batch that was too large for the last caller

    def move(self, position: int | Time | None, leader_epoch: int = NO_EPOCH, topic_id: bytes = NO_ID) -> None:
        """Go on from there. A time has to be found first; None: find out where to. If the id of the topic is given, the
        position means nothing in another one of its name."""
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
        """Keep what arrived, unless the place has moved since it was asked for."""
        if fetched.cursor is not self.cursor:
            return
        if not self.has_records:  # or else it was asked for before what is there turned out to be unreadable
            self.failure = None
        if self.position is None:
            self.position = fetched.next_offset  # which was looked for
            return
        self.high_watermark, self.last_stable_offset = fetched.high_watermark, fetched.last_stable_offset
        if not fetched.batches:
            if not self.has_records:
                self.position = fetched.next_offset  # only control batches or aborted records up to there
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
        """Of the topic in which the position is one, as far as it is known."""
        return NO_ID if self.cursor is None else self.cursor.topic_id

    @property
    def has_records(self) -> bool:
        return bool(self._batches or self._decoded)

    @property
    def is_open(self) -> bool:
        """Whether its records may be handed out."""
        return not (self.paused or self.is_set_aside)

    def take(self, records_max: int) -> tuple[list[ConsumedRecord], int]:
        """Records to hand out, of one batch, and where the position is after the last of them. The position itself does
        not move: whoever hands them out moves it."""
        while True:
            found = self._decoded
            if not found:
                if not self._batches:
                    return [], self._position_or(0)
                raw = self._current = self._batches[0]
                found = list(decode_batch(raw))  # one that cannot be read stays where it is
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
        """Records that were taken are the caller's now."""
        self.position = next_offset
        if records:
            self.leader_epoch = records[-1].leader_epoch

    def batches(self) -> Iterator[RawBatch]:
        """What is there, undecoded, beginning with what is left of a batch. Moves nothing."""
        if self._decoded:
            assert self._current is not None, "they came from somewhere"
            yield self._current._replace(start=self._decoded[0].offset)
        yield from self._batches

    def hand_out_batch(self) -> None:
        """The first of the `batches` is the caller's now."""
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
        """Records that were taken and not handed out after all: they come first again."""
        if not self._decoded:
            self._next_offsets.appendleft(next_offset)
        self._decoded = records + self._decoded

    def _position_or(self, default: int) -> int:
        return default if self.position is None else self.position

    def lag(self, *, read_committed: bool) -> int | None:
        """Records behind the end as of the last answer; None before the first one."""
        end = self.last_stable_offset if read_committed else self.high_watermark
        return None if end < 0 or self.position is None else max(end - self.position, 0)
