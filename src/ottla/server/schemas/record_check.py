"""RecordCheck: finds what is wrong with records under a topic's contract.

Null values and keys are always valid: a tombstone has no schema.
"""

from __future__ import annotations

from ottla.log.config import ContractTerms
from ottla.model.limits import RECORD_FAULT_CHARS_MAX
from ottla.records.record import Headers, Record
from ottla.schemas.framing import BadFrame, Framed, find_mark, unframe
from ottla.schemas.schema import SchemaType
from ottla.server.schemas.registered_schema import RegisteredSchemas
from ottla.server.schemas.schema_cache import SchemaCache

# The parts of a record: whether the key's header names the schema, and the suffix of the topic's subject.
_PARTS = {"value": (False, "-value"), "key": (True, "-key")}


class RecordCheck:
    """Checks with the schemas that were known at the last `catch_up` of the cache; may run in a worker."""

    def __init__(self, schemas: SchemaCache, topic: str, terms: ContractTerms) -> None:
        self._schemas = schemas
        self._parts = [name for name in _PARTS if terms.of in (name, "both")]
        self._topic = topic
        self._own_subjects = terms.own_subjects
        self._full = terms.full

    def faults(self, held: list[Record]) -> dict[int, str]:
        """Return the fault of each faulty record, by its index in the list."""
        found: dict[int, str] = {}
        known = self._schemas.known
        for part in self._parts:
            of_key, suffix = _PARTS[part]
            subject = self._topic + suffix if self._own_subjects else None
            for at, record in enumerate(held):
                data = record.key if of_key else record.value
                if data is not None and at not in found:
                    fault = self._fault(known, data, record.headers, of_key, subject)
                    if fault is not None:
                        found[at] = f"{part}: {fault}"[:RECORD_FAULT_CHARS_MAX]
        return found

    def _fault(
        self, known: RegisteredSchemas, data: bytes, headers: Headers, of_key: bool, subject: str | None
    ) -> str | None:
        try:
            mark = find_mark(headers, of_key=of_key) if headers else None
            framed = unframe(data if mark is None else mark)
            identity = framed.schema_id if framed.schema_id is not None else framed.guid
            schema = None if identity is None else known.find(identity)
            if schema is None:
                return f"there is no schema with {_named(framed)}"
            if subject is not None and subject not in schema.subjects:
                return f"the schema with {_named(framed)} is not registered for {subject}"
            if not self._full:
                return None
            if schema.type == SchemaType.PROTOBUF:
                framed = unframe(data if mark is None else mark, with_indexes=True)
        except BadFrame as error:
            return str(error)
        return schema.why_unreadable(data[framed.payload_begin :] if mark is None else data, framed.message_indexes)


def _named(framed: Framed) -> str:
    return f"id {framed.schema_id}" if framed.schema_id is not None else f"GUID {framed.guid}"
