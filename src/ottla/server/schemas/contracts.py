"""Contracts: what the records of a topic must be, enforced where they are appended (`ottla.schema.validation`).

A record is looked at before it is written: does it name a schema that is registered (for this topic), and, at level
`full`, can its payload be read by it. What fails is dealt with as the topic says:

- `reject`: the batch is refused as a whole, with a reason for each record at fault, as Kafka refuses bad timestamps;
- `dlq`: the record goes to the dead-letter topic, with its reason and where it would have been; the others are written
  with their own offsets, so that sequence numbers and transactions go on as if nothing had happened;
- `tag`: the record is written with a header that says what is wrong with it.

The look is taken in steps, by a worker as a rule (`log/look.py`, `server/storage/batch_looks.py`); what follows from it
happens on the loop, at the moment of the append.

Rules:
- Null values and keys are always fine: a tombstone has no schema.
- A topic that names itself as its dead-letter topic refuses what fails.
- Duplicates of what was written never get here, so a retry writes no second letter. A letter is not part of its
  record's transaction: it is there even if that is aborted.
- The answer to the producer waits for the letters as for the records.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Sequence
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from ottla.log.config import Findings, Inspect
from ottla.model import limits
from ottla.model.config import Config
from ottla.model.errors import ApiError, ErrorCode, RecordError
from ottla.model.limits import RECORD_FAULT_CHARS_MAX, RECORD_FAULTS_TOLD_MAX
from ottla.records.batch import BatchHeader
from ottla.records.build import assemble, put_record
from ottla.records.compress import compressing
from ottla.records.record import Headers, Record, decode, rows
from ottla.schemas.framing import BadFrame, Framed, find_mark, unframe
from ottla.schemas.schema import SchemaType
from ottla.server.dead_letters.dead_letters import DeadLetters
from ottla.server.dead_letters.letters import Letters
from ottla.server.schemas.schema_cache import RegisteredSchemas, Schema

if TYPE_CHECKING:
    from ottla.replica.partition import Partition
    from ottla.server.api.context import Services

TAG = "ottla.schema.error"
_REASON = b"schema"
# The parts of a record: which header may name the schema, and in which of the topic's subjects it must be.
_PARTS = {"value": (False, "-value"), "key": (True, "-key")}


class Contracts:
    """All contracts of a node; they share what is registered."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.schemas = RegisteredSchemas(services)
        self.letters = DeadLetters(services)

    def of(self, topic: str, config: Config) -> Inspect:
        """How the batches of a topic with this configuration are looked at."""
        get = config.get
        parts = [name for name in _PARTS if get("ottla.schema.validation.of") in (name, "both")]
        contract = _Contract(self.schemas, topic, parts, get("ottla.schema.validation.subject") == "topic")
        action, target = get("ottla.schema.validation.action"), get("ottla.schema.validation.dlq") or f"{topic}.dlq"
        if action == "dlq" and target == topic:  # a batch under way cannot let another one into its own log
            action = "reject"
        return _Inspection(self, contract, get("ottla.schema.validation") == "full", action, target)

    def partition(self, name: str) -> Partition:
        topic, _, index = name.rpartition("-")
        return self.services.partitions.find(topic, int(index))


class _Begun(NamedTuple):
    """What was known when a look began."""

    reading: int  # of what is registered
    now_ms: int
    offset: int  # what the batch will have unless others are written first
    letter_batch_bytes: int


class _Inspection:
    """How the batches of one topic are looked at. All but `begin` may run in a worker (`storage/batch_looks.py`)."""

    def __init__(self, contracts: Contracts, contract: _Contract, full: bool, action: str, target: str) -> None:
        self._contracts = contracts
        self._contract = contract
        self._full = full
        self._action = action
        self._target = target

    def begin(self, name: str) -> _Begun | None:
        """None: it is not yet known what is registered."""
        contracts = self._contracts
        if not contracts.schemas.catch_up():
            return None
        try:
            source = contracts.partition(name)
        except ApiError:  # told when the batch is to be appended
            return None
        batch_bytes = contracts.letters.batch_bytes(self._target, source.index) if self._action == "dlq" else 0
        return _Begun(contracts.schemas.reading, contracts.services.now_ms(), source.log.next_offset, batch_bytes)

    def look(
        self, data: bytes, header: BatchHeader, name: str, begun: _Begun | None
    ) -> Generator[None, None, Findings | None]:
        if begun is None:
            return _Unread(self._contracts, name, header)
        topic, _, index = name.rpartition("-")
        letters = Letters(topic, int(index), begun.now_ms, begun.letter_batch_bytes) if self._action == "dlq" else None
        letters_bytes_max = max(limits.DEAD_LETTERS_PER_BATCH_BYTES, 2 * header.size_bytes)
        faults: dict[int, str] = {}
        at_once = limits.CHECKED_AT_ONCE_RECORDS if self._full else limits.RECORDS_DECODED_AT_ONCE_MAX
        at = 0
        for portion in decode(data, header):
            held = list(rows(portion))
            for begin in range(0, len(held), at_once):
                found = self._contract.faults(held[begin : begin + at_once], self._full)
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
        findings = _Findings(self._contracts, name, header, begun, _doubts(topic, faults))
        if letters is not None and letters.size_bytes <= letters_bytes_max:
            findings.bury(self._target, letters)
        elif letters is not None:
            findings.refusal = _too_many_letters(header, topic, len(faults), letters_bytes_max)
        elif self._action == "reject":
            findings.refusal = _refusal(header, topic, faults)
        yield
        if findings.refusal is None:
            findings.replaced = yield from _rebuilt(data, header, faults, tag=self._action == "tag")
        return findings


class _Unread:
    """Nothing can be said of the records before `_schemas` was read; the producer sends the batch again."""

    def __init__(self, contracts: Contracts, name: str, header: BatchHeader) -> None:
        self._contracts = contracts
        self._name = name
        self._topic = name.rpartition("-")[0]
        self._header = header

    def act(self, offset: int) -> bytearray | None:
        try:
            return self._act(offset)
        except ApiError as error:
            if error.code.retriable:
                self._contracts.partition(self._name).log.producers.turned_away(self._header)
            raise

    def _act(self, offset: int) -> bytearray | None:
        """What is registered may be known elsewhere already."""
        raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, f"The schemas for {self._topic} are being read.")


class _Findings(_Unread):
    """Records that break their topic's contract, and what is to become of them."""

    def __init__(
        self, contracts: Contracts, name: str, header: BatchHeader, begun: _Begun, doubts: list[Hashable]
    ) -> None:
        super().__init__(contracts, name, header)
        self._begun = begun
        self._doubts = doubts
        self._letters: Letters | None = None
        self._letter_batches: list[bytearray] = []
        self._target = ""
        self.refusal: ApiError | None = None
        self.replaced: bytearray | None = None

    def bury(self, target: str, letters: Letters) -> None:
        self._target = target
        self._letters = letters
        self._letter_batches = letters.batches()

    def _act(self, offset: int) -> bytearray | None:
        schemas = self._contracts.schemas
        # They may be being read anew since the records were looked at.
        if not schemas.is_certain(self._doubts) or schemas.reading != self._begun.reading:
            return super()._act(offset)
        if self.refusal is not None:
            raise self.refusal
        if self._letters is not None:
            if not self._letters.move(offset - self._begun.offset):
                raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, "The dead letters of the batch have to be made anew.")
            source = self._contracts.partition(self._name)
            placed = self._contracts.letters.append(self._target, source, self._letter_batches)
            self._contracts.services.letters[:] = placed
        return self.replaced


def _refusal(header: BatchHeader, topic: str, faults: dict[int, str]) -> ApiError:
    first = next(iter(faults.values()))
    return ApiError(
        ErrorCode.INVALID_RECORD,
        f"{len(faults)} of {header.count} records break the contract of {topic}; the first: {first}",
        tuple(RecordError(at, fault) for at, fault in islice(faults.items(), RECORD_FAULTS_TOLD_MAX)),
    )


def _too_many_letters(header: BatchHeader, topic: str, faults: int, most_bytes: int) -> ApiError:
    return ApiError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"{faults} of {header.count} records break the contract of {topic}; their dead letters would have more than "
        f"{most_bytes} bytes. Send smaller batches.",
    )


def _doubts(topic: str, faults: dict[int, str]) -> list[Hashable]:
    """What must be made certain of before anything is held against the records: their faults, or, of very many
    different ones, all together."""
    different = set(faults.values())
    if len(different) <= limits.DOUBTS_PER_BATCH_MAX:
        return [(topic, fault) for fault in different]
    return [(topic, sha256("\n".join(sorted(different)).encode()).digest())]


class _Contract:
    def __init__(self, schemas: RegisteredSchemas, topic: str, parts: Sequence[str], own_subjects: bool) -> None:
        self._schemas = schemas
        self._parts = parts
        self._topic = topic
        self._own_subjects = own_subjects

    def faults(self, held: list[Record], full: bool) -> dict[int, str]:
        """What is wrong, by the record's place in the batch."""
        found: dict[int, str] = {}
        for part in self._parts:
            of_key, suffix = _PARTS[part]
            subject = self._topic + suffix if self._own_subjects else None
            for at, record in enumerate(held):
                data = record.key if of_key else record.value
                if data is not None and at not in found:
                    fault = self._fault(data, record.headers, of_key, subject, full)
                    if fault is not None:
                        found[at] = f"{part}: {fault}"[:RECORD_FAULT_CHARS_MAX]
        return found

    def _fault(self, data: bytes, headers: Headers, of_key: bool, subject: str | None, full: bool) -> str | None:
        try:
            mark = find_mark(headers, of_key=of_key) if headers else None
            framed = unframe(data if mark is None else mark)
            schema = self._schema(framed)
            if schema is None:
                return f"there is no schema with {_named(framed)}"
            if subject is not None and subject not in schema.subjects:
                return f"the schema with {_named(framed)} is not registered for {subject}"
            if not full:
                return None
            if schema.type == SchemaType.PROTOBUF:
                framed = unframe(data if mark is None else mark, with_indexes=True)
        except BadFrame as error:
            return str(error)
        return schema.why_unreadable(data[framed.payload_begin :] if mark is None else data, framed.message_indexes)

    def _schema(self, framed: Framed) -> Schema | None:
        identity = framed.schema_id if framed.schema_id is not None else framed.guid
        return None if identity is None else self._schemas.find(identity)


def _named(framed: Framed) -> str:
    return f"id {framed.schema_id}" if framed.schema_id is not None else f"GUID {framed.guid}"


def _rebuilt(
    data: bytes, header: BatchHeader, faults: dict[int, str], *, tag: bool
) -> Generator[None, None, bytearray]:
    """The same batch with its records tagged, or else without those at fault, in the same range of offsets and
    sequence numbers."""
    out = bytearray()
    at = count = 0
    for portion in decode(data, header):
        for offset, timestamp, key, value, headers in rows(portion):
            fault = faults.get(at)
            at += 1
            if fault is not None and not tag:
                continue
            if fault is not None:
                headers = (*headers, (TAG, fault.encode()))
            put_record(out, offset - header.base_offset, timestamp - header.base_timestamp, key, value, headers)
            count += 1
        yield
    packed = bytearray()
    for piece in compressing(header.codec, out):
        packed += piece
        yield
    return assemble(
        packed,
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        attributes=header.attributes,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        count=count,
    )
