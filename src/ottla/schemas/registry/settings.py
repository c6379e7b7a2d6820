"""Setting and removing settings and modes of a subject, a context, or the registry as a whole."""

from __future__ import annotations

from ottla.machine.kit import Result
from ottla.schemas.registry.catalog import Catalog
from ottla.schemas.registry.commands import DeleteConfig, DeleteMode, SetConfig, SetMode
from ottla.schemas.registry.entities import CONFIG_FIELDS, Config, Mode
from ottla.schemas.registry.names import is_context, prefix_of, split
from ottla.schemas.registry.records import (
    ClearSubjectEntry,
    ModeEntry,
    RegistryEntry,
    RegistryRecord,
    SchemaEntry,
    SettingsEntry,
    encode,
)
from ottla.schemas.registry.refusal import not_permitted, referenced, subject_not_found
from ottla.schemas.registry.removing import keep_highest
from ottla.schemas.registry.state import matches


def set_config(catalog: Catalog, command: SetConfig, now_ms: int) -> Result[RegistryRecord, Config]:
    catalog.scope.check_writable(command.subject)
    changed = {**catalog.state.configs.get(command.subject, {}), **command.changes}
    config = {name: changed[name] for name in CONFIG_FIELDS if changed.get(name) is not None}
    return Result([encode(SettingsEntry(command.subject, config), now_ms)], config)


def delete_config(catalog: Catalog, command: DeleteConfig, now_ms: int) -> Result[RegistryRecord, Config]:
    catalog.scope.check_writable(command.subject)
    before = catalog.scope.own_config(command.subject)
    if before is None:
        raise subject_not_found(command.subject)
    return Result([encode(SettingsEntry(command.subject, None), now_ms)], before)


def set_mode(catalog: Catalog, command: SetMode, now_ms: int) -> Result[RegistryRecord, Mode]:
    subject, mode = command.subject, command.mode
    entries: list[RegistryEntry] = []
    if mode is Mode.IMPORT and catalog.scope.mode(subject) is not Mode.IMPORT and not command.force:
        entries += _emptied(catalog, subject)
    entries.append(ModeEntry(subject, mode))
    return Result([encode(entry, now_ms) for entry in entries], mode)


def _emptied(catalog: Catalog, subject: str | None) -> list[RegistryEntry]:
    """Check that nothing is registered, as IMPORT mode requires, and remove soft-deleted versions permanently."""
    there = [it for it in catalog.state.all() if matches(subject, it.subject)]
    if any(not it.deleted for it in there):
        raise not_permitted("Cannot import since found existing subjects")
    for it in there:
        if catalog.state.referrers(it.subject, it.version):
            raise referenced(f"{{magic=1,keytype=SCHEMA,subject={it.subject},version={it.version}}}")
    return [
        *keep_highest(catalog, there),
        *(SchemaEntry(it.subject, it.version, None) for it in there),
        ClearSubjectEntry(subject),
    ]


def delete_mode(catalog: Catalog, command: DeleteMode, now_ms: int) -> Result[RegistryRecord, Mode]:
    subject = command.subject
    recursive = command.recursive and is_context(subject)
    before = catalog.scope.own_mode(subject)
    if before is None and not recursive:
        raise subject_not_found(subject)
    entries = [ModeEntry(subject, None)]
    if recursive:
        prefix = prefix_of(split(subject).context)
        own = (name for name in catalog.state.modes if name is not None and name != subject)
        entries += [ModeEntry(name, None) for name in own if prefix_of(split(name).context) == prefix]
    return Result([encode(entry, now_ms) for entry in entries], before)
