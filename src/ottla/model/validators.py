"""Checks on the value of one setting.

A validator takes the setting's name and the parsed value and returns what is wrong with the value, or None. The wording
is Kafka's form, because clients see it: `Invalid value <value> for configuration <name>: <problem>`. `bounds` is the
short form that the generated documentation shows.
"""

import re
from typing import Any, NamedTuple, Protocol

from ottla.model.names import is_reserved, topic_name_problem


def invalid(name: str, shown: object, problem: str) -> str:
    """Return the message for a problem with a value, in Kafka's form."""
    return f"Invalid value {shown} for configuration {name}: {problem}"


class Validator(Protocol):
    """A check on one value."""

    @property
    def bounds(self) -> str:
        """The allowed values, in short."""

    def __call__(self, name: str, value: Any, /) -> str | None:
        """Return what is wrong with the value, or None."""


class Range(NamedTuple):
    """A number from `low` to `high`, both included; None leaves that side open."""

    low: float | None
    high: float | None = None

    @property
    def bounds(self) -> str:
        return f"[{'' if self.low is None else self.low},...{'' if self.high is None else f',{self.high}'}]"

    def __call__(self, name: str, value: Any, /) -> str | None:
        if self.low is not None and value < self.low:
            return invalid(name, value, f"Value must be at least {self.low}")
        if self.high is not None and value > self.high:
            return invalid(name, value, f"Value must be no more than {self.high}")
        return None


def at_least(low: float) -> Range:
    """Allow `low` and everything above."""
    return Range(low)


def between(low: float, high: float) -> Range:
    """Allow `low` to `high`, both included."""
    return Range(low, high)


class OneOf(NamedTuple):
    """One of the strings in `allowed`."""

    allowed: tuple[str, ...]
    ignore_case: bool = False

    @property
    def bounds(self) -> str:
        return ", ".join(self.allowed)

    def __call__(self, name: str, value: Any, /) -> str | None:
        if self.ignore_case:
            if value.upper() in (allowed.upper() for allowed in self.allowed):
                return None
            return invalid(name, value, f"String must be one of (case insensitive): {', '.join(self.allowed)}")
        if value in self.allowed:
            return None
        return invalid(name, value, f"String must be one of: {', '.join(self.allowed)}")


class Items(NamedTuple):
    """A list of non-empty strings, each one of `allowed` unless that is empty."""

    allowed: tuple[str, ...] = ()
    empty: bool = True

    @property
    def bounds(self) -> str:
        return ", ".join(self.allowed) if self.allowed else "" if self.empty else "not empty"

    def __call__(self, name: str, value: Any, /) -> str | None:
        if not value and not self.empty:
            known = f"[{', '.join(self.allowed)}]" if self.allowed else "any non-empty value"
            return f"Configuration '{name}' must not be empty. Valid values include: {known}"
        for item in value:
            if not item:
                return f"Configuration '{name}' values must not be empty."
            if self.allowed and item not in self.allowed:
                return invalid(name, item, f"String must be one of: {', '.join(self.allowed)}")
        return None


class NonEmpty(NamedTuple):
    """A string of at least one character."""

    bounds: str = "not empty"

    def __call__(self, name: str, value: Any, /) -> str | None:
        return invalid(name, value, "String must be non-empty") if not value else None


class Regex(NamedTuple):
    """A regular expression in RE2's syntax; empty for none."""

    bounds: str = "a regular expression (RE2), or empty"

    def __call__(self, name: str, value: str, /) -> str | None:
        if not value:
            return None
        from ottla.model.re2.match import pattern_of  # few nodes need it
        from ottla.model.re2.nodes import RegexError

        try:
            pattern_of(value)
        except RegexError as error:
            return invalid(name, value, f"it is no regular expression: {error}")
        return None


class DeadLetterTopic(NamedTuple):
    """The name of a topic that may take dead letters: any but `_schemas` and those that begin with `__`; empty
    for none.
    """

    bounds: str = "the name of a topic, or empty"

    def __call__(self, name: str, value: str, /) -> str | None:
        if not value:
            return None
        problem = "internal topics take no dead letters" if is_reserved(value) else topic_name_problem(value)
        return None if problem is None else invalid(name, value, f"Topic name is invalid: {problem}")


class GzipLevel(NamedTuple):
    """zlib's levels, or -1 for its default."""

    bounds: str = "[1,...,9] or -1"

    def __call__(self, name: str, value: Any, /) -> str | None:
        if value == -1 or 1 <= value <= 9:
            return None
        return invalid(name, value, "Value must be between 1 and 9 or equal to -1")


class ThrottledReplicas(NamedTuple):
    """`*` or a list of partition:broker."""

    bounds: str = "* or partition:broker,..."

    def __call__(self, name: str, value: Any, /) -> str | None:
        if not value or value == ("*",) or all(re.fullmatch(r"[0-9]+:[0-9]+", item) for item in value):
            return None
        shape = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        problem = f"{name} must be the literal '*' or a list of replicas in the following format: {shape}"
        return invalid(name, f"[{', '.join(value)}]", problem)


class Voters(NamedTuple):
    """A list of id@host:port."""

    bounds: str = "id@host:port,..."

    def __call__(self, name: str, value: Any, /) -> str | None:
        if all(re.fullmatch(r"[0-9]+@(\[[^\]]+\]|[^:@\s]+):[0-9]{1,5}", item) for item in value):
            return None
        return f"Invalid configuration value for {name}. Each entry should be in the form `{{id}}@{{host}}:{{port}}`."


class HostPorts(NamedTuple):
    """A list of host:port."""

    bounds: str = "host:port,..."

    def __call__(self, name: str, value: Any, /) -> str | None:
        for item in value:
            if re.fullmatch(r"(\[[^\]]+\]|[^:@\s]+):[0-9]{1,5}", item) is None:
                return (
                    f"Failed to parse host name from {item} for the configuration {name}. "
                    'Each entry should be in the form "{host}:{port}"'
                )
        return None


class HostCounts(NamedTuple):
    """A string of host:count pairs; hosts may be IPv6 addresses, so the last colon separates the two."""

    bounds: str = "host:count,..."

    def __call__(self, name: str, value: Any, /) -> str | None:
        for item in re.split(r"\s*,\s*", value) if value else ():
            if re.fullmatch(r".+:\s*[0-9]{1,10}", item) is None:
                return invalid(name, value, "Each entry should be in the form {host}:{count}")
        return None


_DURATION = re.compile(
    r"\+?P(?!$)(\+?\d+D)?(T(?=\+?[\d.])(\+?\d+H)?(\+?\d+M)?(\+?\d+(\.\d{0,9})?S)?)?", re.ASCII | re.IGNORECASE
)


class ShareOffsetReset(NamedTuple):
    """Where a share group starts: `earliest`, `latest` or a duration back from now."""

    bounds: str = "latest, earliest, by_duration:PnDTnHnMn.nS"

    def __call__(self, name: str, value: Any, /) -> str | None:
        if value in ("earliest", "latest"):
            return None
        word, _, duration = value.partition(":")
        if word == "by_duration" and _DURATION.fullmatch(duration):
            return None
        shape = "either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'"
        return invalid(name, value, f"Invalid value `{value}` for configuration {name}. The value must be {shape}.")
