"""Parsers of the values of options. Each returns the typed value, or raises OptionError."""

import re
from collections.abc import Callable

_UNITS_MS = {"": 1, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


class OptionError(ValueError):
    """An option that does not exist, has an invalid value, or contradicts another option."""


def text(value: str) -> str:
    """The value without the blanks around it."""
    return value.strip()


def whole(value: str) -> int:
    """A whole number."""
    try:
        return int(value.strip())
    except ValueError:
        raise OptionError(f"a whole number is expected, not {value!r}") from None


def positive(value: str) -> int:
    """A whole number above zero."""
    number = whole(value)
    if number <= 0:
        raise OptionError(f"must be positive, not {value!r}")
    return number


def boolean(value: str) -> bool:
    """true or false."""
    lowered = value.strip().lower()
    if lowered not in ("true", "false"):
        raise OptionError(f"true or false is expected, not {value!r}")
    return lowered == "true"


def one_of(*choices: str) -> Callable[[str], str]:
    """Make a parser that accepts one of these words, in any case."""

    def parse(value: str) -> str:
        lowered = value.strip().lower()
        if lowered not in choices:
            raise OptionError(f"one of {', '.join(choices)} is expected, not {value!r}")
        return lowered

    return parse


def duration_ms(value: str) -> int:
    """A time as Spark writes it: `250ms`, `15m`, or a number of milliseconds."""
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", value.strip().lower())
    if found is None or found[2] not in _UNITS_MS:
        raise OptionError(f"a time such as 500ms, 30s or 15m is expected, not {value!r}")
    return int(found[1]) * _UNITS_MS[found[2]]


def names(value: str) -> tuple[str, ...]:
    """Names with commas between them."""
    return tuple(part.strip() for part in value.split(",") if part.strip())


def not_empty(value: str) -> str:
    """A text that is not empty."""
    stripped = value.strip()
    if not stripped:
        raise OptionError("must not be empty")
    return stripped


def run_and_batch(value: str) -> tuple[str, int]:
    """The id of a sink's run and the number of one of its batches: `0a1b-...:17`."""
    run, colon, batch = value.strip().rpartition(":")
    if not (run and colon and batch.isdecimal()):
        raise OptionError(f"<run>:<batch> is expected, as the error that asks for it says, not {value!r}")
    return run, int(batch)
