"""The inspector of a batch: what the log asks of whoever judges a client's records by rules that the log does not know.

A topic with a contract (`LogConfig.contract`) has the batches of its clients inspected. Whoever appends such a batch
hands an inspector to the look (`log/look.py`), which has it go through the records in steps. The append
(`log/append.py`) then lets the findings decide what is written, and its result carries the records that the inspector
has put elsewhere: the answer to the producer has to wait for those, too.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable
from typing import NamedTuple, Protocol

from ottla.records.batch import BatchHeader


class Destination(Hashable, Protocol):
    """Another partition, here or on another node, that records of a batch were put into."""

    @property
    def cuts(self) -> int:
        """How often its end was cut off."""

    @property
    def high_watermark(self) -> int: ...

    @property
    def waits_for_disk(self) -> bool:
        """Whether its records count only when they are written or synced."""


class Placed(NamedTuple):
    """Records in another partition: stored when its high watermark has reached `end`, unless its end was cut off since
    there were so many `cuts`."""

    partition: Destination
    cuts: int
    end: int


class Decision(NamedTuple):
    """What is written in the batch's place, with the same range of offsets (None: the batch itself), and the records
    that were put elsewhere."""

    batch: bytearray | None
    placed: tuple[Placed, ...] = ()


class Findings(Protocol):
    """What an inspector has found in a batch."""

    def decide(self, offset: int) -> Decision:
        """Called on the loop when the batch is known to be no duplicate, with the offset that it will get.

        Refuses the batch with an ApiError. If that is retriable, the log remembers that the batch will come again.
        """


class Inspector(Protocol):
    """Inspects one batch."""

    def begin(self) -> None:
        """On the loop, before the first step: notes what `look` has to know of this moment."""

    def look(self, data: bytes, header: BatchHeader) -> Generator[None, None, Findings | None]:
        """Goes through the unpacked records in steps, perhaps in a worker; `header` has the codec that they are to be
        packed with. None: there is nothing to say against the batch."""
