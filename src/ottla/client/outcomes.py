"""Outcomes: the result of each part of an operation over several parts (partitions, topics, groups, nodes).

Kafka's answers carry an error per part, and a request to one broker may fail while another one succeeds. Such an
operation does not succeed or fail as a whole.

Rules:
- Every part that was asked for is either in `found` or in `failed`; a failed part does not affect the others.
- Errors of the broker (`ApiError`) and missing answers (`ClientError`) are outcomes. Any other exception is a bug, and
  is raised as it is.
- A request that failed as a whole is the outcome of each of its parts.
- `all` is for callers that need every part: it returns the values, or raises the first failure. The error keeps its
  type and its code; its text names the part, and says how many others failed.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ottla.client.errors import ClientError, error_code
from ottla.model.errors import ApiError, ErrorCode

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")

_SILENCE = "the broker's answer does not name it"


@dataclass(frozen=True, slots=True)
class Outcomes(Generic[K, V]):
    """Values and failures by part."""

    found: dict[K, V] = field(default_factory=dict)
    failed: dict[K, Exception] = field(default_factory=dict)

    def all(self) -> dict[K, V]:
        """Return the values; raise the first failure if there is one."""
        for part, error in self.failed.items():
            raise named(error, part, len(self.failed) - 1)
        return self.found

    def answered(self) -> dict[K, V]:
        """Return the values without the parts that a broker refused; raise if no answer came for a part, because that
        does not mean that there is nothing.
        """
        silent: dict[K, Exception] = {
            part: error for part, error in self.failed.items() if isinstance(error, ClientError)
        }
        return Outcomes(self.found, silent).all()

    def add(self, other: "Outcomes[K, V]") -> None:
        """Take over the outcomes of other parts, or later outcomes of the same parts."""
        for part, value in other.found.items():
            self.failed.pop(part, None)
            self.found[part] = value
        for part, error in other.failed.items():
            self.found.pop(part, None)
            self.failed[part] = error


async def outcomes_of(work: Mapping[K, Awaitable[V]]) -> Outcomes[K, V]:
    """Await all of this work in parallel; the caller makes sure that it is not too much at once."""
    results = await asyncio.gather(*work.values(), return_exceptions=True)
    outcomes: Outcomes[K, V] = Outcomes()
    for part, result in zip(work, results, strict=True):
        if isinstance(result, (ApiError, ClientError)):
            outcomes.failed[part] = result
        elif isinstance(result, BaseException):
            raise result
        else:
            outcomes.found[part] = result
    return outcomes


def told(
    parts: Iterable[K],
    answers: Iterable[tuple[K, V, int, str | None]],
    silence: str = _SILENCE,
) -> Outcomes[K, V]:
    """Return the outcome of every part from the contents of an answer: (part, value, error code, message). A part that
    the answer does not name has failed.
    """
    unnamed = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, silence)
    outcomes: Outcomes[K, V] = Outcomes(failed=dict.fromkeys(parts, unnamed))
    for part, value, code, message in answers:
        if code:
            outcomes.failed[part] = ApiError(error_code(code), message)
        else:
            outcomes.failed.pop(part, None)
            outcomes.found[part] = value
    return outcomes


async def told_by(
    asking: Awaitable[R],
    parts: Collection[K],
    read: Callable[[R], Iterable[tuple[K, V, int, str | None]]],
    silence: str = _SILENCE,
) -> Outcomes[K, V]:
    """Await one request for all of these parts and return their outcomes; if it fails as a whole, each part has
    failed.
    """
    try:
        return told(parts, read(await asking), silence)
    except (ApiError, ClientError) as error:
        return Outcomes(failed=dict.fromkeys(parts, error))


def named(error: Exception, part: object, others: int) -> Exception:
    """Return the error with a text that names the part and the number of other failed parts."""
    text = error.text if isinstance(error, ApiError) else str(error)
    told = text if _names(text, str(part)) else f"{part}: {text}"
    if others:
        told += f" (and {others} other{'s' if others > 1 else ''} failed)"
    if told == text or not isinstance(error, (ApiError, ClientError)):
        return error
    # A copy: the outcome itself must not change, because it may be raised a second time.
    copy = type(error).__new__(type(error))
    copy.__dict__.update(error.__dict__)
    if isinstance(copy, ApiError):
        copy.message, copy.args = told, (copy.code, told)
    else:
        copy.args = (told,)
    copy.__cause__ = error
    return copy


def _names(text: str, part: str) -> bool:
    """Return whether the text names this part, and not another part whose name begins or ends like it."""
    return re.search(rf"(?<![\w.-]){re.escape(part)}(?![\w-]|\.\w)", text) is not None
