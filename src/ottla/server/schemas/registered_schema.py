"""Registered schemas by id or GUID, each with a check of payloads; a cache of the last ones used."""

from __future__ import annotations

from uuid import UUID

from ottla.model.limits import SCHEMAS_PARSED_CHARS_MAX, SCHEMAS_PARSED_REMEMBERED
from ottla.schemas.readable import PayloadCheck, reader_of
from ottla.schemas.registry.entities import SubjectVersion
from ottla.schemas.registry.machine import RegistryMachine
from ottla.schemas.registry.names import DEFAULT_CONTEXT
from ottla.schemas.registry.refusal import RegistryRefusal
from ottla.schemas.schema import InvalidSchema


class RegisteredSchema:
    """One schema id: the subjects that have it, its type, and (made when first needed) the check of payloads."""

    __slots__ = ("_machine", "_reader", "_registered", "subjects", "type")

    def __init__(self, machine: RegistryMachine, registered: list[SubjectVersion]) -> None:
        self._machine = machine
        self._registered = registered[0]
        self._reader: PayloadCheck | None = None
        self.type = registered[0].type  # in the registry's spelling
        self.subjects = frozenset(each.subject for each in registered if not each.deleted)

    @property
    def chars(self) -> int:
        """The length of its text."""
        return len(self._registered.text)

    def why_unreadable(self, payload: bytes, indexes: tuple[int, ...] | None) -> str | None:
        """Return why the payload cannot be read with this schema, or None."""
        if self._reader is None:
            self._reader = self._make()
        return self._reader(payload, indexes)

    def _make(self) -> PayloadCheck:
        it = self._registered
        try:
            return reader_of(self._machine.library.source(it.subject, it.text, it.type, it.references, deleted=True))
        except (InvalidSchema, RegistryRefusal) as error:
            reason = f"nothing can be checked by the schema with id {it.id}: {error}"
            return lambda payload, indexes: reason


class RegisteredSchemas:
    """The schemas in a registry's machine. `forget` has to be called when the machine has changed."""

    def __init__(self) -> None:
        self.machine = RegistryMachine()
        self._remembered: dict[int | UUID, RegisteredSchema | None] = {}
        self._remembered_chars = 0

    def find(self, identity: int | UUID) -> RegisteredSchema | None:
        """Return the schema with this id or GUID in the default context."""
        if identity in self._remembered:
            return self._remembered[identity]
        state = self.machine.state
        if isinstance(identity, UUID):
            held = list(state.with_digest(DEFAULT_CONTEXT, identity.bytes))
        else:
            held = list(state.with_id(DEFAULT_CONTEXT, identity))
        found = RegisteredSchema(self.machine, held) if held else None
        self._remembered[identity] = found
        self._remembered_chars += _chars(found)
        while len(self._remembered) > SCHEMAS_PARSED_REMEMBERED or self._remembered_chars > SCHEMAS_PARSED_CHARS_MAX:
            oldest = next(iter(self._remembered))
            self._remembered_chars -= _chars(self._remembered.pop(oldest))
        return found

    def forget(self) -> None:
        self._remembered.clear()
        self._remembered_chars = 0


def _chars(schema: RegisteredSchema | None) -> int:
    return 0 if schema is None else schema.chars
