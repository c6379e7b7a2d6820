"""Inspect outcomes: the error of each part that failed."""

from typing import TypeVar

from ottla import Outcomes
from ottla.model.errors import ApiError, ErrorCode

K = TypeVar("K")
V = TypeVar("V")


def codes(outcomes: Outcomes[K, V]) -> dict[K, ErrorCode | type[Exception]]:
    """The codes of errors from the broker; the classes of other errors."""
    return {part: error.code if isinstance(error, ApiError) else type(error) for part, error in outcomes.failed.items()}
