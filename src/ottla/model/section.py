"""`Section`: declares settings and keeps them together, in the order written.

A module of settings makes one section per concern and one constant per setting:

    network = Section("Network", "Listeners and sockets.")
    SOCKET_REQUEST_MAX_BYTES = network.int32("socket.request.max.bytes", 104_857_600, "Largest request.", valid=...)

The constant is typed, so `config.get(SOCKET_REQUEST_MAX_BYTES)` is an `int` to the type checker. The `optional_` forms
have no default value, and give None when nobody set them.
"""

from collections.abc import Iterable
from typing import Any, TypedDict, TypeVar, Unpack

from ottla.model.honoured import HONOURED
from ottla.model.setting import Dynamic, Importance, Kind, Required, Setting
from ottla.model.validators import Validator

T = TypeVar("T")

HIGH = Importance.HIGH
LOW = Importance.LOW
PER_BROKER = Dynamic.PER_BROKER
CLUSTER_WIDE = Dynamic.CLUSTER_WIDE


class Options(TypedDict, total=False):
    """What only some settings need to say."""

    valid: Validator
    importance: Importance
    dynamic: Dynamic
    synonyms: tuple[str, ...]
    internal: bool


class Section:
    """Settings of one concern."""

    def __init__(self, title: str, doc: str) -> None:
        self.title = title
        self.doc = doc
        self.settings: dict[str, Setting[Any]] = {}

    def boolean(self, name: str, default: bool, doc: str, **options: Unpack[Options]) -> Setting[bool]:
        return self._add(name, Kind.BOOLEAN, default, doc, options)

    def int16(self, name: str, default: int, doc: str, **options: Unpack[Options]) -> Setting[int]:
        return self._add(name, Kind.SHORT, default, doc, options)

    def int32(self, name: str, default: int | Required, doc: str, **options: Unpack[Options]) -> Setting[int]:
        return self._add(name, Kind.INT, default, doc, options)

    def optional_int32(self, name: str, doc: str, **options: Unpack[Options]) -> Setting[int | None]:
        return self._add(name, Kind.INT, None, doc, options)

    def int64(self, name: str, default: int, doc: str, **options: Unpack[Options]) -> Setting[int]:
        return self._add(name, Kind.LONG, default, doc, options)

    def optional_int64(self, name: str, doc: str, **options: Unpack[Options]) -> Setting[int | None]:
        return self._add(name, Kind.LONG, None, doc, options)

    def double(self, name: str, default: float, doc: str, **options: Unpack[Options]) -> Setting[float]:
        return self._add(name, Kind.DOUBLE, default, doc, options)

    def text(self, name: str, default: str, doc: str, **options: Unpack[Options]) -> Setting[str]:
        return self._add(name, Kind.STRING, default, doc, options)

    def optional_text(self, name: str, doc: str, **options: Unpack[Options]) -> Setting[str | None]:
        return self._add(name, Kind.STRING, None, doc, options)

    def items(
        self, name: str, default: tuple[str, ...] | Required, doc: str, **options: Unpack[Options]
    ) -> Setting[tuple[str, ...]]:
        return self._add(name, Kind.LIST, default, doc, options)

    def optional_items(self, name: str, doc: str, **options: Unpack[Options]) -> Setting[tuple[str, ...] | None]:
        return self._add(name, Kind.LIST, None, doc, options)

    def class_name(self, name: str, default: str | None, doc: str, **options: Unpack[Options]) -> Setting[str | None]:
        return self._add(name, Kind.CLASS, default, doc, options)

    def password(self, name: str, doc: str, **options: Unpack[Options]) -> Setting[str | None]:
        return self._add(name, Kind.PASSWORD, None, doc, options)

    def _add(self, name: str, kind: Kind, default: T | Required, doc: str, options: Options) -> Setting[T]:
        assert name not in self.settings, name
        setting = Setting(
            name,
            kind,
            default,
            doc,
            validator=options.get("valid"),
            importance=options.get("importance", Importance.MEDIUM),
            dynamic=options.get("dynamic", Dynamic.READ_ONLY),
            synonyms=options.get("synonyms", ()),
            internal=options.get("internal", False),
            honoured=name in HONOURED,
        )
        self.settings[name] = setting
        return setting


def merged(sections: Iterable[Section]) -> dict[str, Setting[Any]]:
    """Return all settings of some sections by name; a name declared twice is a mistake of ours."""
    settings: dict[str, Setting[Any]] = {}
    for section in sections:
        assert not settings.keys() & section.settings.keys(), section.title
        settings |= section.settings
    return settings
