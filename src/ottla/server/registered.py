"""What is registered, as the broker sees it: the registry's topic `_schemas`, read where it is.

Nothing runs in the background: `catch_up` reads what is new in the topic, and costs a comparison when nothing is. So a
schema counts from the moment its registration was acknowledged, and a broker without contracts pays nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.records.batch import headers
from ottla.records.committed import AbortedFilter
from ottla.records.record import records
from ottla.replica.partition import READ_COMMITTED
from ottla.schemas.readable import Reader, reader_of
from ottla.schemas.registry.entities import Registered
from ottla.schemas.registry.machine import RegistryMachine
from ottla.schemas.registry.names import DEFAULT_CONTEXT
from ottla.schemas.registry.records import Record
from ottla.schemas.registry.refusal import Refused
from ottla.schemas.schema import InvalidSchema

if TYPE_CHECKING:
    from ottla.replica.partition import Partition
    from ottla.server.context import Services

TOPIC = "_schemas"


class Schema:
    """One id: the subjects that have it, its type, and (made when first needed) how payloads are read by it."""

    __slots__ = ("_machine", "_reader", "_registered", "subjects", "type")

    def __init__(self, machine: RegistryMachine, registered: list[Registered]) -> None:
        self._machine = machine
        self._registered = registered[0]
        self._reader: Reader | None = None
        self.type = registered[0].type  # as whoever wrote the record spelled it
        self.subjects = frozenset(each.subject for each in registered if not each.deleted)

    @property
    def chars(self) -> int:
        """How long its text is."""
        return len(self._registered.text)

    def why_unreadable(self, payload: bytes, indexes: tuple[int, ...] | None) -> str | None:
        """None when the payload can be read by this schema."""
        if self._reader is None:
            self._reader = self._make()
        return self._reader(payload, indexes)

    def _make(self) -> Reader:
        it = self._registered
        try:
            return reader_of(self._machine.library.source(it.subject, it.text, it.type, it.references, deleted=True))
        except (InvalidSchema, Refused) as error:
            reason = f"nothing can be checked by the schema with id {it.id}: {error}"
            return lambda payload, indexes: reason


class RegisteredSchemas:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._forget(None)

    def _forget(self, partition: Partition | None) -> None:
        self._partition = partition
        self._next = 0
        self._machine = RegistryMachine()
        self._known: dict[int | UUID, Schema | None] = {}
        self._known_chars = 0

    def find(self, identity: int | UUID) -> Schema | None:
        """The schema with this id or GUID in the default context, as of the last `catch_up`."""
        if identity in self._known:
            return self._known[identity]
        state = self._machine.state
        if isinstance(identity, UUID):
            held = list(state.with_digest(DEFAULT_CONTEXT, identity.bytes))
        else:
            held = list(state.with_id(DEFAULT_CONTEXT, identity))
        found = Schema(self._machine, held) if held else None
        self._known[identity] = found
        self._known_chars += _chars(found)
        while (
            len(self._known) > limits.SCHEMAS_PARSED_REMEMBERED or self._known_chars > limits.SCHEMAS_PARSED_CHARS_MAX
        ):
            oldest = next(iter(self._known))
            self._known_chars -= _chars(self._known.pop(oldest))
        return found

    def catch_up(self) -> None:
        """Read what is new."""
        try:
            partition = self._services.partitions.find(TOPIC, 0)
        except ApiError:
            self._forget(None)
            return
        if partition is not self._partition or partition.log.next_offset < self._next:
            self._forget(partition)  # deleted, made anew, or cut off
        if self._next >= partition.last_stable_offset:
            return
        self._known.clear()
        self._known_chars = 0
        self._next = max(self._next, partition.log.log_start_offset)
        while self._next < partition.last_stable_offset and self._read_on(partition):
            pass

    def _read_on(self, partition: Partition) -> bool:
        read = partition.fetch(self._next, limits.SCAN_READ_BYTES, isolation=READ_COMMITTED)
        if read.records is None:
            return False
        data = memoryview(read.records.read())
        filtered = AbortedFilter(read.aborted)
        for at, header in headers(data):
            batch = data[at : at + header.size_bytes]
            aborted = filtered.is_aborted(header, batch)
            if header.base_offset >= self._next and not header.is_control and not aborted:
                for each in records(batch):
                    self._machine.apply(Record(each.key or b"", each.value, each.headers, each.timestamp))
            self._next = max(self._next, header.next_offset)
        return True


def _chars(schema: Schema | None) -> int:
    return 0 if schema is None else schema.chars
