"""Lookups: a schema under a subject, by id, by GUID; and whether a schema is compatible with earlier versions.

If a name has no context and is not found in the default one, the other contexts are tried, as Confluent does: so a
client that knows nothing of contexts finds schemas that were registered in one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

from ottla.model.limits import SCHEMA_CHARS_COMPARED_MAX, SCHEMA_VERSIONS_COMPARED_MAX
from ottla.schemas.avro import AvroSchema
from ottla.schemas.avro.equal import equal
from ottla.schemas.compatibility import Previous, check_lazily
from ottla.schemas.framing import guid_of
from ottla.schemas.registry.catalog import Catalog
from ottla.schemas.registry.entities import Config, SchemaDraft, SubjectVersion
from ottla.schemas.registry.metadata_and_rules import (
    VERSION_PROPERTY,
    merged_metadata,
    merged_rules,
    property_of,
    with_version,
    without_version,
)
from ottla.schemas.registry.names import DEFAULT_CONTEXT, context_of, prefix_of, split
from ottla.schemas.registry.refusal import RegistryRefusal, invalid_schema, too_much
from ottla.schemas.registry.reserved import conflicts
from ottla.schemas.schema import Parsed, Reference, SchemaSource

LATEST = -1


class Understood:
    """A parsed draft, with the text that would be stored."""

    __slots__ = ("digest", "metadata", "parsed", "references", "rule_set", "text", "type")

    def __init__(self, draft: SchemaDraft, source: SchemaSource, parsed: Parsed, text: str) -> None:
        self.text = text
        self.type = source.type.value
        self.references: tuple[Reference, ...] = source.references
        self.parsed = parsed
        self.metadata = draft.metadata
        self.rule_set = draft.rule_set
        self.digest = guid_of(text, self.references, self.metadata, self.rule_set).bytes


def understand(catalog: Catalog, subject: str, draft: SchemaDraft, normalize: bool, as_new: bool) -> Understood | None:
    """Parse a draft; return None without a text. `as_new`: its references must not be deleted.
    Raises RegistryRefusal.
    """
    if draft.text is None or not draft.text.strip():
        return None
    source = catalog.library.source(subject, draft.text, draft.type, draft.references, deleted=not as_new)
    parsed = catalog.library.parsed(source, as_new)
    takes_as_is = catalog.scope.mode(subject).takes_ids
    return Understood(draft, source, parsed, parsed.normalized if normalize and not takes_as_is else parsed.canonical)


def get(catalog: Catalog, subject: str, version: int, deleted: bool = False) -> SubjectVersion | None:
    """Return a version of a subject; `-1` is the latest that is not deleted."""
    if version == LATEST:
        return latest(catalog, subject)
    found = catalog.state.get(subject, version)
    return None if found is None or (found.deleted and not deleted) else found


def get_anywhere(catalog: Catalog, subject: str, version: int, deleted: bool = False) -> SubjectVersion | None:
    for name in _everywhere(catalog, subject):
        if found := get(catalog, name, version, deleted):
            return found
    return None


def latest(catalog: Catalog, subject: str) -> SubjectVersion | None:
    return next((it for it in reversed(catalog.state.versions(subject)) if not it.deleted), None)


def exists(catalog: Catalog, subject: str, deleted: bool = False) -> bool:
    return any(deleted or not it.deleted for it in catalog.state.versions(subject))


def find(catalog: Catalog, subject: str, draft: SchemaDraft, normalize: bool, deleted: bool) -> SubjectVersion | None:
    """Return the version of the subject that equals this schema; if there is none, try with the metadata of the
    latest.
    """
    if found := find_as_is(catalog, subject, draft, normalize, deleted):
        return found
    before = latest(catalog, subject)
    if before is None:
        return None
    completed = complete(catalog.scope.config(subject), draft, before, None)
    return None if completed == draft else find_as_is(catalog, subject, completed, normalize, deleted)


def find_anywhere(
    catalog: Catalog, subject: str, draft: SchemaDraft, normalize: bool, deleted: bool
) -> SubjectVersion | None:
    for number, name in enumerate(_everywhere(catalog, subject)):
        try:
            if found := find(catalog, name, draft, normalize, deleted):
                return found
        except RegistryRefusal:
            # Its references may be missing in some contexts.
            if number == 0:
                raise
    return None


def find_as_is(
    catalog: Catalog, subject: str, draft: SchemaDraft, normalize: bool, deleted: bool
) -> SubjectVersion | None:
    understood = understand(catalog, subject, draft, normalize, as_new=False)
    if understood is None:
        return None
    return same(catalog, subject, understood, deleted)


def same(catalog: Catalog, subject: str, it: Understood, deleted: bool = False) -> SubjectVersion | None:
    """Return the newest version of a subject that equals this schema."""
    versions = catalog.state.versions(subject)
    under = [each for each in versions if each.digest == it.digest and each.type == it.type]
    alive = [each for each in under if not each.deleted]
    if alive or (under and deleted):
        return (alive or under)[-1]
    for each in reversed(versions):
        if (deleted or not each.deleted) and is_equivalent(catalog, it, each):
            return each
    return None


def twin(catalog: Catalog, subject: str, it: Understood) -> SubjectVersion | None:
    """Return an equal schema in the subject's context, under any subject. (Equal digests may be of different types.)"""
    equals = catalog.state.with_digest(context_of(subject), it.digest)
    return next((each for each in equals if each.type == it.type), None)


def is_equivalent(catalog: Catalog, it: Understood, other: SubjectVersion) -> bool:
    """Return whether the two differ only in details that do not count: the version noted in the metadata; inlined
    references.
    """
    if it.type != other.type or (it.rule_set or {}) != (other.rule_set or {}):
        return False
    if not _same_metadata(it, other):
        return False
    if it.references == other.references:
        return it.text == other.text
    if it.references:
        return False
    # Its references were inlined, as Avro serializers do: equal if both define the same type.
    mine, its = it.parsed, catalog.library.of(other)
    return isinstance(mine, AvroSchema) and isinstance(its, AvroSchema) and equal(mine.schema, its.schema)


def _same_metadata(it: Understood, other: SubjectVersion) -> bool:
    claimed, noted = property_of(it.metadata, VERSION_PROPERTY), property_of(other.metadata, VERSION_PROPERTY)
    if (claimed is None) == (noted is None):
        return it.metadata == other.metadata
    if claimed is not None and claimed != str(other.version):
        return False
    return without_version(it.metadata) == without_version(other.metadata)


def complete(config: Config, draft: SchemaDraft, before: SubjectVersion | None, new_version: int | None) -> SchemaDraft:
    """Complete metadata and rules: the draft's own, else those of the latest version, merged with defaults and
    overrides.
    """
    metadata = draft.metadata if draft.metadata is not None or before is None else before.metadata
    rules = draft.rule_set if draft.rule_set is not None or before is None else before.rule_set
    metadata = merged_metadata(merged_metadata(config.get("defaultMetadata"), metadata), config.get("overrideMetadata"))
    rules = merged_rules(merged_rules(config.get("defaultRuleSet"), rules), config.get("overrideRuleSet"))
    if new_version is not None and (draft.version != 0 or property_of(metadata, VERSION_PROPERTY) is not None):
        metadata = with_version(metadata, new_version)
    if metadata is None and rules is None:
        return draft
    return replace(draft, metadata=metadata, rule_set=rules)


# --- ids and GUIDs ----------------------------------------------------------------------------------------------


def with_id(catalog: Catalog, schema_id: int, subject: str | None) -> SubjectVersion | None:
    """Return a schema with this id: in the context (and, if possible, under the subject) that `subject` names."""
    name = split(subject)
    if not name.subject:
        return _first(catalog.state.with_id(name.context, schema_id))
    for each in _everywhere(catalog, name.written):
        under = [it for it in catalog.state.with_id(context_of(each), schema_id) if it.subject == each]
        if under:
            return _first(under)
    return None if name.context != DEFAULT_CONTEXT else _first(catalog.state.with_id(name.context, schema_id))


def versions_with_id(
    catalog: Catalog, schema_id: int, subject: str | None, deleted: bool
) -> list[SubjectVersion] | None:
    """Return the versions that have this id, one of each subject; None if there is none."""
    found = with_id(catalog, schema_id, subject)
    if found is None:
        return None
    newest: dict[str, SubjectVersion] = {}
    for it in catalog.state.with_id(context_of(found.subject), schema_id):
        if it.subject not in newest or not it.deleted or newest[it.subject].deleted:
            newest[it.subject] = it
    return [it for it in newest.values() if deleted or not it.deleted]


def with_guid(
    catalog: Catalog, guid: str, is_seen: Callable[[SubjectVersion], bool]
) -> list[tuple[str, SubjectVersion]]:
    """Return the schemas with this GUID that may be seen, by context."""
    try:
        digest = UUID(guid).bytes
    except ValueError:
        return []
    state = catalog.state
    found = (
        (context, next(filter(is_seen, state.with_digest(context, digest)), None))
        for context in state.contexts_in_use()
    )
    return [(context, it) for context, it in found if it is not None]


def referrers(catalog: Catalog, subject: str, version: int, deleted: bool) -> list[SubjectVersion]:
    """Return the versions that reference a version."""
    return [it for it in catalog.state.referrers(subject, version) if deleted or not it.deleted]


def _first(found: Sequence[SubjectVersion]) -> SubjectVersion | None:
    return next((it for it in found if not it.deleted), found[0] if found else None)


def _everywhere(catalog: Catalog, subject: str) -> Iterator[str]:
    """Yield the subject, and if it names no context the subjects of that name in the others."""
    yield subject
    if split(subject).context == DEFAULT_CONTEXT:
        yield from (prefix_of(context) + subject for context in catalog.state.contexts_in_use()[1:])


def latest_with_metadata(
    catalog: Catalog, subject: str, properties: Mapping[str, str], deleted: bool
) -> SubjectVersion | None:
    for it in reversed(catalog.state.versions(subject)):
        if (deleted or not it.deleted) and it.metadata is not None:
            held = it.metadata.get("properties")
            if held is not None and all(held.get(name) == value for name, value in properties.items()):
                return it
    return None


# --- compatibility ----------------------------------------------------------------------------------------------


def incompatibilities(catalog: Catalog, subject: str, it: Understood, previous: Sequence[SubjectVersion]) -> list[str]:
    """Return why this schema is not compatible with these (oldest first), under the settings of the subject."""
    config = catalog.scope.config(subject)
    messages = []
    if config.get("validateFields"):
        messages += conflicts(it.parsed, it.metadata, previous[-1].metadata if previous else None)
    group = config.get("compatibilityGroup")
    if group is not None:
        value = property_of(it.metadata, group)
        previous = [each for each in previous if property_of(each.metadata, group) == value]
    level = catalog.scope.level(subject)
    if level.is_transitive:
        _check_work(previous)
    lazily: list[Previous] = [(each.version, partial(catalog.library.of, each)) for each in previous]
    messages += check_lazily(it.parsed, lazily, level)
    if messages:
        validates = str(bool(config.get("validateFields"))).lower()
        messages.append(f"{{validateFields: '{validates}', compatibility: '{level}'}}")
    return messages


def _check_work(previous: Sequence[SubjectVersion]) -> None:
    """Refuse a comparison with more schemas than can be compared in acceptable time."""
    chars = sum(len(each.text) for each in previous)
    if len(previous) > SCHEMA_VERSIONS_COMPARED_MAX or chars > SCHEMA_CHARS_COMPARED_MAX:
        raise too_much(
            f"Comparing a schema with {len(previous)} versions of together {chars} characters is more than the "
            f"{SCHEMA_VERSIONS_COMPARED_MAX} versions and {SCHEMA_CHARS_COMPARED_MAX} characters that one request may; "
            "a level that is not transitive compares with the latest version only"
        )


def check_draft(
    catalog: Catalog, subject: str, draft: SchemaDraft, normalize: bool, previous: Sequence[SubjectVersion]
) -> list[str]:
    understood = understand(catalog, subject, draft, normalize, as_new=True)
    if understood is None:
        raise invalid_schema("Empty schema")
    return incompatibilities(catalog, subject, understood, previous)
