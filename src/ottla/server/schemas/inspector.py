"""ContractInspector: inspects one batch of a topic with a contract (`log/inspection.py` defines the interface).

The records are checked in steps, usually by a worker (`server/storage/batch_looks.py`), which also makes the dead
letters and the batch to be written instead. The decision is made on the loop, at the moment of the append.

Rules:
- A topic that names itself as its dead-letter topic rejects faulty batches.
- The answer to the producer waits for the letters as for the records. This holds for the retry of a batch that was
  written, too: the leader that wrote it may have died before its letters were stored. If this node does not remember
  the letters (`sent_letters.py`), or they are lost, they are written again, so a record may have two letters.
- A letter is not part of its record's transaction: it stays even if that is aborted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Hashable
from hashlib import sha256
from typing import NamedTuple

from ottla.log.config import ContractTerms
from ottla.log.inspection import Decision, Findings, Placed
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.records.batch import BatchHeader
from ottla.records.record import decode, rows
from ottla.replica.partition import Partition
from ottla.server.dead_letters.dead_letters import DeadLetters
from ottla.server.dead_letters.letters import Letters
from ottla.server.schemas.faulty_records import rebuilt, refusal, too_many_letters
from ottla.server.schemas.record_check import RecordCheck
from ottla.server.schemas.schema_cache import SchemaCache
from ottla.server.schemas.sent_letters import SentLetters

_REASON = b"schema"


class Inspections:
    """The dependencies that all inspectors of a node share."""

    def __init__(self, schemas: SchemaCache, dead_letters: DeadLetters, now_ms: Callable[[], int]) -> None:
        self.schemas = schemas
        self.dead_letters = dead_letters
        self.now_ms = now_ms
        self.sent_letters = SentLetters()
        self.refusals: Counter[str] = Counter()  # batches that were refused, by topic

    def inspector(self, partition: Partition, terms: ContractTerms) -> ContractInspector:
        return ContractInspector(self, partition, terms)


class _Begun(NamedTuple):
    """The values that were current when a look began."""

    reading: int  # the number of the cache's reading of the schemas
    now_ms: int
    offset: int  # the base offset of the batch unless others are written first
    letter_batch_bytes: int


class ContractInspector:
    """The inspector of one batch of a partition. All methods but `begin` may run in a worker."""

    def __init__(self, shared: Inspections, partition: Partition, terms: ContractTerms) -> None:
        self._shared = shared
        self._partition = partition
        self._check = RecordCheck(shared.schemas, partition.topic, terms)
        self._at_once = limits.CHECKED_AT_ONCE_RECORDS if terms.full else limits.RECORDS_DECODED_AT_ONCE_MAX
        self._letters_topic = terms.dead_letters or f"{partition.topic}.dlq"
        self._action = terms.action
        if self._action == "dlq" and self._letters_topic == partition.topic:
            self._action = "reject"  # while a batch is being appended, no other batch can be appended to the same log
        self._begun: _Begun | None = None

    def begin(self) -> None:
        shared, partition = self._shared, self._partition
        if not shared.schemas.catch_up():
            self._begun = None
            return
        batch_bytes = 0
        if self._action == "dlq":
            batch_bytes = shared.dead_letters.batch_bytes(self._letters_topic, partition.index)
        self._begun = _Begun(shared.schemas.reading, shared.now_ms(), partition.log.next_offset, batch_bytes)

    def look(self, data: bytes, header: BatchHeader) -> Generator[None, None, Findings | None]:
        begun = self._begun
        topic, index = self._partition.topic, self._partition.index
        if begun is None:
            return _Unread(topic, has_letters=self._action == "dlq")
        letters = Letters(topic, index, begun.now_ms, begun.letter_batch_bytes) if self._action == "dlq" else None
        letters_bytes_max = max(limits.DEAD_LETTERS_PER_BATCH_BYTES, 2 * header.size_bytes)
        faults: dict[int, str] = {}
        at_once = self._at_once
        at = 0
        for portion in decode(data, header):
            held = list(rows(portion))
            for begin in range(0, len(held), at_once):
                found = self._check.faults(held[begin : begin + at_once])
                for place in sorted(found):
                    fault = faults[at + begin + place] = found[place]
                    if letters is not None and letters.size_bytes <= letters_bytes_max:
                        offset = begun.offset + at + begin + place
                        letters.add(held[begin + place], offset, _REASON, (("error", fault.encode()),))
                        if not letters.count % limits.CHECKED_AT_ONCE_RECORDS:
                            yield
                yield
            at += len(held)
        if not faults:
            return None
        findings = _Faulty(self._shared, self._partition, begun, _doubts(topic, faults))
        if letters is not None and letters.size_bytes <= letters_bytes_max:
            findings.send_to(self._letters_topic, letters)
        elif letters is not None:
            findings.refusal = too_many_letters(header, topic, len(faults), letters_bytes_max)
        elif self._action == "reject":
            findings.refusal = refusal(header, topic, faults)
        yield
        if findings.refusal is None:
            findings.replaced = yield from rebuilt(data, header, faults, tag=self._action == "tag")
        return findings


class _Unread:
    """Findings if the schemas were not known when the look began: the records cannot be judged, and the producer
    retries.
    """

    def __init__(self, topic: str, has_letters: bool) -> None:
        self._topic = topic
        self._has_letters = has_letters

    def decide(self, offset: int) -> Decision:
        raise _unread(self._topic)

    def decide_again(self, offset: int) -> tuple[Placed, ...]:
        if self._has_letters:
            raise _unread(self._topic)
        return ()


class _Faulty:
    """Findings with records that break their topic's contract, and how to handle them."""

    def __init__(self, shared: Inspections, partition: Partition, begun: _Begun, doubts: list[Hashable]) -> None:
        self._shared = shared
        self._partition = partition
        self._begun = begun
        self._doubts = doubts
        self._letters: Letters | None = None
        self._letter_batches: list[bytearray] = []
        self._letters_topic = ""
        self.refusal: ApiError | None = None
        self.replaced: bytearray | None = None

    def send_to(self, topic: str, letters: Letters) -> None:
        """Send the records to this dead-letter topic, as these letters."""
        self._letters_topic = topic
        self._letters = letters
        self._letter_batches = letters.batches()

    def decide(self, offset: int) -> Decision:
        self._check_certain()
        if self.refusal is not None:
            self._shared.refusals[self._partition.topic] += 1
            raise self.refusal
        return Decision(self.replaced, self._send_letters(offset))

    def decide_again(self, offset: int) -> tuple[Placed, ...]:
        if self._letters is None:
            return ()
        placed = self._shared.sent_letters.of(self._partition, offset)
        if placed is not None:
            return placed
        self._check_certain()
        return self._send_letters(offset)

    def _check_certain(self) -> None:
        """Raise ApiError if the schemas are being read anew since the records were inspected."""
        schemas = self._shared.schemas
        if not schemas.is_certain(self._doubts) or schemas.reading != self._begun.reading:
            raise _unread(self._partition.topic)

    def _send_letters(self, offset: int) -> tuple[Placed, ...]:
        """Append the letters of the batch at `offset`, if there are any, to the dead-letter topic."""
        if self._letters is None:
            return ()
        if not self._letters.move(offset - self._begun.offset):
            raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, "The dead letters of the batch have to be made anew.")
        shared, partition = self._shared, self._partition
        placed = tuple(shared.dead_letters.append(self._letters_topic, partition, self._letter_batches))
        shared.sent_letters.note(partition, offset, placed)
        return placed


def _unread(topic: str) -> ApiError:
    return ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, f"The schemas for {topic} are being read.")


def _doubts(topic: str, faults: dict[int, str]) -> list[Hashable]:
    """Return what must be certain before the records are refused: each different fault, or a digest of all if there are
    many.
    """
    different = set(faults.values())
    if len(different) <= limits.DOUBTS_PER_BATCH_MAX:
        return [(topic, fault) for fault in different]
    return [(topic, sha256("\n".join(sorted(different)).encode()).digest())]
