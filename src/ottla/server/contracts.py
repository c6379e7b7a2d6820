"""Contracts: what the records of a topic must be, enforced where they are appended (`ottla.schema.validation`).

A record is looked at before it is written: does it name a schema that is registered (for this topic), and, at level
`full`, can its payload be read by it. What fails is dealt with as the topic says:

- `reject`: the batch is refused as a whole, with a reason for each record at fault, as Kafka refuses bad timestamps;
- `dlq`: the record goes to the dead-letter topic, with its reason and where it would have been; the others are written
  with their own offsets, so that sequence numbers and transactions go on as if nothing had happened;
- `tag`: the record is written with a header that says what is wrong with it.

Rules:
- Null values and keys are always fine: a tombstone has no schema.
- A topic that names itself as its dead-letter topic refuses what fails.
- Duplicates of what was written never get here, so a retry writes no second letter. A letter is not part of its
  record's transaction: it is there even if that is aborted.
- The answer to the producer waits for the letters as for the records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ottla.log.config import Inspect
from ottla.model.config import Config
from ottla.model.errors import ApiError, ErrorCode, RecordError
from ottla.model.limits import RECORD_FAULT_CHARS_MAX, RECORD_FAULTS_TOLD_MAX
from ottla.records.batch import BatchHeader, read_header
from ottla.records.build import build_batch
from ottla.records.compress import Codec
from ottla.records.record import Headers, Record, records
from ottla.schemas.framing import BadFrame, Framed, find_mark, unframe
from ottla.schemas.schema import SchemaType
from ottla.server.dead_letters import DeadLetters, letter
from ottla.server.registered import RegisteredSchemas, Schema

if TYPE_CHECKING:
    from ottla.replica.partition import Partition
    from ottla.server.context import Services

TAG = "ottla.schema.error"
_REASON = b"schema"
# The parts of a record: which header may name the schema, and in which of the topic's subjects it must be.
_PARTS = {"value": (False, "-value"), "key": (True, "-key")}


class Contracts:
    """All contracts of a node; they share what is registered."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._schemas = RegisteredSchemas(services)
        self._letters = DeadLetters(services)

    def of(self, topic: str, config: Config) -> Inspect:
        """How the batches of a topic with this configuration are looked at."""
        get = config.get
        parts = [name for name in _PARTS if get("ottla.schema.validation.of") in (name, "both")]
        contract = _Contract(self._schemas, topic, parts, get("ottla.schema.validation.subject") == "topic")
        full = get("ottla.schema.validation") == "full"
        act = self._act(topic, get("ottla.schema.validation.action"), get("ottla.schema.validation.dlq"))

        def inspect(
            batch: bytearray | memoryview, header: BatchHeader, name: str, offset: int
        ) -> tuple[bytearray | memoryview, BatchHeader]:
            try:
                if not self._schemas.catch_up():
                    raise _unread(topic)
                held = list(records(batch))
                faults = contract.faults(held, full)
                if not faults:
                    return batch, header
                if not self._schemas.is_certain([(topic, fault) for fault in faults.values()]):
                    raise _unread(topic)
                changed = act(header, held, faults, name, offset)
            except ApiError as error:
                if error.code.retriable:
                    self._partition(name).log.producers.turned_away(header)
                raise
            return changed, read_header(changed)

        return inspect

    def _partition(self, name: str) -> Partition:
        topic, _, index = name.rpartition("-")
        return self._services.partitions.find(topic, int(index))

    def _act(self, topic: str, action: str, dlq: str) -> _Act:
        target = dlq or f"{topic}.dlq"
        if action == "dlq" and target != topic:  # a batch under way cannot let another one into its own log
            return self._dead_letter(target)
        return _tag if action == "tag" else _reject

    def _dead_letter(self, target: str) -> _Act:
        def act(header: BatchHeader, held: list[Record], faults: dict[int, str], name: str, offset: int) -> bytearray:
            source = self._partition(name)
            now_ms = self._services.now_ms()
            letters = [
                letter(held[at], source, offset + at, _REASON, now_ms, (("error", fault.encode()),))
                for at, fault in faults.items()
            ]
            self._services.letters[:] = self._letters.append(target, source, letters)
            return _rebuilt(header, [record for at, record in enumerate(held) if at not in faults])

        return act


def _unread(topic: str) -> ApiError:
    """What is registered may be known elsewhere already; the producer sends the batch again."""
    return ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, f"The schemas for {topic} are being read.")


_Act = Callable[[BatchHeader, list[Record], dict[int, str], str, int], bytearray]


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


def _reject(header: BatchHeader, held: list[Record], faults: dict[int, str], name: str, offset: int) -> bytearray:
    first = next(iter(faults.values()))
    raise ApiError(
        ErrorCode.INVALID_RECORD,
        f"{len(faults)} of {len(held)} records break the contract of {name.rpartition('-')[0]}; the first: {first}",
        tuple(RecordError(at, fault) for at, fault in sorted(faults.items())[:RECORD_FAULTS_TOLD_MAX]),
    )


def _tag(header: BatchHeader, held: list[Record], faults: dict[int, str], name: str, offset: int) -> bytearray:
    marked = [
        record._replace(headers=(*record.headers, (TAG, faults[at].encode()))) if at in faults else record
        for at, record in enumerate(held)
    ]
    return _rebuilt(header, marked)


def _rebuilt(header: BatchHeader, held: list[Record]) -> bytearray:
    """The same batch with other records, in the same range of offsets and sequence numbers."""
    return build_batch(
        held,
        base_offset=header.base_offset,
        codec=Codec(header.codec),
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        leader_epoch=header.leader_epoch,
        transactional=header.is_transactional,
        log_append_time=header.max_timestamp if header.is_log_append_time else None,
        max_timestamp=header.max_timestamp,
        last_offset_delta=header.last_offset_delta,
    )
