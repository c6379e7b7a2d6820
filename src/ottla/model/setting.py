"""`Setting[T]`: one configuration key, declared once, with everything that files, DescribeConfigs and the docs need.

Rules:
- Names, kinds, defaults, importance and the way of changing are Kafka's; the `doc` sentences are our own.
- `parse` takes the text of a file or a client and either returns the typed value or raises INVALID_CONFIG with a
  message of Kafka's form; `render` is the inverse and gives the text DescribeConfigs shows (None for "no value").
- A default of `REQUIRED` means there is none: reading the setting without a value is an error.
- A setting is its own key (`config[SETTING]`): two settings are never equal, even if they have the same name, as
  `compression.type` of a topic and of a broker.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, Final, Generic, TypeVar

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.validators import Validator, invalid

T_co = TypeVar("T_co", covariant=True)


class SettingKind(IntEnum):
    """The type of a value; the numbers are those of DescribeConfigs."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Importance(Enum):
    """Kafka's importance: how likely an operator needs to change the setting."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Dynamic(Enum):
    """How a broker setting may be changed while the broker runs."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class SettingScope(Enum):
    """What may have a value of its own for a setting, under the name `<setting>@<tenant>` or `<setting>@<prefix>`."""

    TENANT = "tenant"
    TOPIC_PREFIX = "prefix of topics"


class Required(Enum):
    """Marks a setting without a default."""

    REQUIRED = "required"


REQUIRED: Final = Required.REQUIRED
# The value of a setting that bounds nothing.
UNLIMITED: Final = -1
# The `no_effect` reason of a setting whose feature does not exist yet.
NOT_YET: Final = "not yet"

_INT_BITS = {SettingKind.SHORT: 16, SettingKind.INT: 32, SettingKind.LONG: 64}
_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
# Java's decimal literals, with the suffix it tolerates. (Java also accepts hexadecimal literals; they are not
# supported.)
_DOUBLE = re.compile(r"([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[fFdD]?")


@dataclass(frozen=True, slots=True, eq=False)
class Setting(Generic[T_co]):
    """One configuration key."""

    name: str
    kind: SettingKind
    default: T_co | Required
    doc: str
    validator: Validator | None = None
    importance: Importance = Importance.MEDIUM
    dynamic: Dynamic = Dynamic.READ_ONLY
    synonyms: tuple[str, ...] = ()  # broker settings: names with the same meaning, in order of precedence
    internal: bool = False  # DescribeConfigs lists it only when it has been set
    of_plugin: bool = False  # a plugin reads it in Kafka, so DescribeConfigs treats it like an unknown setting
    scope: SettingScope | None = None  # what may have a value of its own (`model/tenancy/scoped.py`)
    no_effect: str | None = None  # why a value changes nothing (`NOT_YET` or a sentence); None: it has an effect
    # For settings of topics and groups:
    follows: "tuple[Setting[T_co | None], ...]" = ()  # broker settings it falls back to, in order of precedence
    low: "Setting[T_co] | None" = None  # broker setting with the smallest value that is allowed
    high: "Setting[T_co] | None" = None  # broker setting with the largest value that is allowed

    @property
    def honoured(self) -> bool:
        """Whether a value has an effect; if not, it is only accepted, checked and shown."""
        return self.no_effect is None

    @property
    def default_value(self) -> T_co:
        """The default of a setting that has one."""
        assert not isinstance(self.default, Required), self.name
        return self.default

    @property
    def sensitive(self) -> bool:
        """Whether the value must never be shown."""
        return self.kind is SettingKind.PASSWORD

    def parse(self, text: str) -> T_co:
        """Turn text into a checked value, or raise INVALID_CONFIG."""
        value: T_co = _PARSERS[self.kind](self.name, text, self.kind)
        self.check(value)
        return value

    def check(self, value: object) -> None:
        """Raise INVALID_CONFIG unless the setting allows the value."""
        problem = self.validator(self.name, value) if self.validator is not None and value is not None else None
        if problem is not None:
            raise ApiError(ErrorCode.INVALID_CONFIG, problem)

    def render(self, value: object) -> str | None:
        """Return the text of a value; None for no value."""
        return render(value)


def render(value: object) -> str | None:
    """Return the text of a parsed value, in Kafka's format."""
    if value is None or value is REQUIRED:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return java_double(value)
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)


def java_double(value: float) -> str:
    """Return the text of a double as Java's `Double.toString` writes it, because clients compare it."""
    if value != value:  # NaN is the only number unequal to itself
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    from decimal import Decimal  # imported here because few settings have such numbers

    number = Decimal(repr(value)).normalize()
    first, *rest = map(str, number.as_tuple().digits)
    return f"{'-' if value < 0 else ''}{first}.{''.join(rest) or '0'}E{number.adjusted()}"


def millis_per_unit(name: str) -> int:
    """Return the milliseconds of the unit that a setting's name ends with."""
    return 3_600_000 if name.endswith(".hours") else 60_000 if name.endswith(".minutes") else 1


def parse_list(text: str) -> tuple[str, ...]:
    """Split at commas, as Kafka does: blanks around items are dropped, repeated items count once."""
    text = text.strip()
    return tuple(dict.fromkeys(re.split(r"\s*,\s*", text))) if text else ()


def _parse_boolean(name: str, text: str, kind: SettingKind) -> bool:
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise ApiError(ErrorCode.INVALID_CONFIG, invalid(name, text, "Expected value to be either true or false"))
    return word == "true"


def _parse_integer(name: str, text: str, kind: SettingKind) -> int:
    word = text.strip()
    limit = 1 << (_INT_BITS[kind] - 1)
    if _INTEGER.fullmatch(word) is None or not -limit <= int(word) < limit:
        raise ApiError(ErrorCode.INVALID_CONFIG, invalid(name, text, f"Not a number of type {kind.name}"))
    return int(word)


def _parse_double(name: str, text: str, kind: SettingKind) -> float:
    match = _DOUBLE.fullmatch(text.strip())
    if match is None:
        raise ApiError(ErrorCode.INVALID_CONFIG, invalid(name, text, f"Not a number of type {kind.name}"))
    return float(match[1])


def _parse_text(name: str, text: str, kind: SettingKind) -> str:
    return text.strip()


def _parse_list(name: str, text: str, kind: SettingKind) -> tuple[str, ...]:
    return parse_list(text)


_PARSERS: dict[SettingKind, Callable[[str, str, SettingKind], Any]] = {
    SettingKind.BOOLEAN: _parse_boolean,
    SettingKind.STRING: _parse_text,
    SettingKind.INT: _parse_integer,
    SettingKind.SHORT: _parse_integer,
    SettingKind.LONG: _parse_integer,
    SettingKind.DOUBLE: _parse_double,
    SettingKind.LIST: _parse_list,
    SettingKind.CLASS: _parse_text,
    SettingKind.PASSWORD: _parse_text,
}
