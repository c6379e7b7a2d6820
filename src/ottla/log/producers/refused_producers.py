"""Unknown producers whose batches were refused, and the sequences that they were told to retry.

Until the refused batch is retried no later batch may be the producer's first, or the order would be lost. A producer
does not retry for ever, and a flood of producers must not displace other notes for good: the notes of some minutes are
kept, in two generations, each of them bounded.
"""

from ottla.model import limits
from ottla.model.ids import ProducerEpoch, ProducerId


class RefusedProducers:
    __slots__ = ("_minutes", "_now", "_then")

    def __init__(self) -> None:
        self._now: dict[tuple[int, int], int] = {}  # (producer id, epoch) -> the lowest sequence
        self._then: dict[tuple[int, int], int] = {}
        self._minutes = 0

    def __bool__(self) -> bool:
        return bool(self._now or self._then)

    def note(self, producer_id: ProducerId, epoch: ProducerEpoch, sequence: int) -> None:
        producer = (producer_id, epoch)
        if len(self._now) < limits.PRODUCERS_PER_PARTITION_MAX or producer in self._now:
            self._now[producer] = min(sequence, self._now.get(producer, sequence), self._then.get(producer, sequence))

    def lowest(self, producer_id: ProducerId, epoch: ProducerEpoch) -> int | None:
        """Return the lowest sequence that this producer was told to retry, or None."""
        producer = (producer_id, epoch)
        found = self._now.get(producer)
        return self._then.get(producer) if found is None else found

    def forget(self, producer_id: ProducerId, epoch: ProducerEpoch) -> None:
        """Forget a producer that is known from now on."""
        if self._now or self._then:
            self._now.pop((producer_id, epoch), None)
            self._then.pop((producer_id, epoch), None)

    def minute(self) -> None:
        """Note that a minute has passed."""
        self._minutes += 1
        if self._minutes >= limits.REMEMBERED_MINUTES:
            self._minutes = 0
            self._now, self._then = {}, self._now

    def clear(self) -> None:
        self._now.clear()
        self._then.clear()
