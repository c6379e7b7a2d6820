"""Everything that is registered, as it is read: the state, the settings that apply to a subject, the parsed schemas.

Lookups and commands are functions of a `Catalog`; only `RegistryMachine`, which extends it, changes one.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from ottla.schemas.compatibility import Level
from ottla.schemas.registry.library import SchemaLibrary
from ottla.schemas.registry.scope import Scope
from ottla.schemas.registry.state import RegistryState


class Catalog:
    """The state, and the two views of it that share it."""

    def __init__(self, level: Level = Level.BACKWARD, guard: AbstractContextManager[object] | None = None) -> None:
        """`level` is the compatibility that is required where no setting says otherwise; `guard`: see SchemaLibrary."""
        self.state = RegistryState()
        self.scope = Scope(self.state, level)
        self.library = SchemaLibrary(self.state, guard)
