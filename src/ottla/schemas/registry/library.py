"""Parsed schemas: resolves references among the registered schemas, and caches the results.

Texts never change once they have been registered, so a parsed schema stays valid; the cache key is everything that went
into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from ottla.model.limits import (
    REFERENCES_DEPTH_MAX,
    REFERENCES_PER_SCHEMA_MAX,
    SCHEMA_TEXT_CHARS_MAX,
    SCHEMAS_PARSED_CHARS_MAX,
    SCHEMAS_PARSED_REMEMBERED,
)
from ottla.schemas.parse import parse
from ottla.schemas.registry.entities import SubjectVersion
from ottla.schemas.registry.names import beside
from ottla.schemas.registry.refusal import invalid_schema, too_large
from ottla.schemas.registry.state import RegistryState
from ottla.schemas.schema import InvalidSchema, Parsed, Reference, SchemaSource, SchemaType

_Remembered = tuple[bool, str, str, tuple[Reference, ...], tuple[tuple[str, str], ...]]


class SchemaLibrary:
    """Parses registered and new schemas. `guard` is held while the cache changes, where several threads parse."""

    def __init__(self, state: RegistryState, guard: AbstractContextManager[object] | None = None) -> None:
        self._state = state
        self._guard = guard or nullcontext()
        self._remembered: dict[_Remembered, Parsed] = {}
        self._remembered_chars = 0

    def of(self, it: SubjectVersion) -> Parsed:
        """Parse a registered schema; its references are found even if they were soft deleted since."""
        return self.parsed(self.source(it.subject, it.text, it.type, it.references, deleted=True), as_new=False)

    def source(
        self, subject: str, text: str, type_name: str | None, references: Sequence[Reference], deleted: bool = False
    ) -> SchemaSource:
        """Return a schema with the texts of all its references. Raises RegistryRefusal."""
        try:
            schema_type = SchemaType(type_name or SchemaType.AVRO)
        except ValueError:
            raise invalid_schema(f"Invalid schema type {type_name}") from None
        if len(text) > SCHEMA_TEXT_CHARS_MAX:
            raise too_large("Write failed because schema is too large")
        latest = self.numbered(subject, references)
        resolved: dict[str, str] = {}
        try:
            self._resolve(subject, latest, resolved, {}, deleted, 0)
        except InvalidSchema as error:
            raise invalid_schema(f"Invalid schema of type {schema_type}, details: {error}") from None
        return SchemaSource(text, schema_type, latest, resolved)

    def parsed(self, source: SchemaSource, as_new: bool) -> Parsed:
        """Parse a schema. Only a new one (`as_new`) is checked strictly; a registered one was accepted once. Raises
        RegistryRefusal.
        """
        key = (as_new, source.type.value, source.text, source.references, tuple(source.resolved.items()))
        known = self._recall(key)
        if known is None:
            try:
                known = parse(source) if as_new else _leniently(source)
            except (InvalidSchema, RecursionError) as error:
                raise invalid_schema(f"Invalid schema of type {source.type}, details: {error}") from None
            self._remember(key, known)
        return known

    def _recall(self, key: _Remembered) -> Parsed | None:
        with self._guard:
            known = self._remembered.pop(key, None)
            if known is not None:
                self._remembered[key] = known  # moved to the end: the least recently used is dropped first
            return known

    def _remember(self, key: _Remembered, parsed: Parsed) -> None:
        with self._guard:
            if self._remembered.pop(key, None) is None:
                self._remembered_chars += _chars(key)
            self._remembered[key] = parsed
            while (
                len(self._remembered) > SCHEMAS_PARSED_REMEMBERED or self._remembered_chars > SCHEMAS_PARSED_CHARS_MAX
            ):
                oldest = next(iter(self._remembered))
                del self._remembered[oldest]
                self._remembered_chars -= _chars(oldest)

    def numbered(self, subject: str, references: Sequence[Reference]) -> tuple[Reference, ...]:
        """Return the references with `-1`, the latest, replaced by the present version number."""
        if len(references) > REFERENCES_PER_SCHEMA_MAX:
            raise invalid_schema(f"Invalid schema, details: more than {REFERENCES_PER_SCHEMA_MAX} references")
        return tuple(each if each.version != -1 else self._numbered(subject, each) for each in references)

    def _numbered(self, subject: str, reference: Reference) -> Reference:
        versions = [it for it in self._state.versions(beside(subject, reference.subject)) if not it.deleted]
        return reference._replace(version=versions[-1].version) if versions else reference

    def _resolve(
        self,
        subject: str,
        references: Sequence[Reference],
        resolved: dict[str, str],
        seen: dict[str, None],
        deleted: bool,
        depth: int,
    ) -> None:
        """Collect the texts of references by name, dependencies first. A reference in a cycle is followed once."""
        if depth > REFERENCES_DEPTH_MAX:
            raise InvalidSchema(f"references are nested more than {REFERENCES_DEPTH_MAX} deep")
        for reference in references:
            target = beside(subject, reference.subject)
            found = self._state.get(target, reference.version)
            if found is None or (found.deleted and not deleted):
                raise InvalidSchema(f'No schema reference found for subject "{target}" and version {reference.version}')
            if reference.name in seen:
                continue
            seen[reference.name] = None
            self._resolve(target, found.references, resolved, seen, deleted, depth + 1)
            resolved[reference.name] = found.text


def _chars(key: _Remembered) -> int:
    """Return the length of the texts, to which the memory of a parsed schema is proportional."""
    return len(key[2]) + sum(len(text) for _, text in key[4])


def _leniently(source: SchemaSource) -> Parsed:
    if source.type is SchemaType.AVRO:
        from ottla.schemas.avro import parse_avro

        return parse_avro(source, strict=False)
    if source.type is SchemaType.PROTOBUF:
        from ottla.schemas.protobuf import parse_protobuf

        return parse_protobuf(source, strict=False)
    return parse(source)
