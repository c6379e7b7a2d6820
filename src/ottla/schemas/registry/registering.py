"""Registering a schema under a subject.

Equal schemas have one id per context, under whatever subjects; a schema that the subject has already is not registered
again. A schema that was soft deleted comes back as a new version with its old id, and the deleted version is removed.
In IMPORT mode schemas bring their ids and versions, and nothing is checked against older ones.
"""

from __future__ import annotations

from dataclasses import replace

from ottla.machine.kit import Result
from ottla.model.limits import INT32_MAX
from ottla.schemas.registry.catalog import Catalog
from ottla.schemas.registry.commands import Register
from ottla.schemas.registry.entities import Config, SchemaDraft, SubjectVersion
from ottla.schemas.registry.lookups import (
    LATEST,
    Understood,
    complete,
    incompatibilities,
    is_equivalent,
    latest,
    same,
    twin,
    understand,
)
from ottla.schemas.registry.names import DEFAULT_CONTEXT, context_of, prefix_of
from ottla.schemas.registry.records import ContextEntry, RegistryEntry, RegistryRecord, SchemaEntry, encode
from ottla.schemas.registry.refusal import incompatible, invalid_schema, not_permitted
from ottla.schemas.registry.removing import keep_highest
from ottla.schemas.registry.tags import tags_in, with_tags


def register(catalog: Catalog, command: Register, now_ms: int) -> Result[RegistryRecord, SubjectVersion]:
    subject, draft = command.subject, command.draft
    if known := known_already(catalog, command):
        return Result(reply=known)
    config = catalog.scope.config(subject)
    normalize = command.normalize or config.get("normalize") is True
    _check_mode(catalog, subject, draft)
    takes_ids = catalog.scope.mode(subject).takes_ids
    versions = catalog.state.versions(subject)
    new_version = versions[-1].version + 1 if versions else 1
    if not takes_ids:
        draft = _filled(catalog, subject, draft, config, new_version)
    it = understand(catalog, subject, draft, normalize, as_new=draft.id < 0)
    if it is None:
        raise invalid_schema("Empty schema")
    schema_id = draft.id
    if schema_id < 0 and (equal := twin(catalog, subject, it)):
        schema_id = equal.id
    if draft.version == 0:
        present = same(catalog, subject, it)
        if present is not None and draft.id in (-1, present.id):
            return Result(reply=present)
    alive = [each for each in versions if not each.deleted]
    if not (takes_ids or command.force) and (messages := incompatibilities(catalog, subject, it, alive)):
        raise incompatible(
            "Schema being registered is incompatible with an earlier schema for subject "
            f'"{subject}", details: [{", ".join(messages)}]'
        )
    version = _version(draft, new_version, takes_ids)
    registered = _registered(catalog, subject, it, schema_id, version, now_ms)
    entries = [*_context(catalog, subject), *_replaced(catalog, registered, versions)]
    entries.append(SchemaEntry(subject, version, registered))
    return Result([encode(entry, now_ms) for entry in entries], registered)


def known_already(catalog: Catalog, command: Register) -> SubjectVersion | None:
    """Return the version if the subject has the schema already: that may be 'registered' again in any mode, by any
    instance.
    """
    subject, draft = command.subject, command.draft
    config = catalog.scope.config(subject)
    normalize = command.normalize or config.get("normalize") is True
    if (
        draft.edits_tags
        or draft.propagate_tags
        or any(name in config for name in ("defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet"))
    ):
        return None
    it = understand(catalog, subject, draft, normalize, as_new=False)
    if it is None:
        return None
    if draft.version == LATEST:
        newest = latest(catalog, subject)
        known = newest if newest is not None and is_equivalent(catalog, it, newest) else None
    else:
        known = same(catalog, subject, it)
    if known is None:
        return None
    if draft.version in (0, LATEST):
        return known if draft.id in (-1, known.id) else None
    if known.id != draft.id:
        return None
    # The same schema may have been imported under several versions.
    exact = catalog.state.get(subject, draft.version)
    return exact if exact is not None and not exact.deleted and exact.digest == known.digest else None


def _check_mode(catalog: Catalog, subject: str, draft: SchemaDraft) -> None:
    catalog.scope.check_writable(subject)
    where = f"Subject {subject} in context {prefix_of(context_of(subject))}"
    mode = catalog.scope.mode(subject)
    if draft.id >= 0 and not mode.takes_ids:
        raise not_permitted(f"{where} is not in import mode")
    if draft.id < 0 and mode.takes_ids:
        raise not_permitted(f"{where} is not in read-write mode")
    if draft.id > INT32_MAX or draft.version > INT32_MAX:
        raise invalid_schema("Ids and versions are 32-bit numbers")


def _filled(catalog: Catalog, subject: str, draft: SchemaDraft, config: Config, new_version: int) -> SchemaDraft:
    """Fill in the latest version's text if the draft has none; likewise metadata and rules."""
    before = latest(catalog, subject)
    if draft.text is None or not draft.text.strip():
        if before is None:
            raise invalid_schema("Empty schema")
        draft = replace(draft, text=before.text, type=before.type, references=before.references)
    if draft.edits_tags or (draft.propagate_tags and before is not None):
        draft = _tagged(catalog, subject, draft, before)
    return complete(config, draft, before, new_version)


def _tagged(catalog: Catalog, subject: str, draft: SchemaDraft, before: SubjectVersion | None) -> SchemaDraft:
    """Write the tags into the text. The metadata of a version whose tags are changed gets the version number."""
    text = draft.text or ""
    if draft.edits_tags:
        source = catalog.library.source(subject, text, draft.type, draft.references)
        text = with_tags(source, draft.tags_added, draft.tags_removed)
        draft = replace(draft, text=text, version=draft.version or LATEST)
    if draft.propagate_tags and before is not None and (inherited := tags_in(catalog.library.of(before))):
        source = catalog.library.source(subject, text, draft.type, draft.references)
        draft = replace(draft, text=with_tags(source, inherited))
    return draft


def _version(draft: SchemaDraft, new_version: int, takes_ids: bool) -> int:
    if draft.version <= 0:
        return new_version
    if draft.version != new_version and not takes_ids:
        raise invalid_schema("Version is not one more than previous version")
    return draft.version


def _registered(
    catalog: Catalog, subject: str, it: Understood, schema_id: int, version: int, now_ms: int
) -> SubjectVersion:
    context = context_of(subject)
    if schema_id < 0:
        schema_id = catalog.state.highest.get(context, 0) + 1
        if schema_id > INT32_MAX:
            raise not_permitted(f"All ids of context {context} have been given out")
    holder = catalog.state.holder(context, schema_id)
    if holder is not None and (holder.digest, holder.type) != (it.digest, it.type):
        which = f"id {schema_id} in context {prefix_of(context)}"
        raise not_permitted(f"Overwrite new schema with {which} is not permitted.")
    return SubjectVersion(
        subject, version, schema_id, it.text, it.type, it.references, it.metadata, it.rule_set, False, now_ms, it.digest
    )


def _context(catalog: Catalog, subject: str) -> list[RegistryEntry]:
    context = context_of(subject)
    return [] if context == DEFAULT_CONTEXT or context in catalog.state.contexts else [ContextEntry(context)]


def _replaced(catalog: Catalog, new: SubjectVersion, versions: list[SubjectVersion]) -> list[RegistryEntry]:
    """Remove soft-deleted versions of the same schema, unless other schemas refer to them."""
    gone = [
        each
        for each in versions
        if each.deleted
        and each.id == new.id
        and each.version < new.version
        and not catalog.state.referrers(each.subject, each.version)
    ]
    # Importing over a version with another id removes the last trace of that id.
    overwritten = [each for each in versions if each.version == new.version and each.id != new.id]
    return [
        *keep_highest(catalog, overwritten),
        *(SchemaEntry(each.subject, each.version, None) for each in gone),
    ]
