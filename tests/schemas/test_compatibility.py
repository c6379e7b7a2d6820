"""The seven levels: which versions are asked, in which direction, and what is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from ottla.schemas.compatibility import Level, check, check_lazily
from ottla.schemas.schema import Incompatibility, Parsed


@dataclass(frozen=True)
class Reads:
    """A schema that reads what the named ones wrote."""

    name: str
    reads: str = ""
    whole: bool = False

    @property
    def canonical(self) -> str:
        return self.name

    @property
    def normalized(self) -> str:
        return self.name

    def incompatibilities(self, writer: Parsed) -> Sequence[Incompatibility]:
        if writer.canonical in self.reads:
            return []
        said = f"{self.name} of the %s, {writer.canonical} of the %s"
        return [Incompatibility("KIND", "/", f"{{errorType:'KIND', {said}}}" if self.whole else said)]


class Other(Reads):
    """A schema of another type."""


def message(one: str, one_is: str, two: str, two_is: str) -> str:
    return f'{{errorType:"KIND", description:"{one} of the {one_is}, {two} of the {two_is}"}}'


def about(version: int, name: str) -> list[str]:
    return [f"{{oldSchemaVersion: {version}}}", f"{{oldSchema: '{name}'}}"]


NEW_FAILS_TO_READ = {"b": message("n", "new", "b", "old"), "a": message("n", "new", "a", "old")}
IS_NOT_READ_BY = {"b": message("b", "old", "n", "new"), "a": message("a", "old", "n", "new")}
BAD_B, BAD_A = [NEW_FAILS_TO_READ["b"], *about(2, "b")], [NEW_FAILS_TO_READ["a"], *about(1, "a")]

CASES = [
    # level, what n reads, who reads n, what is said (versions: 1 is a, 2 is b)
    (Level.NONE, "", "", []),
    (Level.BACKWARD, "b", "", []),
    (Level.BACKWARD, "a", "ab", BAD_B),
    (Level.BACKWARD_TRANSITIVE, "b", "", BAD_A),
    (Level.BACKWARD_TRANSITIVE, "ab", "", []),
    (Level.BACKWARD_TRANSITIVE, "", "", BAD_B),
    (Level.FORWARD, "", "b", []),
    (Level.FORWARD, "ab", "a", [IS_NOT_READ_BY["b"], *about(2, "b")]),
    (Level.FORWARD_TRANSITIVE, "", "b", [IS_NOT_READ_BY["a"], *about(1, "a")]),
    (Level.FORWARD_TRANSITIVE, "", "ab", []),
    (Level.FULL, "b", "b", []),
    (Level.FULL, "a", "b", BAD_B),
    (Level.FULL, "b", "a", [IS_NOT_READ_BY["b"]]),
    (Level.FULL, "", "", [IS_NOT_READ_BY["b"], *BAD_B]),
    (Level.FULL_TRANSITIVE, "b", "ab", BAD_A),
    (Level.FULL_TRANSITIVE, "ab", "ab", []),
]


@pytest.mark.parametrize(("level", "reads", "read_by", "said"), CASES)
def test_levels(level: Level, reads: str, read_by: str, said: list[str]) -> None:
    previous = [(version, Reads(name, "n" if name in read_by else "")) for version, name in ((1, "a"), (2, "b"))]
    assert check(Reads("n", reads), previous, level) == said


@pytest.mark.parametrize("level", list(Level))
def test_the_first_version_may_be_anything(level: Level) -> None:
    assert check(Reads("n"), [], level) == []


def test_types_do_not_mix_unless_nothing_is_asked() -> None:
    said = ["Incompatible because of different schema type"]
    for level in Level:
        assert check(Other("n", "a"), [(1, Reads("a", "n"))], level) == ([] if level is Level.NONE else said)


def test_a_message_that_is_whole_stays_as_it_is() -> None:
    (said, *_) = check(Reads("n", whole=True), [(1, Reads("a"))], Level.BACKWARD)
    assert said == "{errorType:'KIND', n of the new, a of the old}"


def test_a_long_old_schema_is_cut() -> None:
    long = "x" * 20_000
    said = check(Reads("n"), [(1, Reads(long))], Level.BACKWARD)
    assert said[-1] == "{oldSchema: <truncated> '" + "x" * 10_240 + "...'}"


def test_older_versions_are_parsed_only_as_far_as_needed() -> None:
    parsed: list[str] = []

    def lazily(name: str) -> Parsed:
        parsed.append(name)
        return Reads(name, "n")

    previous = [(1, lambda: lazily("a")), (2, lambda: lazily("b")), (3, lambda: lazily("c"))]
    assert check_lazily(Reads("n", "c"), previous, Level.BACKWARD) == []
    assert check_lazily(Reads("n", "c"), previous, Level.BACKWARD_TRANSITIVE) != []
    assert parsed == ["c", "c", "b"]
