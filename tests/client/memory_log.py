"""The log of one partition of the cluster in memory: batches that are appended, compacted away, trimmed and cut."""

from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.records.batch import read_header
from ottla.records.build import build_batch
from ottla.records.control import EndTxnMarker, end_txn_batch
from ottla.records.record import Record, records


class Batch(NamedTuple):
    """One batch as it is sent, with the offsets that it covers: from `base` to before `end`."""

    base: int
    end: int
    data: bytes


@dataclass
class Partition:
    """One log. `stable` is the last stable offset while a transaction is open, else None."""

    leader: int
    epoch: int = 0
    start: int = 0
    end: int = 0
    stable: int | None = None
    batches: list[Batch] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])  # each with the offset where it began

    def append(self, count: int, key: bytes | None = None, value: bytes | None = None) -> None:
        """A batch of records, each with its offset as its value unless a value is given."""
        values = [b"%d" % (self.end + each) if value is None else value for each in range(count)]
        records = [Record(-1, 1, key, each) for each in values]
        self._add(count, bytes(build_batch(records, base_offset=self.end, leader_epoch=self.epoch)))

    def open(self) -> None:
        """A transaction begins: what is written from here on is not stable before it ends."""
        self.stable = self.end if self.stable is None else self.stable

    def end_transaction(self) -> None:
        """The marker of a transaction's end."""
        self.stable = None
        marker = EndTxnMarker(commit=True, coordinator_epoch=0)
        at = {"base_offset": self.end, "leader_epoch": self.epoch}
        self._add(1, bytes(end_txn_batch(marker, producer_id=7, producer_epoch=0, timestamp=1, **at)))

    def _add(self, count: int, data: bytes) -> None:
        self.batches.append(Batch(self.end, self.end + count, data))
        self.end += count

    def move(self, leader: int) -> None:
        """Another leader, with all that the last one had."""
        self.leader, self.epoch = leader, self.epoch + 1
        self.epochs.append((self.epoch, self.end))

    def compact(self, base: int) -> None:
        """Remove the batch at this offset; offsets stay."""
        self.batches = [each for each in self.batches if each.base != base]

    def cut(self, offset: int, leader: int) -> None:
        """An unclean election: the new leader's log ends before the batch that holds this offset, if one does."""
        self.end = next((each.base for each in self.batches if each.end > offset), self.end)
        self.batches = [each for each in self.batches if each.end <= self.end]
        self.epochs = [each for each in self.epochs if each[1] < self.end] or [(self.epoch, 0)]
        self.start = min(self.start, self.end)
        self.stable = None
        self.move(leader)

    def content(self) -> dict[int, bytes | None]:
        """The values of the log by their offsets."""
        datas = [memoryview(each.data) for each in self.batches]
        found = [record for data in datas if not read_header(data).is_control for record in records(data)]
        return {record.offset: record.value for record in found if record.offset >= self.start}

    def epoch_end(self, epoch: int) -> int:
        """Where this epoch ends in the log, or the last one before it."""
        return next((began for later, began in self.epochs if later > epoch), self.end)

    def readable_to(self, *, committed: bool) -> int:
        return self.end if self.stable is None or not committed else self.stable

    def read(self, offset: int, size_max: int, *, committed: bool = False) -> bytes:
        """From the batch that holds the offset on; at least that one."""
        found = b""
        for batch in self.batches:
            if batch.base >= self.readable_to(committed=committed) or (
                found and len(found) + len(batch.data) > size_max
            ):
                break
            if batch.end > offset:
                found += batch.data
        return found
