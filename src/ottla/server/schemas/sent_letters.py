"""SentLetters: where the dead letters of the latest batches went, so that a retry of a batch writes no second ones.

A batch is known by its partition and offset, and by how often the log was truncated before: after a truncation another
batch may stand at the offset. Letters whose own partition was truncated since are lost, and are not remembered.
"""

from __future__ import annotations

from ottla.log.inspection import Placed
from ottla.model import limits
from ottla.replica.partition import Partition

_Batch = tuple[Partition, int, int]


class SentLetters:
    def __init__(self) -> None:
        self._placed: dict[_Batch, tuple[Placed, ...]] = {}  # the oldest first

    def note(self, partition: Partition, offset: int, placed: tuple[Placed, ...]) -> None:
        """Remember the letters of the batch that is being written at `offset`."""
        key = (partition, partition.cuts, offset)
        self._placed.pop(key, None)
        self._placed[key] = placed
        if len(self._placed) > limits.SENT_LETTERS_MAX:
            del self._placed[next(iter(self._placed))]

    def of(self, partition: Partition, offset: int) -> tuple[Placed, ...] | None:
        """Return the letters of the batch at `offset`; None if they are not known, or are lost."""
        placed = self._placed.get((partition, partition.cuts, offset))
        if placed is None or any(letters.partition.cuts != letters.cuts for letters in placed):
            return None
        return placed
