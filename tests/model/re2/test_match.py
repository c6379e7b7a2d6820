"""Regular expressions: RE2's language, and nothing takes long."""

import re
import string
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model import limits
from ottla.model.re2.match import Pattern, Search
from ottla.model.re2.nodes import RegexError


def search(regex: str) -> Search:
    return Search(Pattern(regex))


MATCHES = [
    (r"foo.*", "foobar", "barfoo"),
    (r"^foo$", "foo", "foo1"),
    (r"foo|bar", "bar", "foobar"),
    (r"(a|b)+c?", "ababc", "cab"),
    (r"[a-c]{2,3}", "abc", "abca"),
    (r"[^.]*", "abc", "a.b"),
    (r"[]a]", "a", "b"),
    (r"[a\-z]+", "a-z", "b"),
    (r"[a-]+", "a-", "b"),
    (r"(?i)FoO", "fOo", "f0o"),
    (r"(?i:F)oo", "foo", "fOo"),
    (r"(?i)a(?-i)B", "AB", "Ab"),
    (r"\bfoo\b-bar\b", "foo-bar", "foo_bar"),
    (r"a\Bb", "ab", "a-b"),
    (r"\Aa\z", "a", "aa"),
    (r"\Qa.b\E+", "a.bbb", "axb"),
    (r"[[:alpha:]]+\d", "abc1", "abc"),
    (r"[[:^alpha:]]+", "1.2", "a"),
    (r"\pL\p{Nd}\P{L}", "a1-", "1a-"),
    (r"\w+\W\w+", "a_b.c", "a_b_c"),
    (r"\x41\x{42}\103", "ABC", "ABD"),
    (r"(?P<n>a)(?:b)", "ab", "a"),
    (r"a{0}b", "b", "ab"),
    (r"a*?b+?", "aab", "a"),
    (r"(|a)*", "aaa", "b"),
    (r"a$b|c", "c", "ab"),
    (r"\.\-\_", ".-_", "x-_"),
    (r"\p{Greek}|x", "x", "y"),
    (r"€|x", "x", "y"),
    (r"\Qa.b*\E-[0-9]+", "a.b*-7", "a.bb-7"),
    (r"\Qto the end.", "to the end.", "to the end"),
    (r"a\Q\E*", "aaa", "ab"),
    ("(?<name>x)+", "xx", ""),
    ("[(?=]", "=", "(="),
    ("a.b", "a b", "a\nb"),
    ("(?s)a.b", "a\nb", "ab"),
    ("a$", "a", "a\n"),
    ("(?m)a$\n^b", "a\nb", "ab"),
    ("(?im-s)A.", "ab", "a\n"),
    ("[^a]", "\n", "a"),
    (".[😀-😂]", "é😁", "é"),
    (r"\w\s", "a ", "é "),
    (r"[[:space:]]\s", "\v\f", "\v\v"),
    (r"\d", "3", "\N{ARABIC-INDIC DIGIT THREE}"),
    (r"é\bx", "éx", "x"),
    (r"\p{Greek}+", "αλφα", "alpha"),
    (r"\p{Common}\P{Latin}", "-λ", "-l"),
    (r"\pN\pZ", "½ ", "a "),
    (r"\pC", "\x01", "\u0378"),
    ("(?i)k", "\N{KELVIN SIGN}", "c"),
    ("(?i)[^k]", "c", "\N{KELVIN SIGN}"),
    ("(?i)ß", "ẞ", "ss"),
    ("(?i)i", "I", "\N{LATIN SMALL LETTER DOTLESS I}"),
    ("(?i)ς+", "σΣς", "s"),
    (r"(?i)\w", "\N{LATIN SMALL LETTER LONG S}", "é"),
    (r"(?i)\P{Lu}", "1", "a"),
]


@pytest.mark.parametrize(("regex", "name", "other"), MATCHES)
def test_matches(regex: str, name: str, other: str) -> None:
    pattern = search(regex)
    assert pattern.matches(name)
    assert pattern.matches(name), "remembered steps lead to the same"
    assert not pattern.matches(other)


BAD = {
    r"a(b": "missing closing )",
    r"[a": "missing closing ]",
    r"[": "missing closing ]",
    r"*": "missing argument to repetition operator",
    r"a|*": "missing argument to repetition operator",
    r"a**": "invalid nested repetition operator",
    r"a{2}*": "invalid nested repetition operator",
    r"a{1001}": "invalid repeat count",
    r"a{2,1}": "invalid repeat count",
    r"(?=a)": "invalid or unsupported Perl syntax",
    r"(?<=a)b": "invalid named capture",
    r"(?<!a)b": "invalid named capture",
    r"(?!a)": "invalid or unsupported Perl syntax",
    r"(?>a)": "invalid or unsupported Perl syntax",
    r"(?P<n>a)(?P=n)": "invalid or unsupported Perl syntax",
    r"a++": "invalid nested repetition operator",
    r"\Q\E*": "missing argument to repetition operator",
    r"\C": "invalid escape sequence",
    r"\Z": "invalid escape sequence",
    r"[\b]": "invalid escape sequence",
    r"a)": "regexp/syntax: internal error",
    r"(a)\1": "invalid escape sequence",
    r"\xg1": "invalid escape sequence",
    r"\x4": "invalid escape sequence",
    r"\x{110000}": "invalid escape sequence",
    r"\y": "invalid escape sequence",
    "a\\": "trailing backslash at end of expression",
    r"[b-a]": "invalid character class range",
    r"\p{Zork}": "invalid character class range",
    r"\p": "invalid character class range",
    r"\p{": "invalid character class range",
    r"[[:zork:]]": "invalid character class range",
    r"(?P<n>a)(?P<n>b)": "duplicate capture group name",
    "(" * 200 + ")" * 200: "expression nests too deeply",
    r"((a{1000}){1000}){1000}": "expression too large",
    r"((((){1000}){1000}){1000}){1000}": "expression too large",
    r"((((){0}){1000}){1000}){1000}": "expression too large",
}


@pytest.mark.parametrize("regex", BAD)
def test_what_is_no_expression(regex: str) -> None:
    with pytest.raises(RegexError, match=re.escape(BAD[regex])):
        search(regex)


def test_nothing_takes_long() -> None:
    """With backtracking these would outlive the universe."""
    long = "a" * 249
    assert not search(r"(a+)+b").matches(long)
    assert not search(r"(a|a)*(a|aa)*(.|a)*b").matches(long)
    assert search(r"(a?){240}a{240}").matches(long)
    assert not search(r"((((a*)*)*)*)*b").matches(long)
    assert search("a" * 8_000).matches("a" * 8_000)


def test_an_expression_of_usual_length_is_none_too_long() -> None:
    topics = [f"team-{number:03}.orders.in-europe" for number in range(300)]
    some = search("|".join(topics))
    assert all(map(some.matches, topics)) and not some.matches("team-300.orders.in-europe")
    for part in ("[^a]", r"[a-z]", r"\p{Greek}?", "(a*)*", "[[:alpha:]]"):
        assert Pattern((part * 1_000)[: 1_000 // len(part) * len(part)])


@pytest.mark.parametrize("part", ["[^a]", "a", "(?i)"])
def test_a_very_long_expression_is_not_read(part: str) -> None:
    with pytest.raises(RegexError, match="expression too large"):
        search((part * (limits.REGEX_CHARS_MAX + 1))[: limits.REGEX_CHARS_MAX + 1])


def test_what_cannot_be_remembered_is_given_up() -> None:
    """There are 2^1000 sets of states here, and texts that lead to a new one with each character."""
    names = ["".join("ab"[(at * at + number) % 7 % 2] for at in range(249)) for number in range(1_000)]
    dear = search(r"(a|b)*a(a|b){1000}")
    with pytest.raises(RegexError, match="too much work"):
        list(map(dear.matches, names))
    again = Search(Pattern(".*b"))
    assert sum(map(again.matches, names)) == sum(name.endswith("b") for name in names), "and this one takes no time"


SIMPLE = st.recursive(
    st.sampled_from(["a", "b", "é", ".", "[ab]", "[^a]", "[à-ü]", r"\w", r"\W", r"\d", "^", r"\b", "-", "_", r"\n"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join).map("(?:{})".format),
        st.tuples(inner.map("(?:{})".format), st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "*?"])).map("".join),
    ),
    max_leaves=8,
)


@given(SIMPLE, st.lists(st.text("ab1-_. é\n", max_size=6), max_size=5))
def test_where_the_languages_agree_so_do_the_answers(regex: str, names: list[str]) -> None:
    pattern, wanted = search(regex), re.compile(regex, re.ASCII)
    for name in names:
        assert pattern.matches(name) == (wanted.fullmatch(name) is not None), (regex, name)


@given(st.text(string.printable + "é€", max_size=20), st.text("ab1-_.", min_size=1, max_size=6))
def test_any_text_is_an_expression_or_is_refused(regex: str, name: str) -> None:
    with suppress(RegexError):
        search(regex).matches(name)
