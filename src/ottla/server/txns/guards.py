"""Guards: was a transaction ended while another node was asked about it?"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.model.ids import TopicPartition


class Guards:
    """Which producers' transactions are being asked about, and whether a marker of theirs came meanwhile."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[int, TopicPartition], list[set[TopicPartition]]] = {}

    def begin(self, producer_id: int, partitions: Sequence[TopicPartition]) -> set[TopicPartition]:
        """The partitions of which a marker has come since: none yet."""
        broken: set[TopicPartition] = set()
        for where in partitions:
            self._waiting.setdefault((producer_id, where), []).append(broken)
        return broken

    def end(self, producer_id: int, partitions: Sequence[TopicPartition], broken: set[TopicPartition]) -> None:
        for where in partitions:
            key = (producer_id, where)
            left = [each for each in self._waiting[key] if each is not broken]
            if left:
                self._waiting[key] = left
            else:
                del self._waiting[key]

    def marked(self, where: TopicPartition, producer_id: int) -> None:
        """A marker of the producer was written."""
        for broken in self._waiting.get((producer_id, where), ()):
            broken.add(where)
