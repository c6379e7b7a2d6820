"""Regular expressions of rules: matches and groups as in Java, and no name that makes the work explode."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model import limits
from ottla.security.java_regex.pattern import JavaPattern, JavaReplacement
from ottla.security.java_regex.program import MatchingWork, TooMuchWork
from ottla.security.java_regex.syntax import InvalidRule


def matches(regex: str, text: str) -> bool:
    return JavaPattern(regex).matches(text, MatchingWork())


def replaced(regex: str, text: str, replacement: str = "<$0>") -> str:
    pattern = JavaPattern(regex)
    return pattern.replace(text, JavaReplacement(replacement, pattern), MatchingWork())


@pytest.mark.parametrize(
    ("regex", "text", "other"),
    [
        ("a.c", "abc", "a\rc"),
        ("(?s)a.c", "a\u2028c", "ac"),
        ("(?i)CN=é", "cn=é", "cn=É"),
        ("(?i)[^k]", "x", "K"),
        ("(?i:a)b", "Ab", "AB"),
        ("(?i)a(?-i)b", "Ab", "AB"),
        ("(?i)a|b", "B", "c"),
        (r"\Qa.b\E+", "a.bb", "axb"),
        (r"[\w.-]+", "a-b.c", "a b"),
        ("[]a]", "]", "b"),
        ("[^]a]", "b", "]"),
        ("[a-]+", "a-", "b"),
        (r"[\d-z]+", "1-z", "y"),
        (r"\x41\u0042\x{43}\t", "ABC\t", "ABCD"),
        (r"\s\S", "\x0ba", "aa"),
        ("a{2}b{0,1}c{1,}", "aacc", "abc"),
        ("a|", "", "b"),
        ("()", "", "a"),
        (r"\ba\b.\Bb?", "a-", "aa"),
        (r"a\Z", "a", "b"),
        ("}]", "}]", "}"),
        (r"\w+", "a_1", "é"),
    ],
)
def test_matches(regex: str, text: str, other: str) -> None:
    assert matches(regex, text)
    assert not matches(regex, other)


@pytest.mark.parametrize(
    ("regex", "text", "result"),
    [
        ("(|a)", "aa", "<>a<>a<>"),
        ("a??", "aa", "<>a<>a<>"),
        ("a*", "baac", "<>b<aa><>c<>"),
        ("a|ab", "ab", "<a>b"),
        ("$", "a\r\n", "a<>\r\n<>"),
        ("$", "a\r", "a<>\r<>"),
        ("x", "aaa", "aaa"),
    ],
)
def test_all_matches(regex: str, text: str, result: str) -> None:
    assert replaced(regex, text) == result


@pytest.mark.parametrize(
    ("regex", "why"),
    [
        (r"(a)\1", "it has a back-reference, which cannot be matched in bounded time"),
        (r"(?<x>a)\k<x>", "back-reference"),
        ("(?=a)a", "look-ahead"),
        ("(?!a)b", "look-ahead"),
        ("(?<=a)b", "look-behind"),
        ("(?<!a)b", "look-behind"),
        ("(?>a)", "an atomic group"),
        ("a*+", "a possessive quantifier"),
        ("a++", "a possessive quantifier"),
        ("(?m)a", "begins no group"),
        ("[a[b]]", "a union"),
        ("[a&&b]", "an intersection"),
        (r"\p{Alpha}", "does not know"),
        (r"\07", "does not know"),
        ("a**", "another quantifier"),
        ("*", "repeats nothing"),
        ("a|+", "repeats nothing"),
        ("{1}", "repeats nothing"),
        ("a{,2}", "begins no quantifier"),
        ("a{2,1}", "not possible"),
        ("a{1001}", "not possible"),
        ("(a", "not closed"),
        ("[a", "not closed"),
        ("[", "not closed"),
        ("a)", "closes nothing"),
        ("[b-a]", "the range b-a"),
        ("a\\", "does not know"),
        (r"\x{110000}", "does not know"),
        ("(?<n>a)(?<n>b)", "two groups"),
        ("(a*)*b", "it repeats a part that may be empty"),
        ("(?:a?|b)+?", "it repeats a part that may be empty"),
        (r"(\b|^){2}", "it repeats a part that may be empty"),
        ("(" * 200 + ")" * 200, "nests too deeply"),
        ("((a{1000}){1000}){1000}", "too large"),
        ("(?:(?:(?:a{1000}|b){1000}){1000}){1000}", "too large"),
    ],
)
def test_what_is_refused_says_why_in_one_line(regex: str, why: str) -> None:
    with pytest.raises(InvalidRule, match=re.escape(why)) as refused:
        JavaPattern(regex)
    assert "\n" not in str(refused.value)


BOMBS = ["(a+)+b", "(a|a)*b", "(.+)+b", "(a+)+(a+)+b", ".*a.*a.*a.*a.*b", "a{0,20}a{20}b", "((((a+)+)+)+)+b"]


@pytest.mark.parametrize("regex", BOMBS)
def test_the_work_grows_only_as_the_name_does(regex: str) -> None:
    """Backtracking would outlive the universe with most of them."""

    def work(count: int) -> int:
        done = MatchingWork(10_000_000)
        assert not JavaPattern(regex).matches("a" * count, done)
        assert replaced_with(regex, "a" * count, done) == "a" * count
        return 10_000_000 - done.left

    assert work(400) <= 2.1 * work(200)


def replaced_with(regex: str, text: str, work: MatchingWork) -> str:
    pattern = JavaPattern(regex)
    return pattern.replace(text, JavaReplacement("x", pattern), work)


def test_too_much_work_is_given_up() -> None:
    """Each match of the short part comes after a search for the long one."""
    work = MatchingWork()
    with pytest.raises(TooMuchWork):
        replaced_with("a*b|a", "a" * limits.PRINCIPAL_NAME_CHARACTERS_MAX, work)
    assert work.left == 0


QUANTIFIERS = ["*", "+", "?", "{2}", "{1,3}", "*?", "+?", "??", "{1,2}?"]
REPEATED = ["a", "b", ".", "-", "(a|b)", "(a|ab)", "(b|ba)", "(a.)"]
SIMPLE = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", r"\W", "^", r"\b", "-", ""])
    | st.tuples(st.sampled_from(REPEATED), st.sampled_from(QUANTIFIERS)).map("".join),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join).map("({})".format),
        inner.map("({})".format),
    ),
    max_leaves=8,
)


def python_replaced(pattern: re.Pattern[str], text: str, groups: int) -> str:
    """All matches replaced by their groups. After an empty match Java goes on at the next character; Python's own
    `sub` looks for another match in the same place.
    """
    done, kept, begin = "", 0, 0
    while begin <= len(text) and (found := pattern.search(text, begin)):
        done += text[kept : found.start()] + "".join(f"{number}:{found[number] or ''};" for number in range(groups))
        kept = found.end()
        begin = kept + (not found[0])
    return done + text[kept:]


@given(SIMPLE, st.lists(st.text("ab-", max_size=8), max_size=5))
def test_python_finds_the_same_matches_and_groups(regex: str, texts: list[str]) -> None:
    pattern, python = JavaPattern(regex), re.compile(regex, re.ASCII)
    assert pattern.groups == python.groups
    groups = min(pattern.groups + 1, 10)
    replacement = JavaReplacement("".join(f"{number}:${number};" for number in range(groups)), pattern)
    for text in texts:
        assert pattern.matches(text, MatchingWork()) == (python.fullmatch(text) is not None), (regex, text)
        ours = pattern.replace(text, replacement, MatchingWork())
        assert ours == python_replaced(python, text, groups), (regex, text)
