"""The entities of the registry: schemas under subjects, settings and modes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from ottla.schemas.schema import Reference, SchemaType

# The settings of a subject, of a context, or of the registry, by Confluent's names and in its order.
CONFIG_FIELDS = (
    "alias",
    "aliasForDeks",
    "normalize",
    "validateFields",
    "validateNewSchemas",
    "validateRules",
    "compatibilityLevel",
    "compatibilityPolicy",
    "compatibilityGroup",
    "defaultMetadata",
    "overrideMetadata",
    "defaultRuleSet",
    "overrideRuleSet",
)
Config = Mapping[str, Any]


class Mode(StrEnum):
    """The mode of a subject: which changes are allowed. READONLY_OVERRIDE, set globally, wins over the modes of
    subjects.
    """

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    IMPORT = "IMPORT"
    FORWARD = "FORWARD"

    @property
    def takes_ids(self) -> bool:
        """Whether schemas are registered with the ids and versions that the request gives."""
        return self in (Mode.IMPORT, Mode.FORWARD)

    @property
    def is_read_only(self) -> bool:
        return self in (Mode.READONLY, Mode.READONLY_OVERRIDE)


@dataclass(frozen=True, slots=True)
class SubjectVersion:
    """A version of a subject. Metadata and rules are JSON objects; None is not the same as empty."""

    subject: str
    version: int
    id: int
    text: str
    type: str = SchemaType.AVRO
    references: tuple[Reference, ...] = ()
    metadata: Mapping[str, Any] | None = None
    rule_set: Mapping[str, Any] | None = None
    deleted: bool = False
    timestamp_ms: int = 0
    # The 16 bytes of the GUID, which identify equal schemas.
    digest: bytes = b""

    @property
    def guid(self) -> str:
        return str(UUID(bytes=self.digest))

    @property
    def key(self) -> tuple[str, int]:
        return self.subject, self.version


class Tagged(NamedTuple):
    """An element of a schema, by its path and Confluent's name for its type, and its tags."""

    path: str
    kind: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SchemaDraft:
    """A schema in a request: to be registered, looked up or checked.

    `text` None or empty, where that is allowed, means the text of the latest version. `id` and `version` are those that
    it is to get (`-1` and `0`: the registry assigns them; version `-1`: the one after the latest).
    """

    text: str | None
    type: str | None = None
    references: tuple[Reference, ...] = ()
    metadata: Mapping[str, Any] | None = None
    rule_set: Mapping[str, Any] | None = None
    id: int = -1
    version: int = 0
    # Tags to add to the text or to remove from it; `propagate_tags`: also add those of the latest version.
    tags_added: tuple[Tagged, ...] = ()
    tags_removed: tuple[Tagged, ...] = ()
    propagate_tags: bool = False

    @property
    def edits_tags(self) -> bool:
        return bool(self.tags_added or self.tags_removed)
