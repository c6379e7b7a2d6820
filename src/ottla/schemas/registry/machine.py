"""The registry's machine: commands produce records of `_schemas`, records change the state.

`decide` changes nothing and raises RegistryRefusal; `apply` is the only mutator, so every instance that reads the topic
from its start has the same state as the writer. Reads are in `lookups.py`, `scope.py` and `RegistryState` itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.machine.kit import OneByOne, Result
from ottla.schemas.registry import commands, registering, removing, settings
from ottla.schemas.registry.catalog import Catalog
from ottla.schemas.registry.records import RegistryEntry, RegistryRecord
from ottla.schemas.registry.state import Ignored


class RegistryMachine(Catalog, OneByOne):
    """A catalog that commands change."""

    def decide(self, command: commands.RegistryCommand, now_ms: int) -> Result[RegistryRecord, object]:
        match command:
            case commands.Register():
                return registering.register(self, command, now_ms)
            case commands.DeleteVersion():
                return removing.delete_version(self, command, now_ms)
            case commands.DeleteSubject():
                return removing.delete_subject(self, command, now_ms)
            case commands.DeleteContext():
                return removing.delete_context(self, command, now_ms)
            case commands.SetConfig():
                return settings.set_config(self, command, now_ms)
            case commands.DeleteConfig():
                return settings.delete_config(self, command, now_ms)
            case commands.SetMode():
                return settings.set_mode(self, command, now_ms)
            case commands.DeleteMode():
                return settings.delete_mode(self, command, now_ms)

    def apply(self, record: RegistryRecord) -> Sequence[RegistryEntry | Ignored]:
        return self.state.apply(record)

    def note(self, note: object) -> None:
        raise AssertionError("all of the registry's state is in records")
