"""`Section`: declares settings and keeps them together, in the order written.

A module of settings makes one section per concern and one constant per setting:

    network = Section("Network", "Listeners and sockets.")
    SOCKET_REQUEST_MAX_BYTES = network.int32("socket.request.max.bytes", 104_857_600, "Largest request.", valid=...)

The constant is typed, so `config[SOCKET_REQUEST_MAX_BYTES]` is an `int` to the type checker. The `optional_` forms have
no default value, and are None when not set. Settings that a topic or a group may set for itself are declared by
`following`: kind, default, bounds and documentation are those of the broker setting that they fall back to.

A setting has an effect unless its declaration, or that of its section, says `no_effect=...`. A test looks for the code
that reads each of them.
"""

from collections.abc import Iterable
from typing import Any, TypedDict, TypeVar, Unpack

from ottla.model.setting import Dynamic, Importance, Required, Setting, SettingKind, SettingScope, millis_per_unit
from ottla.model.validators import Validator

T = TypeVar("T")

HIGH = Importance.HIGH
LOW = Importance.LOW
PER_BROKER = Dynamic.PER_BROKER
CLUSTER_WIDE = Dynamic.CLUSTER_WIDE


class Options(TypedDict, total=False):
    """Keyword arguments that only some settings need."""

    valid: Validator
    importance: Importance
    dynamic: Dynamic
    synonyms: tuple[str, ...]
    internal: bool
    of_plugin: bool
    scope: SettingScope
    no_effect: str


class Section:
    """The settings of one concern."""

    def __init__(self, title: str, doc: str, *, no_effect: str | None = None) -> None:
        """With `no_effect`, none of the section's settings has an effect."""
        self.title = title
        self.doc = doc
        self._no_effect = no_effect
        self.settings: dict[str, Setting[Any]] = {}

    def boolean(self, name: str, default: bool, doc: str, **options: Unpack[Options]) -> Setting[bool]:
        return self._add(name, SettingKind.BOOLEAN, default, doc, options)

    def int16(self, name: str, default: int, doc: str, **options: Unpack[Options]) -> Setting[int]:
        return self._add(name, SettingKind.SHORT, default, doc, options)

    def int32(self, name: str, default: int | Required, doc: str, **options: Unpack[Options]) -> Setting[int]:
        return self._add(name, SettingKind.INT, default, doc, options)

    def optional_int32(self, name: str, doc: str, **options: Unpack[Options]) -> Setting[int | None]:
        return self._add(name, SettingKind.INT, None, doc, options)

    def int64(self, name: str, default: int, doc: str, **options: Unpack[Options]) -> Setting[int]:
        return self._add(name, SettingKind.LONG, default, doc, options)

    def optional_int64(self, name: str, doc: str, **options: Unpack[Options]) -> Setting[int | None]:
        return self._add(name, SettingKind.LONG, None, doc, options)

    def double(self, name: str, default: float, doc: str, **options: Unpack[Options]) -> Setting[float]:
        return self._add(name, SettingKind.DOUBLE, default, doc, options)

    def text(self, name: str, default: str, doc: str, **options: Unpack[Options]) -> Setting[str]:
        return self._add(name, SettingKind.STRING, default, doc, options)

    def optional_text(self, name: str, doc: str, **options: Unpack[Options]) -> Setting[str | None]:
        return self._add(name, SettingKind.STRING, None, doc, options)

    def items(
        self, name: str, default: tuple[str, ...] | Required, doc: str, **options: Unpack[Options]
    ) -> Setting[tuple[str, ...]]:
        return self._add(name, SettingKind.LIST, default, doc, options)

    def optional_items(self, name: str, doc: str, **options: Unpack[Options]) -> Setting[tuple[str, ...] | None]:
        return self._add(name, SettingKind.LIST, None, doc, options)

    def class_name(self, name: str, default: str | None, doc: str, **options: Unpack[Options]) -> Setting[str | None]:
        return self._add(name, SettingKind.CLASS, default, doc, options)

    def password(self, name: str, doc: str, **options: Unpack[Options]) -> Setting[str | None]:
        return self._add(name, SettingKind.PASSWORD, None, doc, options)

    def following(
        self,
        name: str,
        broker: Setting[T],
        doc: str | None = None,
        *,
        before: tuple[Setting[T | None], ...] = (),
        valid: Validator | None = None,
        low: Setting[T] | None = None,
        high: Setting[T] | None = None,
    ) -> Setting[T]:
        """Declare a setting of a topic or group that falls back to a broker setting.

        The optional broker settings in `before` take precedence over `broker`, the first one most. A number of hours
        becomes milliseconds. The value of a group must lie between the broker settings `low` and `high`.
        """
        kind = before[0].kind if before else broker.kind
        default: Any = broker.default_value
        if before:
            default *= millis_per_unit(broker.name)
        setting: Setting[T] = Setting(
            name,
            kind,
            default,
            doc or broker.doc,
            validator=valid or broker.validator,
            no_effect=broker.no_effect,
            follows=(*before, broker),
            low=low,
            high=high,
        )
        return self._keep(setting)

    def _add(self, name: str, kind: SettingKind, default: T | Required, doc: str, options: Options) -> Setting[T]:
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
            of_plugin=options.get("of_plugin", False),
            scope=options.get("scope"),
            no_effect=options.get("no_effect", self._no_effect),
        )
        return self._keep(setting)

    def _keep(self, setting: Setting[T]) -> Setting[T]:
        assert setting.name not in self.settings, setting.name
        self.settings[setting.name] = setting
        return setting


def merged(sections: Iterable[Section]) -> dict[str, Setting[Any]]:
    """Return all settings of some sections by name; a name declared twice is a bug."""
    settings: dict[str, Setting[Any]] = {}
    for section in sections:
        assert not settings.keys() & section.settings.keys(), section.title
        settings |= section.settings
    return settings
