"""Reading with read_committed: which batches belong to aborted transactions."""

from collections.abc import Iterable

from ottla.records.batch import BatchHeader
from ottla.records.control import read_marker


class AbortedFilter:
    """Recognises batches of aborted transactions, given the aborted transactions of a range of the log as (producer id,
    first offset). Batches must be passed in order.
    """

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        # Sorted by descending first offset, so that the next one to begin is popped from the end.
        self._to_begin = sorted(aborted, key=lambda each: -each[1])
        self._begun: dict[int, None] = {}

    def is_aborted(self, header: BatchHeader, data: memoryview) -> bool:
        while self._to_begin and self._to_begin[-1][1] <= header.last_offset:
            self._begun[self._to_begin.pop()[0]] = None
        if header.is_control:
            marker = read_marker(data)
            if marker is not None and not marker.commit:
                self._begun.pop(header.producer_id, None)
            return False
        return header.is_transactional and header.producer_id in self._begun
