"""The settings and the mode of a subject: its own, else its context's, else the global context's, else the default.
A subject's own settings are completed by those of the registry, where they have no value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from ottla.schemas.compatibility import Level
from ottla.schemas.registry.entities import CONFIG_FIELDS, Config, Mode
from ottla.schemas.registry.names import DEFAULT_CONTEXT, GLOBAL_CONTEXT, beside, prefix_of, split
from ottla.schemas.registry.refusal import not_permitted
from ottla.schemas.registry.state import RegistryState

V = TypeVar("V")
# The settings that a subject inherits from the registry's if it has none of its own; the others are not inherited.
_INHERITED = (
    "normalize",
    "validateFields",
    "validateNewSchemas",
    "validateRules",
    "compatibilityPolicy",
    "compatibilityGroup",
)


class Scope:
    """The settings and modes that apply."""

    def __init__(self, state: RegistryState, level: Level) -> None:
        self._state = state
        self._default: Config = {"compatibilityLevel": level.value}

    def own_config(self, subject: str | None) -> Config | None:
        """Return the settings of exactly this subject or context (the registry itself always has some), with the level
        filled in.
        """
        config = self._state.configs.get(subject)
        if config is None:
            return self._default if _is_top(subject) else None
        return _complete({**self._default, **config})

    def config(self, subject: str | None) -> Config:
        """Return the settings that apply to a subject."""
        own = None if subject is None else self.own_config(subject)
        if own is None:
            found = _nearest(self._state.configs, subject)
            return self._default if found is None else _complete({**self._default, **found})
        for_all = self.own_config(None) or {}
        return _complete({**{name: for_all[name] for name in _INHERITED if name in for_all}, **own})

    def own_mode(self, subject: str | None) -> Mode | None:
        mode = self._state.modes.get(subject)
        return Mode.READWRITE if mode is None and _is_top(subject) else mode

    def mode(self, subject: str | None) -> Mode:
        """Return the mode that applies to a subject."""
        if self._state.modes.get(None) is Mode.READONLY_OVERRIDE:
            return Mode.READONLY_OVERRIDE
        return _nearest(self._state.modes, subject) or Mode.READWRITE

    def level(self, subject: str | None) -> Level:
        return Level(self.config(subject)["compatibilityLevel"])

    def aliased(self, subject: str) -> str:
        """Return the subject of an alias; a name that is no alias stays as it is."""
        alias = self._state.configs.get(subject, {}).get("alias")
        return beside(subject, alias) if alias else subject

    def check_writable(self, subject: str | None) -> None:
        if self.mode(subject).is_read_only:
            context = prefix_of(split(subject).context)
            named = "null" if subject is None else subject
            raise not_permitted(f"Subject {named} in context {context} is in read-only mode")


def _nearest(table: Mapping[str | None, V], subject: str | None) -> V | None:
    """Return a subject's own value, else its context's, else the global context's."""
    if subject in table:
        return table[subject]
    context = split(subject).context
    above = None if context == DEFAULT_CONTEXT else prefix_of(context)
    if above in table:
        return table[above]
    return table.get(prefix_of(GLOBAL_CONTEXT))


def _is_top(subject: str | None) -> bool:
    return subject is None or split(subject).context == GLOBAL_CONTEXT


def _complete(config: Config) -> Config:
    return {name: config[name] for name in CONFIG_FIELDS if config.get(name) is not None}
