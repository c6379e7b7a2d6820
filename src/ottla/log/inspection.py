"""The inspector of a batch: the interface to code that checks a client's records by rules outside of the log.

A topic with a contract (`LogConfig.contract`) has the batches of its clients inspected. The caller of an append hands
an inspector to the look (`log/look.py`), which lets it check the records in steps. The append (`log/append.py`) then
lets the findings decide what is written, and its result lists the records that the inspector has put into other
partitions: the answer to the producer has to wait for those, too.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable
from typing import NamedTuple, Protocol

from ottla.records.batch import BatchHeader


class Destination(Hashable, Protocol):
    """Another partition, here or on another node, that gets records of a batch."""

    @property
    def cuts(self) -> int:
        """How often the partition was truncated."""

    @property
    def high_watermark(self) -> int: ...

    @property
    def counts_later(self) -> bool:
        """Whether records count only some time after they were put there: when they are written, synced or sent."""


class Placed(NamedTuple):
    """Records in another partition: they are stored when its high watermark has reached `end`, unless the partition was
    truncated after `cuts` was read.
    """

    partition: Destination
    cuts: int
    end: int


class Decision(NamedTuple):
    """The batch to write instead, with the same range of offsets (None: no change), and records put elsewhere."""

    batch: bytearray | None
    placed: tuple[Placed, ...] = ()


class Findings(Protocol):
    """The result of an inspection."""

    def decide(self, offset: int) -> Decision:
        """Decide on the batch; called on the loop when it is no duplicate, with the offset that it will get.

        An ApiError refuses the batch. If the error is retriable, the log remembers that the batch will be sent again.
        """

    def decide_again(self, offset: int) -> tuple[Placed, ...]:
        """Return the records of a duplicate that must be stored elsewhere before it is acknowledged; called on the loop
        with the offset at which the batch was written.

        The leader that wrote the batch may have died before these records were stored. An ApiError refuses the batch.
        """


class Inspector(Protocol):
    """Inspects one batch."""

    def begin(self) -> None:
        """Note the state that `look` needs; called on the loop, before the first step."""

    def look(self, data: bytes, header: BatchHeader) -> Generator[None, None, Findings | None]:
        """Check the decompressed records in steps, perhaps in a worker; `header` has the codec to compress them with.

        None if there are no objections to the batch.
        """
