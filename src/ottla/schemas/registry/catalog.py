"""A read view of the registry: the state, the settings that apply to a subject, the parsed schemas.

Lookups and commands are functions of a `Catalog`; only `RegistryMachine`, which extends it, changes one.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from ottla.schemas.compatibility import Level
from ottla.schemas.registry.library import SchemaLibrary
from ottla.schemas.registry.scope import Scope
from ottla.schemas.registry.state import RegistryState


class Catalog:
    """The state, with the settings and the parsed schemas derived from it."""

    def __init__(self, level: Level = Level.BACKWARD, guard: AbstractContextManager[object] | None = None) -> None:
        """`level` is the compatibility level where no setting says otherwise; for `guard` see SchemaLibrary."""
        self.state = RegistryState()
        self.scope = Scope(self.state, level)
        self.library = SchemaLibrary(self.state, guard)
