"""The last batches of each idempotent or transactional producer in this partition (KIP-98): the sequence check,
duplicates, open transactions.

Rules (Kafka's, per batch with a producer id):
- Same epoch and same sequence range as one of the last five batches: a duplicate, answered with the original offsets.
- A lower epoch is refused (INVALID_PRODUCER_EPOCH). A higher epoch must begin with sequence 0.
- Within an epoch the first sequence must follow the last (2^31-1 is followed by 0), else OUT_OF_ORDER_SEQUENCE_NUMBER.
- An unknown producer (expired, or its records are deleted) may begin with any sequence: Kafka no longer answers
  UNKNOWN_PRODUCER_ID there.
- A non-transactional batch within an open transaction is refused (INVALID_TXN_STATE).
- While there are too many producers, an unknown one gets a retriable error, NOT_ENOUGH_REPLICAS
  (`log/producers/producer_limit.py`).
- Sequences are checked for clients only; for coordinators the epoch is checked; replicated batches are not checked.

`check` never changes anything; `update` is called after the batch is in the log. `first_unstable_offset` is the
earliest record whose transaction is undecided, or decided by a marker above the high watermark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple, NoReturn

from ottla.log.producers.marks import Marks
from ottla.log.producers.producer import ProducerBefore, ProducerEntry, ProducersMark, WrittenBatch
from ottla.log.producers.producer_limit import ProducerLimit
from ottla.log.producers.refused_producers import RefusedProducers
from ottla.log.producers.snapshot import SnapshotEntry
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import ProducerEpoch, ProducerId
from ottla.model.limits import (
    BATCHES_PER_PRODUCER,
    INT16_MAX,
    INT32_MAX,
    PRODUCERS_FORGOTTEN_AT_ONCE,
    PRODUCERS_PER_PARTITION_MAX,
    RECALL_MS,
    REMEMBERED_MINUTES,
)
from ottla.records.batch import TRANSACTIONAL_FLAG, BatchHeader
from ottla.records.control import EndTxnMarker

_new = tuple.__new__


class Origin(IntEnum):
    """The source of an append; the checks depend on it."""

    CLIENT = 0
    COORDINATOR = 1
    REPLICATION = 2


class CompletedTxn(NamedTuple):
    producer_id: ProducerId
    first_offset: int
    last_offset: int  # the offset of the marker
    aborted: bool


class Producers:
    __slots__ = ("_limit", "_marks", "_name", "_ongoing", "_refused", "_states", "_unreplicated")

    def __init__(self, name: str) -> None:
        self._name = name  # the partition, for messages
        self._limit = ProducerLimit()
        self._marks = Marks()
        self._states: dict[ProducerId, ProducerEntry] = {}
        self._ongoing: dict[int, ProducerId] = {}  # first offset -> producer id, in order of the offsets
        self._unreplicated: dict[int, int] = {}  # first offset -> offset of the marker
        self._refused = RefusedProducers()

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[ProducerEntry]:
        return iter(self._states.values())

    def get(self, producer_id: ProducerId) -> ProducerEntry | None:
        return self._states.get(producer_id)

    def has_transaction(self, producer_id: ProducerId, epoch: ProducerEpoch) -> bool:
        """Whether the producer's current transaction has records here."""
        state = self._states.get(producer_id)
        return state is not None and state.txn_first_offset >= 0 and state.epoch == epoch

    # --- checking

    def check(self, header: BatchHeader, offset: int, origin: Origin) -> WrittenBatch | None:
        """Refuse a data batch that does not follow the last one; return the original if it is a duplicate."""
        state = self._states.get(header.producer_id)
        if state is None or origin == Origin.REPLICATION:
            if origin == Origin.CLIENT:
                if self._refused:
                    self._check_overtaking(header, offset)
                if len(self._states) >= PRODUCERS_PER_PARTITION_MAX:
                    self._make_room(header)
            return None
        epoch = header.producer_epoch
        if origin == Origin.CLIENT:
            batches = state.batches
            if epoch == state.epoch and batches:
                sequence = header.base_sequence
                expected = batches[-1].last_sequence
                if sequence != expected + 1 and not (sequence == 0 and expected == INT32_MAX):
                    duplicate = self._duplicate(state, header)
                    if duplicate is None:
                        self._refuse_sequence(header, offset, expected)
                    return duplicate
            else:
                self._check_restart(state, header, offset)
        elif epoch < state.epoch:
            self._refuse_epoch(header.producer_id, epoch, state.epoch, offset, "<", -1)
        if state.txn_first_offset >= 0 and not header.attributes & TRANSACTIONAL_FLAG:
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE,
                f"Expected transactional write from producer {header.producer_id} at offset {offset} "
                f"in partition {self._name}",
            )
        return None

    def note_refusal(self, header: BatchHeader) -> None:
        """Note that a new producer's batch was refused; until it is retried no later one may be the first."""
        if header.producer_id not in self._states:
            self._refused.note(header.producer_id, header.producer_epoch, header.base_sequence)

    def _check_overtaking(self, header: BatchHeader, offset: int) -> None:
        lowest = self._refused.lowest(header.producer_id, header.producer_epoch)
        if lowest is not None and header.base_sequence > lowest:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {header.producer_id} at offset {offset} in partition "
                f"{self._name}: {header.base_sequence} (incoming seq. number), {lowest} (earliest seen sequence)",
            )

    def check_first(self, header: BatchHeader, offset: int) -> None:
        """Refuse a first batch with a sequence above 0 in a transaction whose partitions the broker adds (KIP-890)."""
        state = self._states.get(header.producer_id)
        if header.base_sequence and (state is None or not state.batches):
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Invalid sequence number for producer {header.producer_id} at offset {offset} in partition "
                f"{self._name}: {header.base_sequence} (incoming seq. number). Expected sequence 0 for transactions v2 "
                "idempotent producer with no existing state.",
            )

    def check_marker(
        self, header: BatchHeader, marker: EndTxnMarker, offset: int, origin: Origin, transaction_version: int = -1
    ) -> None:
        """Refuse a marker of a fenced coordinator or of a superseded producer epoch.

        From transaction version 2 on (KIP-890) every transaction ends with a higher epoch than its records had.
        """
        state = self._states.get(header.producer_id)
        if state is None or origin == Origin.REPLICATION:
            return
        epoch = header.producer_epoch
        if transaction_version >= 2:
            repeated = epoch == state.epoch and (state.txn_first_offset < 0 or epoch == INT16_MAX)
            if epoch <= state.epoch and not repeated:
                self._refuse_epoch(header.producer_id, epoch, state.epoch, offset, "<=", transaction_version)
        elif epoch < state.epoch:
            self._refuse_epoch(header.producer_id, epoch, state.epoch, offset, "<", transaction_version)
        if state.coordinator_epoch > marker.coordinator_epoch:
            raise ApiError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Invalid coordinator epoch for producerId {header.producer_id} at offset {offset} in partition "
                f"{self._name}: {marker.coordinator_epoch} (zombie), {state.coordinator_epoch} (current)",
            )

    def _duplicate(self, state: ProducerEntry, header: BatchHeader) -> WrittenBatch | None:
        first, last = header.base_sequence, header.last_sequence
        for batch in state.batches:
            if batch.first_sequence == first and batch.last_sequence == last:
                return batch
        return None

    def _check_restart(self, state: ProducerEntry, header: BatchHeader, offset: int) -> None:
        """Check a batch of a new epoch, or the first one after a transaction's end or an empty snapshot."""
        epoch = header.producer_epoch
        if epoch < state.epoch:
            self._refuse_epoch(header.producer_id, epoch, state.epoch, offset, "<", -1)
        if header.base_sequence == 0 or state.epoch == -1:
            return
        if epoch == state.epoch:
            self._refuse_sequence(header, offset, -1)
        raise ApiError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Invalid sequence number for new epoch of producer {header.producer_id} at offset {offset} in partition "
            f"{self._name}: {epoch} (request epoch), {header.base_sequence} (seq. number), {state.epoch} (current "
            "producer epoch)",
        )

    def _refuse_sequence(self, header: BatchHeader, offset: int, last_sequence: int) -> NoReturn:
        raise ApiError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Out of order sequence number for producer {header.producer_id} at offset {offset} in partition "
            f"{self._name}: {header.base_sequence} (incoming seq. number), {last_sequence} (current end sequence "
            "number)",
        )

    def _refuse_epoch(
        self, producer_id: ProducerId, epoch: ProducerEpoch, seen: int, offset: int, relation: str, version: int
    ) -> NoReturn:
        raise ApiError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"Epoch of producer {producer_id} at offset {offset} in {self._name} is {epoch}, which is {relation} the "
            f"last seen epoch {seen} (TV{version})",
        )

    # --- changing

    def update(self, header: BatchHeader, base_offset: int, max_timestamp: int) -> None:
        """Account for a data batch that is in the log at `base_offset`."""
        producer_id = header.producer_id
        state = self._states.get(producer_id)
        if state is None:
            state = self._begin(header)
            self._refused.forget(producer_id, header.producer_epoch)
        elif state.kept_at is not self._marks.newest:
            self._marks.keep(state)
        batches = state.batches
        if state.epoch != header.producer_epoch:
            state.epoch = header.producer_epoch
            batches.clear()
        first, delta = header.base_sequence, header.last_offset_delta
        last = first if first < 0 else (first + delta) & INT32_MAX
        batches.append(_new(WrittenBatch, (first, last, base_offset, base_offset + delta, max_timestamp)))
        if len(batches) > BATCHES_PER_PRODUCER:
            del batches[0]
        state.last_timestamp = max_timestamp
        state.written_at = base_offset
        if header.attributes & TRANSACTIONAL_FLAG and state.txn_first_offset < 0:
            state.txn_first_offset = base_offset
            self._ongoing[base_offset] = producer_id

    def end_transaction(
        self, header: BatchHeader, marker: EndTxnMarker, offset: int, timestamp: int
    ) -> CompletedTxn | None:
        """Account for a marker that is in the log at `offset`; return None if its transaction had no records."""
        state = self._states.get(header.producer_id)
        if state is None:
            state = self._begin(header)
            self._refused.clear()
        elif state.kept_at is not self._marks.newest:
            self._marks.keep(state)
        if state.epoch != header.producer_epoch:
            state.epoch = header.producer_epoch
            state.batches.clear()
        state.coordinator_epoch = marker.coordinator_epoch
        state.last_timestamp = timestamp
        state.written_at = offset
        first = state.txn_first_offset
        state.txn_first_offset = -1
        if first < 0:
            return None
        del self._ongoing[first]
        self._unreplicated[first] = offset
        return CompletedTxn(header.producer_id, first, offset, not marker.commit)

    def _begin(self, header: BatchHeader) -> ProducerEntry:
        if len(self._states) >= PRODUCERS_PER_PARTITION_MAX + PRODUCERS_FORGOTTEN_AT_ONCE:
            self._forget(self._limit.beyond(self))
        state = self._states[header.producer_id] = ProducerEntry(header.producer_id, header.producer_epoch)
        self._marks.keep_unknown(state)
        return state

    def completion(self, header: BatchHeader, marker: EndTxnMarker, offset: int) -> CompletedTxn | None:
        """Return what `end_transaction` will return for this marker."""
        state = self._states.get(header.producer_id)
        if state is None or state.txn_first_offset < 0:
            return None
        return CompletedTxn(header.producer_id, state.txn_first_offset, offset, not marker.commit)

    def _make_room(self, header: BatchHeader) -> None:
        """Forget silent producers to make room for a client's unknown producer, or refuse the batch."""
        silent = self._limit.silent(self)
        self._forget(silent)
        if not silent:
            self.note_refusal(header)
            raise ApiError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{len(self._states)} producers wrote to partition {self._name} within the last "
                f"{REMEMBERED_MINUTES} minutes: a new one has to wait.",
            )

    def _forget(self, producer_ids: Iterable[ProducerId]) -> None:
        for producer_id in producer_ids:
            del self._states[producer_id]

    def minute(self, next_offset: int) -> None:
        """Advance the clock; called about once a minute, with the end offset of the log."""
        self._limit.minute(next_offset)
        self._refused.minute()

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that wrote nothing for `expiration_ms`; return how many."""
        gone = [s.producer_id for s in self._states.values() if _expired(s, now_ms, expiration_ms)]
        self._forget(gone)
        return len(gone)

    # --- transactions

    @property
    def has_unreplicated(self) -> bool:
        """Whether `replicated` has anything to do."""
        return bool(self._unreplicated)

    def first_unstable_offset(self) -> int | None:
        if not self._ongoing and not self._unreplicated:
            return None
        # Both are filled in the order of the markers and first offsets, but a long transaction may complete late.
        ongoing = next(iter(self._ongoing), None)
        unreplicated = min(self._unreplicated, default=None)
        if ongoing is None or unreplicated is None:
            return ongoing if unreplicated is None else unreplicated
        return min(ongoing, unreplicated)

    def last_stable_offset(self, completed: CompletedTxn) -> int:
        """Return the last stable offset once `completed` counts.

        It is the start of the next open transaction, or the offset after the marker.
        """
        others = (first for first in self._ongoing if first != completed.first_offset)
        return next(others, completed.last_offset + 1)

    def replicated(self, high_watermark: int) -> None:
        """Drop transactions whose markers lie below the high watermark."""
        if self._unreplicated:
            done = [first for first, marker in self._unreplicated.items() if marker < high_watermark]
            for first in done:
                del self._unreplicated[first]

    # --- marks

    def set_mark(self, offset: int, due: int) -> None:
        """Set a mark at `offset`, to which `go_back` can return; all batches below it have been accounted for."""
        self._marks.set(offset, due)

    def forget_marks_below(self, offset: int) -> None:
        self._marks.forget_below(offset)

    def has_mark(self, offset: int, oldest: int) -> bool:
        """Whether `go_back` would find a mark."""
        return self._marks.find(offset, oldest) is not None

    def go_back(self, offset: int, oldest: int) -> ProducersMark | None:
        """Undo the effects of batches since the newest mark at or below `offset`; return that mark.

        Returns None, and changes nothing, if there is none at or above `oldest`.
        """
        mark = self._marks.find(offset, oldest)
        if mark is None:
            return None
        states, ongoing = self._states, self._ongoing
        for producer_id, before in self._marks.take_back(mark):
            state = states.pop(producer_id, None)
            if state is not None and state.txn_first_offset >= 0:
                del ongoing[state.txn_first_offset]
            if before is not None:
                states[producer_id] = restored = _restored(producer_id, before)
                if restored.txn_first_offset >= 0:
                    ongoing[restored.txn_first_offset] = producer_id
        self._ongoing = dict(sorted(ongoing.items()))
        self._unreplicated = {first: end for first, end in self._unreplicated.items() if end < mark.offset}
        self._refused.clear()
        self._limit.begin_anew()
        return mark

    # --- snapshots

    def snapshot(self) -> list[SnapshotEntry]:
        return [state.snapshot() for state in self._states.values()]

    def restore(self, entries: Iterable[SnapshotEntry], now_ms: int, expiration_ms: int) -> None:
        """Replace all state by that of a snapshot."""
        self.clear()
        for entry in entries:
            state = ProducerEntry(entry.producer_id, entry.epoch)
            state.coordinator_epoch = entry.coordinator_epoch
            state.last_timestamp = entry.timestamp
            state.written_at = entry.last_offset
            state.txn_first_offset = entry.txn_first_offset if entry.txn_first_offset >= 0 else -1
            if entry.last_offset >= 0:
                first_sequence = entry.last_sequence - entry.offset_delta
                if entry.last_sequence >= 0 and first_sequence < 0:
                    first_sequence += INT32_MAX + 1
                first_offset = entry.last_offset - entry.offset_delta
                last = WrittenBatch(
                    first_sequence, entry.last_sequence, first_offset, entry.last_offset, entry.timestamp
                )
                state.batches.append(last)
            if not _expired(state, now_ms, expiration_ms):
                self._states[entry.producer_id] = state
        open_txns = sorted((s.txn_first_offset, s.producer_id) for s in self if s.txn_first_offset >= 0)
        self._ongoing.update(open_txns)

    @property
    def incomplete(self) -> bool:
        """Whether a producer that wrote recently had earlier batches that are not known here."""
        last_ms = max((state.last_timestamp for state in self), default=0)
        return any(
            0 < len(state.batches) < BATCHES_PER_PRODUCER
            and state.batches[0].first_sequence > 0
            and state.last_timestamp >= last_ms - RECALL_MS
            for state in self
        )

    def recall(self, header: BatchHeader) -> None:
        """Add an earlier data batch from the log, if the oldest known batch of its producer follows it."""
        state = self._states.get(header.producer_id)
        if state is None or state.epoch != header.producer_epoch or not 0 < len(state.batches) < BATCHES_PER_PRODUCER:
            return
        first, last, oldest = header.base_sequence, header.last_sequence, state.batches[0]
        if first < 0 or header.last_offset >= oldest.first_offset or (last + 1) & INT32_MAX != oldest.first_sequence:
            return
        state.batches.insert(0, WrittenBatch(first, last, header.base_offset, header.last_offset, header.max_timestamp))

    def clear(self) -> None:
        self._limit.begin_anew()
        self._marks.clear()
        self._states.clear()
        self._ongoing.clear()
        self._unreplicated.clear()
        self._refused.clear()


def _restored(producer_id: ProducerId, before: ProducerBefore) -> ProducerEntry:
    state = ProducerEntry(producer_id, before.epoch)
    state.coordinator_epoch, state.last_timestamp = before.coordinator_epoch, before.last_timestamp
    state.txn_first_offset, state.written_at = before.txn_first_offset, before.written_at
    state.batches[:] = before.batches
    return state


def _expired(state: ProducerEntry, now_ms: int, expiration_ms: int) -> bool:
    return state.txn_first_offset < 0 and now_ms - state.last_timestamp >= expiration_ms
