"""Deleting: softly (the version stays, marked, and keeps its id), then permanently.

A schema that another one refers to stays. A permanent deletion records the highest id, so that the id is not assigned
again when the schema's records are gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ottla.machine.kit import Result
from ottla.schemas.registry.catalog import Catalog
from ottla.schemas.registry.commands import DeleteContext, DeleteSubject, DeleteVersion
from ottla.schemas.registry.entities import SubjectVersion
from ottla.schemas.registry.lookups import exists, get, referrers
from ottla.schemas.registry.names import context_of, prefix_of
from ottla.schemas.registry.records import (
    ContextEntry,
    DeleteSubjectEntry,
    HighestIdsEntry,
    ModeEntry,
    RegistryEntry,
    RegistryRecord,
    SchemaEntry,
    SettingsEntry,
    encode,
)
from ottla.schemas.registry.refusal import (
    context_not_empty,
    referenced,
    subject_not_found,
    subject_not_soft_deleted,
    subject_soft_deleted,
    version_not_found,
    version_not_soft_deleted,
    version_soft_deleted,
)


def delete_version(catalog: Catalog, command: DeleteVersion, now_ms: int) -> Result[RegistryRecord, int]:
    subject, permanent = command.subject, command.permanent
    it = get(catalog, subject, command.version, deleted=True)
    if it is None:
        raise version_not_found(command.version) if exists(catalog, subject, True) else subject_not_found(subject)
    if it.deleted and not permanent:
        raise version_soft_deleted(subject, it.version)
    catalog.scope.check_writable(subject)
    if referrers(catalog, subject, it.version, deleted=permanent):
        raise referenced(_key_text(it))
    if not permanent:
        entries: list[RegistryEntry] = [SchemaEntry(subject, it.version, replace(it, deleted=True))]
    elif not it.deleted:
        raise version_not_soft_deleted(subject, it.version)
    else:
        entries = [*keep_highest(catalog, [it]), SchemaEntry(subject, it.version, None)]
        if len(catalog.state.versions(subject)) == 1:
            entries += _without_settings(catalog, subject)
    return Result([encode(entry, now_ms) for entry in entries], it.version)


def delete_subject(catalog: Catalog, command: DeleteSubject, now_ms: int) -> Result[RegistryRecord, list[int]]:
    subject, permanent = command.subject, command.permanent
    if not exists(catalog, subject, deleted=True):
        raise subject_not_found(subject)
    if not permanent and not exists(catalog, subject):
        raise subject_soft_deleted(subject)
    catalog.scope.check_writable(subject)
    versions = [it for it in catalog.state.versions(subject) if permanent or not it.deleted]
    for it in versions:
        if any(each.subject != subject for each in referrers(catalog, subject, it.version, deleted=permanent)):
            raise referenced(_key_text(it))
        if permanent and not it.deleted:
            raise subject_not_soft_deleted(subject)
    entries: list[RegistryEntry]
    if permanent:
        # The newest first: a version may refer to an older one of its own subject.
        entries = [*keep_highest(catalog, versions)]
        entries += [SchemaEntry(subject, it.version, None) for it in reversed(versions)]
        entries += _without_settings(catalog, subject)
    else:
        entries = [DeleteSubjectEntry(subject, versions[-1].version)]
    return Result([encode(entry, now_ms) for entry in entries], [it.version for it in versions])


def delete_context(catalog: Catalog, command: DeleteContext, now_ms: int) -> Result[RegistryRecord, None]:
    context = command.context
    if any(context_of(subject) == context for subject in catalog.state.subjects):
        raise context_not_empty(prefix_of(context))
    gone = [ContextEntry(context, exists=False)] if context in catalog.state.contexts else []
    return Result([encode(entry, now_ms) for entry in gone])


def keep_highest(catalog: Catalog, leaving: Iterable[SubjectVersion]) -> list[RegistryEntry]:
    """Return a record of the highest ids of contexts from which schemas are permanently deleted, if it is not written
    yet.
    """
    contexts = {context_of(it.subject) for it in leaving}
    highest = catalog.state.highest
    if all(catalog.state.noted_highest.get(context, 0) == highest.get(context, 0) for context in contexts):
        return []
    now = {each: highest[each] for each in sorted(contexts) if each in highest}
    return [HighestIdsEntry({**catalog.state.noted_highest, **now})]


def _without_settings(catalog: Catalog, subject: str) -> list[RegistryEntry]:
    entries: list[RegistryEntry] = []
    if subject in catalog.state.modes:
        entries.append(ModeEntry(subject, None))
    if subject in catalog.state.configs:
        entries.append(SettingsEntry(subject, None))
    return entries


def _key_text(it: SubjectVersion) -> str:
    return f"{{magic=1,keytype=SCHEMA,subject={it.subject},version={it.version}}}"
