"""The commands that change the registry. Subjects are qualified names; None is the registry as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ottla.schemas.registry.entities import Mode, SchemaDraft


@dataclass(frozen=True, slots=True)
class Register:
    """Register a schema under a subject, if it is compatible with the earlier ones (or `force`). Reply: the
    SubjectVersion, new or not.
    """

    subject: str
    draft: SchemaDraft
    normalize: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True)
class DeleteVersion:
    """Delete a version (`-1`: the latest). Reply: its number."""

    subject: str
    version: int
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class DeleteSubject:
    """Delete all versions of a subject. Reply: their numbers."""

    subject: str
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class SetConfig:
    """Change settings; a value of None removes one. Reply: all settings after the change (a mapping)."""

    subject: str | None
    changes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DeleteConfig:
    """Remove all settings of a subject, of a context, or of the registry. Reply: the settings before."""

    subject: str | None


@dataclass(frozen=True, slots=True)
class SetMode:
    """Set the mode. IMPORT requires that nothing is registered, unless forced. Reply: the mode."""

    subject: str | None
    mode: Mode | None
    force: bool = False


@dataclass(frozen=True, slots=True)
class DeleteMode:
    """Remove a mode; `recursive`, with a context: those of its subjects too. Reply: the mode before."""

    subject: str | None
    recursive: bool = False


@dataclass(frozen=True, slots=True)
class DeleteContext:
    """Remove a context that has no subjects. Reply: None."""

    context: str


RegistryCommand = (
    Register | DeleteVersion | DeleteSubject | SetConfig | DeleteConfig | SetMode | DeleteMode | DeleteContext
)
