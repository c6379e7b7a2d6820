"""Values of any of our types as what JSON knows, without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum

from ottla.cli.bundle.redaction import Redaction, is_secret
from ottla.client.security.secret import HIDDEN


class PlainValues:
    """Turns values into texts, numbers, lists and dictionaries. Each text goes through the redaction, and texts with
    the name of a secret are hidden.
    """

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction

    def of(self, value: object) -> object:
        if isinstance(value, str):
            return self._redaction.text(value)
        if value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, Enum):
            return value.name
        if isinstance(value, int):
            return int(value)
        if isinstance(value, bytes):
            return value.hex()
        named = _named(value)
        if named is not None:
            return {self._redaction.text(name): self._named(name, each) for name, each in named.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.of(each) for each in value]
        return self._redaction.text(str(value))

    def _named(self, name: str, value: object) -> object:
        return HIDDEN if isinstance(value, str) and value and is_secret(name) else self.of(value)


def _named(value: object) -> dict[str, object] | None:
    """The parts of a value that has parts with names."""
    if isinstance(value, Mapping):
        return {key.name if isinstance(key, Enum) else str(key): each for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return dict(value._asdict())
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    return None
