"""The registry's machine: commands lead to records of `_schemas`, records to the state that is read.

`decide` changes nothing and raises Refused; `apply` is the only mutator, so whoever reads the topic from its start has
the same state as who wrote it. What is read is in `lookups.py`, `scope.py` and `State` itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from ottla.machine.kit import OneByOne, Result
from ottla.schemas.compatibility import Level
from ottla.schemas.registry import commands, registering, removing, settings
from ottla.schemas.registry.library import Library
from ottla.schemas.registry.records import Entry, Record
from ottla.schemas.registry.scope import Scope
from ottla.schemas.registry.state import Ignored, State


class RegistryMachine(OneByOne):
    """Everything that is registered, and what may become of it."""

    def __init__(self, level: Level = Level.BACKWARD, guard: AbstractContextManager[object] | None = None) -> None:
        """`level` is the compatibility that is asked for where no setting says otherwise; `guard`: see Library."""
        self.state = State()
        self.scope = Scope(self.state, level)
        self.library = Library(self.state, guard)

    def decide(self, command: commands.Command, now_ms: int) -> Result[Record]:
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

    def apply(self, record: Record) -> Sequence[Entry | Ignored]:
        return self.state.apply(record)

    def note(self, note: Any) -> None:
        raise AssertionError("all of the registry's state is in records")
