"""The state that the records of `_schemas` produce. Only `apply` changes it.

Indexes are derived from the schemas: by id and by digest (per context), and by reference. They include soft-deleted
schemas, since such a schema keeps its id, can be requested by it, and can come back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ottla.model.limits import INT32_MAX, SCHEMA_ID_CONTINUED_MAX
from ottla.schemas.registry.entities import Config, Mode, SubjectVersion
from ottla.schemas.registry.names import DEFAULT_CONTEXT, GLOBAL_CONTEXT, beside, context_of, is_context, split
from ottla.schemas.registry.records import (
    BadRegistryRecord,
    ClearSubjectEntry,
    ContextEntry,
    DeleteSubjectEntry,
    HighestIdsEntry,
    LeaderEntry,
    ModeEntry,
    RegistryEntry,
    RegistryRecord,
    SchemaEntry,
    SettingsEntry,
    decode,
)

Key = tuple[str, int]
T = TypeVar("T")
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Ignored:
    """A record that changed nothing, because it is invalid (in this state)."""

    reason: str


class RegistryState:
    """Subjects, ids, settings, modes and contexts."""

    def __init__(self) -> None:
        self.subjects: dict[str, dict[int, SubjectVersion]] = {}
        self.configs: dict[str | None, Config] = {}
        self.modes: dict[str | None, Mode] = {}
        self.contexts: dict[str, None] = {}
        # The id that the next one follows, by context (see `_note_id`), and that of the last HighestIds record.
        self.highest: dict[str, int] = {}
        self.noted_highest: dict[str, int] = {}
        self.leader_url: str | None = None  # the instance that last announced itself as the writer
        self._by_id: dict[tuple[str, int], dict[Key, None]] = {}
        self._by_digest: dict[tuple[str, bytes], dict[Key, None]] = {}
        self._references_to: dict[Key, dict[Key, None]] = {}

    # --- reading ----------------------------------------------------------------------------------------------

    def get(self, subject: str, version: int) -> SubjectVersion | None:
        return self.subjects.get(subject, {}).get(version)

    def versions(self, subject: str) -> list[SubjectVersion]:
        """Return all versions of a subject, soft-deleted ones too, oldest first."""
        held = self.subjects.get(subject, {})
        return [held[version] for version in sorted(held)]

    def all(self) -> Iterator[SubjectVersion]:
        """Yield all versions, by subject and version."""
        for subject in sorted(self.subjects):
            yield from self.versions(subject)

    def with_id(self, context: str, schema_id: int) -> list[SubjectVersion]:
        """Return all versions of all subjects of a context that have this id, by subject and version."""
        return self._all(self._by_id.get((context, schema_id), ()))

    def holder(self, context: str, schema_id: int) -> SubjectVersion | None:
        """Return one of the versions that have this id; all of them are equal."""
        key = next(iter(self._by_id.get((context, schema_id), ())), None)
        return None if key is None else self.subjects[key[0]][key[1]]

    def with_digest(self, context: str, digest: bytes) -> Iterator[SubjectVersion]:
        """Yield all versions of all subjects of a context that have this digest, in the order of registration."""
        for subject, version in self._by_digest.get((context, digest), ()):
            yield self.subjects[subject][version]

    def referrers(self, subject: str, version: int) -> list[SubjectVersion]:
        """Return the versions that reference this version, soft-deleted ones too."""
        return self._all(self._references_to.get((subject, version), ()))

    def contexts_in_use(self) -> list[str]:
        """Return the default context, and those that have had a schema."""
        return [DEFAULT_CONTEXT, *sorted(context for context in self.contexts if context != DEFAULT_CONTEXT)]

    def _all(self, keys: Iterable[Key]) -> list[SubjectVersion]:
        return [self.subjects[subject][version] for subject, version in sorted(keys)]

    # --- changing ---------------------------------------------------------------------------------------------

    def apply(self, record: RegistryRecord) -> Sequence[RegistryEntry | Ignored]:
        """Apply a record; return its entry, or why it was ignored."""
        try:
            entry = decode(record)
        except BadRegistryRecord as error:
            return (Ignored(str(error)),)
        return (self._take(entry),)

    def _take(self, entry: RegistryEntry) -> RegistryEntry | Ignored:
        match entry:
            case SchemaEntry(subject, version, registered):
                if registered is None:
                    self._remove((subject, version))
                else:
                    return self._put(entry, registered)
            case SettingsEntry(subject, config):
                _set(self.configs, subject, config)
            case ModeEntry(subject, mode):
                _set(self.modes, subject, mode)
            case DeleteSubjectEntry(subject, version):
                for each in self.versions(subject):
                    if each.version <= version and not each.deleted:
                        self.subjects[subject][each.version] = replace(each, deleted=True)
            case ClearSubjectEntry(subject):
                self._clear(subject)
            case ContextEntry(context, exists):
                if exists:
                    self.contexts[context] = None
                else:
                    self.contexts.pop(context, None)
            case LeaderEntry(url):
                self.leader_url = url
            case HighestIdsEntry(highest):
                self.noted_highest = dict(highest)
                for context, schema_id in highest.items():
                    self._note_id(context, schema_id, INT32_MAX)
        return entry

    def _put(self, entry: SchemaEntry, it: SubjectVersion) -> RegistryEntry | Ignored:
        context = context_of(it.subject)
        holder = self.holder(context, it.id)
        if holder is not None and holder.text != it.text:
            return Ignored(f"id {it.id} of {it.subject} version {it.version} is that of another schema")
        self._remove(it.key)
        self.subjects.setdefault(it.subject, {})[it.version] = it
        self._by_id.setdefault((context, it.id), {})[it.key] = None
        self._note_id(context, it.id, SCHEMA_ID_CONTINUED_MAX)
        self._by_digest.setdefault((context, it.digest), {})[it.key] = None
        for target in _targets(it):
            self._references_to.setdefault(target, {})[it.key] = None
        return entry

    def _note_id(self, context: str, schema_id: int, continued_max: int) -> None:
        """Let new ids go on after this one, unless it was imported far above the others; skip those that are taken."""
        highest = self.highest.get(context, 0)
        if schema_id <= continued_max:
            highest = max(highest, schema_id)
        while (context, highest + 1) in self._by_id:
            highest += 1
        if highest:
            self.highest[context] = highest

    def _remove(self, key: Key) -> None:
        subject, version = key
        it = self.subjects.get(subject, {}).pop(version, None)
        if it is None:
            return
        if not self.subjects[subject]:
            del self.subjects[subject]
        context = context_of(subject)
        _unset(self._by_id, (context, it.id), key)
        _unset(self._by_digest, (context, it.digest), key)
        for target in _targets(it):
            _unset(self._references_to, target, key)

    def _clear(self, subject: str | None) -> None:
        for each in list(self.all()):
            if each.deleted and matches(subject, each.subject):
                self._remove(each.key)


def matches(pattern: str | None, subject: str) -> bool:
    """Return whether a pattern matches a subject: all (None), the subject itself, or its context."""
    if pattern is None or pattern == subject:
        return True
    return is_context(pattern) and split(pattern).context in (GLOBAL_CONTEXT, context_of(subject))


def _targets(it: SubjectVersion) -> list[Key]:
    return [(beside(it.subject, reference.subject), reference.version) for reference in it.references]


def _set(table: dict[str | None, T], key: str | None, value: T | None) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


def _unset(index: dict[K, dict[Key, None]], at: K, key: Key) -> None:
    keys = index.get(at)
    if keys is not None:
        keys.pop(key, None)
        if not keys:
            del index[at]
