"""Fetched batches as `pyarrow.RecordBatch`es: gathering enough of them and converting them to columns.

Rules:
- Columns pay off by the ten thousand rows: batches are gathered until there are `rows_min` rows, or enough bytes, or
  until nothing more has come for `linger_ms`.
- Batches are picked, converted, and only then is a position moved behind them. A batch that cannot be converted does
  not affect the batches of other partitions.
- pyarrow, numpy and numba are imported when the first reader asks for Arrow, and only then.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ottla.client.consumer.assigned_partitions import AssignedPartition
from ottla.client.consumer.fetched import RawBatch
from ottla.model.ids import TopicPartition
from ottla.model.limits import ARROW_GATHERED_BYTES_MAX

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_MIN = 20_000
LINGER_MS = 100

Convert = Callable[[Sequence[RawBatch]], "pa.RecordBatch"]


def converter() -> Convert:
    """Return the function that converts fetched batches to one `RecordBatch`. Raises ImportError, with a hint, without
    pyarrow.
    """
    try:
        from ottla.records.arrow import WantedBatch, record_batch
    except ImportError as error:
        from ottla.observe.installing import install_command

        hint = install_command("arrow")
        raise ImportError(f"reading as Arrow needs pyarrow and numpy ({error}): {hint}") from error

    def convert(batches: Sequence[RawBatch]) -> "pa.RecordBatch":
        return record_batch(
            [
                WantedBatch(*raw.partition, raw.header, raw.data, raw.start, -1 if raw.end is None else raw.end)
                for raw in batches
            ]
        )

    return convert


class Gathering:
    """Fetched batches for the next `RecordBatch`."""

    def __init__(self, rows_min: int) -> None:
        self._rows_min = rows_min
        self.batches: list[RawBatch] = []
        self._rows = 0
        self._size_bytes = 0

    def add(self, raw: RawBatch) -> bool:
        """Add a batch and return whether there are enough rows or bytes now."""
        self.batches.append(raw)
        self._rows += raw.header.count
        self._size_bytes += raw.header.size_bytes
        return self._rows >= self._rows_min or self._size_bytes >= ARROW_GATHERED_BYTES_MAX

    def take(self) -> list[RawBatch]:
        batches, self.batches = self.batches, []
        self._rows = self._size_bytes = 0
        return batches

    def fill(self, batches: Iterable[RawBatch]) -> Iterator[list[RawBatch]]:
        """Add all batches; each time there are enough of them, yield them."""
        for raw in batches:
            if self.add(raw):
                yield self.take()


def has_gathered(places: Mapping[TopicPartition, AssignedPartition], rows_min: int, enough_bytes: int) -> bool:
    """Return whether the assigned partitions hold enough rows, or so many bytes each that no more
    are fetched for now.
    """
    open_places = [place for place in places.values() if place.is_open]
    rows = sum(place.buffered_rows for place in open_places)
    return rows >= rows_min or all(place.buffered_bytes >= enough_bytes for place in open_places)


def pick_batches(places: dict[TopicPartition, AssignedPartition], rows_min: int) -> list[RawBatch]:
    """Return buffered batches, up to about `rows_min` rows, and put the partition of the last one at the end of the
    order. No position moves.
    """
    gathering = Gathering(rows_min)
    for place in [each for each in places.values() if each.is_open]:
        for raw in place.batches():
            if gathering.add(raw):
                places[place.partition] = places.pop(place.partition)
                return gathering.take()
    return gathering.take()


def converted(
    convert: Convert, batches: list[RawBatch]
) -> tuple["pa.RecordBatch | None", list[RawBatch], Mapping[TopicPartition, Exception]]:
    """Convert what can be converted: return the columns, None if there are none; the batches that they are of; and the
    errors of partitions.
    """
    if not batches:
        return None, batches, {}
    try:
        return convert(batches), batches, {}
    except Exception:
        good, failed = convertible(convert, batches)
        return convert(good) if good else None, good, failed


def convertible(
    convert: Convert, batches: Sequence[RawBatch]
) -> tuple[list[RawBatch], dict[TopicPartition, Exception]]:
    """Split batches that cannot be converted together: return those that can, in each partition up to the first that
    cannot; and the error of that one, by partition.
    """
    good: list[RawBatch] = []
    failed: dict[TopicPartition, Exception] = {}
    for raw in batches:
        if raw.partition not in failed:
            try:
                convert([raw])
            except Exception as error:
                failed[raw.partition] = error
            else:
                good.append(raw)
    return good if failed else good[:1], failed
