"""Managing the subjects of a schema registry: their versions, compatibility levels and modes, and deleting them."""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.client.registry import RegistryError, SchemaRegistry, request_of
from ottla.schemas.compatibility import Level
from ottla.schemas.schema import Reference, SchemaSource, SchemaType

_SUBJECT_NOT_FOUND = 40401
# It was deleted softly before: all of the subject, or this version of it.
_SOFTLY_DELETED = (40404, 40406)
_NO_OWN = (40408, 40409)  # no level, no mode of its own


class SubjectEntry(NamedTuple):
    """One version of a subject, as the list of all schemas has it."""

    subject: str
    version: int
    schema_id: int
    kind: str
    text: str
    references: tuple[Reference, ...]


class LevelSetting(NamedTuple):
    """The compatibility level of a subject; `is_own` if it was set for it, and not for the whole registry."""

    level: str
    is_own: bool


def entry_of(answer: Any) -> SubjectEntry:
    """One version, from an answer of the registry."""
    references = tuple(
        Reference(each["name"], each["subject"], each["version"]) for each in answer.get("references") or ()
    )
    kind = answer.get("schemaType", SchemaType.AVRO.value)
    return SubjectEntry(answer["subject"], answer["version"], answer["id"], kind, answer["schema"], references)


def latest_of_all(registry: SchemaRegistry) -> list[SubjectEntry]:
    """The latest version of each subject, by name."""
    return sorted(map(entry_of, registry.call("GET", "schemas", latestOnly=True)), key=lambda each: each.subject)


def versions_of(registry: SchemaRegistry, subject: str, *, deleted: bool = False) -> list[int]:
    """The versions of a subject; empty if there is no such subject. `deleted`: also those that are softly deleted."""
    try:
        found: list[int] = registry.call("GET", "subjects", subject, "versions", deleted=deleted)
    except RegistryError as error:
        if error.code != _SUBJECT_NOT_FOUND:
            raise
        return []
    return found


def version_of(registry: SchemaRegistry, subject: str, version: int | str) -> SubjectEntry:
    """One version, also if it is softly deleted; `latest` is one."""
    return entry_of(registry.call("GET", "subjects", subject, "versions", version, deleted=isinstance(version, int)))


def referrers_of(registry: SchemaRegistry, subject: str, version: int) -> list[int]:
    """The ids of the schemas that refer to a version."""
    found: list[int] = registry.call("GET", "subjects", subject, "versions", version, "referencedby")
    return found


def users_of(registry: SchemaRegistry, schema_id: int) -> list[tuple[str, int]]:
    """The subjects and versions that have a schema."""
    found = registry.call("GET", "schemas", "ids", schema_id, "versions")
    return [(each["subject"], each["version"]) for each in found]


def global_level(registry: SchemaRegistry) -> str:
    """The compatibility level of subjects that have none of their own."""
    return str(registry.call("GET", "config")["compatibilityLevel"])


def level_of(registry: SchemaRegistry, subject: str) -> LevelSetting:
    """The compatibility level that counts for a subject."""
    try:
        own = registry.call("GET", "config", subject).get("compatibilityLevel")
    except RegistryError as error:
        if error.code not in _NO_OWN:
            raise
        own = None
    if own is not None:
        return LevelSetting(str(own), True)
    return LevelSetting(str(registry.call("GET", "config", subject, defaultToGlobal=True)["compatibilityLevel"]), False)


def set_level(registry: SchemaRegistry, subject: str, level: Level | None) -> None:
    """Set the compatibility level of a subject; None: that of the registry counts again."""
    if level is not None:
        registry.call("PUT", "config", subject, body={"compatibility": level.value})
        return
    try:
        registry.call("DELETE", "config", subject)
    except RegistryError as error:
        if not error.is_not_found:
            raise


def mode_of(registry: SchemaRegistry, subject: str) -> str:
    """The mode that counts for a subject: READWRITE, READONLY, IMPORT."""
    return str(registry.call("GET", "mode", subject, defaultToGlobal=True)["mode"])


def verdict_of(registry: SchemaRegistry, subject: str, source: SchemaSource, version: int | None = None) -> list[str]:
    """Why a schema may not follow the versions of a subject (or one of them), in the words of the registry; empty if it
    may.
    """
    place = ["compatibility", "subjects", subject, "versions", *([] if version is None else [version])]
    answer = registry.call("POST", *place, body=request_of(source), verbose=True)
    if answer["is_compatible"]:
        return []
    return [str(each) for each in answer.get("messages") or ["it is not compatible"]]


def delete_versions(
    registry: SchemaRegistry, subject: str, version: int | str | None = None, *, permanent: bool = False
) -> list[int]:
    """Delete a subject or one version of it, softly or permanently, and return the versions that are gone."""
    place = ["subjects", subject, *([] if version is None else ["versions", version])]
    try:
        gone = _numbers(registry.call("DELETE", *place))
    except RegistryError as error:
        if not (permanent and error.code in _SOFTLY_DELETED):
            raise
        gone = []
    return _numbers(registry.call("DELETE", *place, permanent=True)) if permanent else gone


def _numbers(answer: object) -> list[int]:
    return [int(str(each)) for each in (answer if isinstance(answer, list) else [answer])]
