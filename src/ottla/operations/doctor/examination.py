"""Make the checks of several subjects and collect what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from ottla.model.errors import ApiError
from ottla.operations.doctor.check import Check, HealthLevel, UnseenError

S = TypeVar("S")


class Diagnosis(NamedTuple):
    """Something that is wrong with a subject."""

    level: HealthLevel
    check: str
    what: str
    why: str
    do: str


class Unmade(NamedTuple):
    """A check that could not be made."""

    check: str
    subject: str
    reason: str


class Examination:
    """The outcome of all checks. `advance` is told the title of each check before it is made."""

    def __init__(self, skipped: Iterable[str] = (), advance: Callable[[str], None] | None = None) -> None:
        self.found: list[Diagnosis] = []
        self.fine: list[tuple[str, str]] = []  # id and title of checks that found nothing, with their subject
        self.unmade: list[Unmade] = []
        self._skipped = frozenset(skipped)
        self._advance = advance

    def make(self, checks: Iterable[Check[S]], subject: S, name: str) -> None:
        """Make these checks of a subject."""
        for check in checks:
            if check.id not in self._skipped:
                if self._advance is not None:
                    self._advance(f"{name}: {check.title}")
                self._make(check, subject, name)

    def _make(self, check: Check[S], subject: S, name: str) -> None:
        try:
            symptoms = list(check.look(subject))
        except UnseenError as error:
            self.unmade.append(Unmade(check.id, name, str(error)))
            return
        except (ApiError, OSError) as error:
            self.unmade.append(Unmade(check.id, name, f"it failed: {error}"))
            return
        for each in symptoms:
            level = check.level if each.level is None else each.level
            self.found.append(
                Diagnosis(level, check.id, f"{name}: {each.what}", each.why or check.why, each.do or check.do)
            )
        if not symptoms:
            self.fine.append((check.id, name))

    @property
    def level(self) -> HealthLevel:
        """The worst level that was found."""
        return max((each.level for each in self.found), default=HealthLevel.FINE)

    def sorted(self) -> list[Diagnosis]:
        """What was found, the worst first."""
        return sorted(self.found, key=lambda each: -each.level)
