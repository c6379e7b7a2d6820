"""Transactions in compaction: follows them through a log, from the oldest record on.

Decisions (KIP-98, KIP-534):

- data of an aborted transaction is removed at once;
- an abort or commit marker stays as long as data of its transaction was found before it; when none is left, the marker
  may be removed, but only after its delete horizon, so that a consumer in the middle of the transaction still learns
  how it ended;
- the transaction index of the new segment gets an entry for every abort marker that stays because of its data.

Rules: batches are passed in offset order, each once. One instance is used for all segments of a round.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.log.files.txn_index import AbortedTxn
from ottla.model.ids import ProducerId
from ottla.records.batch import BatchHeader, Buffer
from ottla.records.control import ControlType, control_type
from ottla.records.record import records


class _Aborted:
    __slots__ = ("data_seen", "txn")

    def __init__(self, txn: AbortedTxn) -> None:
        self.txn = txn
        self.data_seen = False


class CleanedTxns:
    __slots__ = ("_aborted", "_committed", "_next", "_open", "kept")

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self._aborted = sorted(set(aborted), key=lambda txn: (txn.first_offset, txn.last_offset))
        self._next = 0
        self._open: dict[ProducerId, _Aborted] = {}  # by producer id
        self._committed: set[int] = set()  # producers whose current transaction commits and has data
        self.kept: list[AbortedTxn] = []  # entries for the transaction index of the segment being written

    def take_kept(self) -> list[AbortedTxn]:
        """Return the index entries gathered since the last call."""
        kept, self.kept = self.kept, []
        return kept

    def data(self, header: BatchHeader) -> bool:
        """Process a data batch; True if it belongs to an aborted transaction."""
        self._begin(header.last_offset)
        if not header.is_transactional:
            return False
        aborted = self._open.get(header.producer_id)
        if aborted is None:
            self._committed.add(header.producer_id)
            return False
        aborted.data_seen = True
        return True

    def control(self, view: Buffer, pos: int, header: BatchHeader) -> bool:
        """Process a control batch; True if no data before it needs it any more."""
        self._begin(header.last_offset)
        record = next(iter(records(view, pos)), None)
        if record is None:
            return True  # an earlier round emptied the batch
        kind = control_type(record.key)
        if kind is ControlType.ABORT:
            aborted = self._open.pop(header.producer_id, None)
            if aborted is None or not aborted.data_seen:
                return True
            self.kept.append(aborted.txn)
            return False
        if kind is ControlType.COMMIT:
            if header.producer_id not in self._committed:
                return True
            self._committed.remove(header.producer_id)
        return False

    def _begin(self, offset: int) -> None:
        """Open the aborted transactions that start at or before `offset`."""
        waiting = self._aborted
        while self._next < len(waiting) and waiting[self._next].first_offset <= offset:
            txn = waiting[self._next]
            self._open.setdefault(txn.producer_id, _Aborted(txn))
            self._next += 1
