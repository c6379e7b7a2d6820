"""`Config`: the typed, immutable view of some settings that all readers use.

A config is a layer of values over an optional base: what it does not set itself comes from the base, and at the bottom
from the defaults. So ten thousand topics without values of their own share one object, and a topic with three of them
costs three entries.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, overload

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.setting import REQUIRED, Setting

T = TypeVar("T")

_LISTENER_PREFIX = "listener.name."
# Settings behind these prefixes belong to plug-ins that we do not know.
_FOREIGN_PREFIXES = ("rsm.config.", "rlmm.config.", "config.providers.")


class Config:
    """Resolved settings of one broker, topic, group or subscription."""

    __slots__ = ("_base", "_settings", "_values", "problems", "texts")

    def __init__(
        self,
        values: Mapping[str, str],
        settings: Mapping[str, Setting[Any]],
        base: "Config | None" = None,
        *,
        lenient: bool = False,
    ) -> None:
        """Parse `values`, ignoring unknown names.

        A bad value raises INVALID_CONFIG, or with `lenient` is left out and told in `problems`: a value that is
        already in the metadata log (perhaps of another version) must not stop the broker.
        """
        self._settings = settings
        self._base = base
        self._values: dict[str, Any] = {}
        self.texts: Mapping[str, str] = values
        self.problems: tuple[str, ...] = ()
        for name, text in values.items():
            setting = settings.get(name)
            if setting is None:
                continue
            try:
                self._values[name] = setting.parse(text)
            except ApiError as error:
                if not lenient:
                    raise
                self.problems += (error.text,)

    @classmethod
    def of_values(
        cls, values: Mapping[str, Any], settings: Mapping[str, Setting[Any]], base: "Config | None" = None
    ) -> "Config":
        """Make a config of values that are parsed already."""
        config = cls({}, settings, base)
        config._values.update(values)
        return config

    @overload
    def get(self, setting: Setting[T]) -> T: ...
    @overload
    def get(self, setting: str) -> Any: ...
    def get(self, setting: Setting[T] | str) -> T | Any:
        """Return the value of a setting: set here, set in the base, or its default."""
        value = self.find(setting)
        if value is REQUIRED:
            name = setting if isinstance(setting, str) else setting.name
            problem = f'Missing required configuration "{name}" which has no default value.'
            raise ApiError(ErrorCode.INVALID_CONFIG, problem)
        return value

    def find(self, setting: Setting[T] | str) -> T | Any:
        """Do as `get`, but return `REQUIRED` for a required setting that nobody gave."""
        name = setting if isinstance(setting, str) else setting.name
        layer: Config | None = self
        while layer is not None:
            if name in layer._values:
                return layer._values[name]
            layer = layer._base
        return self.setting(name).default

    def is_set(self, setting: Setting[Any] | str) -> bool:
        """Say whether somebody set it, here or in the base, though perhaps to its default."""
        name = setting if isinstance(setting, str) else setting.name
        layer: Config | None = self
        while layer is not None:
            if name in layer.texts and name in layer._values:
                return True
            layer = layer._base
        return False

    def setting(self, name: str) -> Setting[Any]:
        """Return the declaration of a name that this config knows; KeyError otherwise."""
        layer: Config | None = self
        while layer is not None:
            if name in layer._settings:
                return layer._settings[name]
            layer = layer._base
        raise KeyError(name)


def base_name(name: str) -> str | None:
    """Return `<setting>` of `listener.name.<listener>.[<mechanism>.]<setting>`, or None for any other name.

    Which part is the mechanism cannot be seen from the name alone, so both readings are left to `declared`.
    """
    if not name.startswith(_LISTENER_PREFIX):
        return None
    _, _, rest = name[len(_LISTENER_PREFIX) :].partition(".")
    return rest or None


def declared(name: str, settings: Mapping[str, Setting[Any]]) -> Setting[Any] | None:
    """Find the declaration behind a name, also when it carries a listener (and mechanism) prefix."""
    if name in settings:
        return settings[name]
    rest = base_name(name)
    if rest is None:
        return None
    return settings.get(rest) or settings.get(rest.partition(".")[2])


def without_effect(values: Mapping[str, str], settings: Mapping[str, Setting[Any]]) -> list[str]:
    """List the names whose values are other than the default, and change nothing here."""
    found = []
    for name, text in values.items():
        setting = declared(name, settings)
        if setting is not None and not setting.honoured and setting.render(setting.default) != text.strip():
            found.append(name)
    return found


def unknown(values: Iterable[str], settings: Mapping[str, Setting[Any]]) -> list[tuple[str, str | None]]:
    """List the names that mean nothing here, each with the known name it looks like most (or None)."""
    strangers = [name for name in values if declared(name, settings) is None and not name.startswith(_FOREIGN_PREFIXES)]
    if not strangers:
        return []
    from difflib import get_close_matches  # few nodes need it, and it would be loaded by every start

    return [(name, next(iter(get_close_matches(name, settings, n=1, cutoff=0.75)), None)) for name in strangers]
