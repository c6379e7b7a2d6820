"""What the registry holds: schemas under subjects, settings and modes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from ottla.schemas.schema import Reference, SchemaType

# The settings of a subject, of a context, or of all, by Confluent's names and in its order.
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
    """What may be done to a subject. READONLY_OVERRIDE, set globally, wins over what subjects say."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    IMPORT = "IMPORT"
    FORWARD = "FORWARD"

    @property
    def takes_ids(self) -> bool:
        """Whether schemas are registered with the ids and versions they bring."""
        return self in (Mode.IMPORT, Mode.FORWARD)

    @property
    def is_read_only(self) -> bool:
        return self in (Mode.READONLY, Mode.READONLY_OVERRIDE)


@dataclass(frozen=True, slots=True)
class Registered:
    """A version of a subject. Metadata and rules are carried as JSON objects; None is not the same as empty."""

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
    # What schemas are told apart by: the 16 bytes of their GUID.
    digest: bytes = b""

    @property
    def guid(self) -> str:
        return str(UUID(bytes=self.digest))

    @property
    def key(self) -> tuple[str, int]:
        return self.subject, self.version


class Tagged(NamedTuple):
    """Something inside a schema, by its path and Confluent's name for what it is, and its tags."""

    path: str
    kind: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SchemaDraft:
    """A schema that somebody brings: to be registered, looked up or checked.

    `text` None or empty, where that is allowed, means the text of the latest version. `id` and `version` are what it
    is to have (`-1` and `0`: what the registry gives it; version `-1`: as after the latest).
    """

    text: str | None
    type: str | None = None
    references: tuple[Reference, ...] = ()
    metadata: Mapping[str, Any] | None = None
    rule_set: Mapping[str, Any] | None = None
    id: int = -1
    version: int = 0
    # Tags to write into the text or take out of it; `propagate_tags`: those of the latest version too.
    tags_added: tuple[Tagged, ...] = ()
    tags_removed: tuple[Tagged, ...] = ()
    propagate_tags: bool = False

    @property
    def edits_tags(self) -> bool:
        return bool(self.tags_added or self.tags_removed)
