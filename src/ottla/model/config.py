"""`Config`: the typed, immutable view of some settings that all readers use.

A setting's constant is the only key: `config[NUM_PARTITIONS]` is an `int` to the type checker. Files, clients and
messages use names; they look up the constant first (`BROKER_SETTINGS[name]`).

A config is a layer of values over an optional base: settings without a value of their own take it from the base; the
lowest layer holds the defaults. So ten thousand topics without values of their own share one object, and a topic with
three of them costs three entries.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.setting import REQUIRED, Setting

T = TypeVar("T")

LISTENER_PREFIX = "listener.name."
# Separates the name of a setting from the tenant or prefix that it is set for (`model/tenancy/scoped.py`).
SCOPE_MARK = "@"
# Settings with these prefixes belong to plug-ins that Ottla does not know.
_FOREIGN_PREFIXES = ("rsm.config.", "rlmm.config.", "config.providers.")


class Config:
    """Resolved settings of one broker, topic, group or subscription."""

    __slots__ = ("_base", "_values", "problems", "texts")

    def __init__(
        self,
        values: Mapping[str, str],
        settings: Mapping[str, Setting[Any]],
        base: "Config | None" = None,
        *,
        lenient: bool = False,
    ) -> None:
        """Parse `values`, ignoring unknown names.

        A bad value raises INVALID_CONFIG. With `lenient` it is left out instead and reported in `problems`: a value
        that is already in the metadata log (perhaps of another version) must not stop the broker.
        """
        self._base = base
        self._values: dict[Setting[Any], Any] = {}
        self.texts: Mapping[str, str] = values
        self.problems: tuple[str, ...] = ()
        if base is None:
            self._values = {each: each.default for each in settings.values() if each.default is not REQUIRED}
        for name, text in values.items():
            setting = settings.get(name)
            if setting is None:
                continue
            try:
                self._values[setting] = setting.parse(text)
            except ApiError as error:
                if not lenient:
                    raise
                self.problems += (error.text,)

    @classmethod
    def of_values(cls, values: Mapping[Setting[Any], Any], base: "Config") -> "Config":
        """Make a config from values that are parsed already."""
        config = cls({}, {}, base)
        config._values.update(values)
        return config

    def __getitem__(self, setting: Setting[T]) -> T:
        """Return the value of a setting: set here, set in the base, or its default.

        Raise INVALID_CONFIG if the setting is required and has no value, KeyError if it does not belong to this kind of
        config.
        """
        layer = self
        while setting not in layer._values:
            base = layer._base
            if base is None:
                raise _no_value(setting)
            layer = base
        value: T = layer._values[setting]
        return value

    def __contains__(self, setting: Setting[Any]) -> bool:
        """Say whether the setting has a value: every setting has one unless it is required and not given."""
        layer: Config | None = self
        while layer is not None:
            if setting in layer._values:
                return True
            layer = layer._base
        return False

    def is_set(self, setting: Setting[Any]) -> bool:
        """Say whether the setting was set explicitly, here or in the base, even if to its default."""
        layer: Config | None = self
        while layer is not None:
            if setting.name in layer.texts and setting in layer._values:
                return True
            layer = layer._base
        return False


def _no_value(setting: Setting[Any]) -> Exception:
    if setting.default is not REQUIRED:
        return KeyError(setting.name)
    problem = f'Missing required configuration "{setting.name}" which has no default value.'
    return ApiError(ErrorCode.INVALID_CONFIG, problem)


def base_name(name: str) -> str | None:
    """Return `<setting>` of `listener.name.<listener>.[<mechanism>.]<setting>`, or None for any other name.

    The name alone does not show whether a part is the mechanism, so `declared` tries both readings.
    """
    if not name.startswith(LISTENER_PREFIX):
        return None
    _, _, rest = name[len(LISTENER_PREFIX) :].partition(".")
    return rest or None


def declared(name: str, settings: Mapping[str, Setting[Any]]) -> Setting[Any] | None:
    """Find the declaration of a setting by its name, also with a listener (and mechanism) prefix, or for one scope."""
    if name in settings:
        return settings[name]
    whole, at, _ = name.partition(SCOPE_MARK)
    if at:
        scoped = settings.get(whole)
        return scoped if scoped is not None and scoped.scope is not None else None
    rest = base_name(name)
    if rest is None:
        return None
    return settings.get(rest) or settings.get(rest.partition(".")[2])


def without_effect(values: Mapping[str, str], settings: Mapping[str, Setting[Any]]) -> list[str]:
    """List the names of settings that have no effect here and whose values differ from the default."""
    found = []
    for name, text in values.items():
        setting = declared(name, settings)
        if setting is not None and not setting.honoured and setting.render(setting.default) != text.strip():
            found.append(name)
    return found


def unknown(values: Iterable[str], settings: Mapping[str, Setting[Any]]) -> list[tuple[str, str | None]]:
    """List the names that are no known setting, each with the most similar known name (or None)."""
    strangers = [name for name in values if declared(name, settings) is None and not name.startswith(_FOREIGN_PREFIXES)]
    if not strangers:
        return []
    from difflib import get_close_matches  # imported here because few nodes need it and a start should be quick

    return [(name, next(iter(get_close_matches(name, settings, n=1, cutoff=0.75)), None)) for name in strangers]
