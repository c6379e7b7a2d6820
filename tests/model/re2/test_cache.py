"""The cache of compiled expressions: how much it keeps."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import suppress

import pytest

from ottla.model import limits
from ottla.model.re2 import match
from ottla.model.re2.cache import SizedCache
from ottla.model.re2.match import Search, pattern_of
from ottla.model.re2.nodes import RegexError


class Text:
    def __init__(self, text: str) -> None:
        self.size = len(text)


def test_who_was_used_last_stays() -> None:
    cache = SizedCache(Text, count_max=3, size_max=10)
    first, second = cache.of("a"), cache.of("bb")
    cache.of("ccc")
    assert cache.of("a") is first
    cache.of("dddd")
    assert cache.of("a") is first
    assert cache.of("bb") is not second
    assert len(cache) == 3


def test_what_grows_makes_others_go() -> None:
    cache = SizedCache(Text, count_max=10, size_max=10)
    first = cache.of("a")
    second = cache.of("bb")
    second.size = 9
    cache.grew(7)
    assert cache.of("bb") is second and cache.of("a") is first
    second.size = 10
    cache.of("ccc")
    assert cache.of("a") is first and cache.of("bb") is not second


def test_what_is_too_large_is_not_kept() -> None:
    cache = SizedCache(Text, count_max=10, size_max=10)
    large = cache.of("e" * 11)
    assert len(cache) == 0
    assert cache.of("e" * 11) is not large


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    size_max = limits.REGEX_CACHE_MAX // 10
    monkeypatch.setattr(match, "_MADE", SizedCache(match._Compiled, limits.REGEX_PATTERNS_MAX, size_max))
    monkeypatch.setattr(limits, "REGEX_MEMORY_MAX", limits.REGEX_MEMORY_MAX // 10)
    pattern_of("begun")
    tracemalloc.start()
    yield size_max
    tracemalloc.stop()


@pytest.mark.parametrize("part", ["[^a]", "a", "(a*)*", "a|", r"\n", "a?", "[["])
def test_the_memory_of_the_cache_is_bounded(small: int, part: str) -> None:
    for number in range(100):
        with suppress(RegexError):
            pattern_of(f"{number}-" + part * (2_000 // len(part)))
    kept, _ = tracemalloc.get_traced_memory()
    assert kept < small * 350


def test_the_memory_of_the_cache_is_bounded_after_searches(small: int) -> None:
    patterns = [f"{number}?(a|b)*a(a|b){{{number}}}" for number in range(1, 40)]
    for pattern in patterns:
        pattern_of(pattern)
    for seed, pattern in enumerate(patterns):
        search = Search(pattern_of(pattern))
        for number in range(60):
            try:
                search.matches("".join("ab"[(at * at + number + seed) % 7 % 2] for at in range(249)))
            except RegexError:
                break
    kept, _ = tracemalloc.get_traced_memory()
    assert kept < small * 350
