"""sasl.kerberos.principal.to.local.rules: Kafka's documented examples, and rules that are refused."""

from __future__ import annotations

from contextlib import suppress

import pytest

from ottla.model import limits
from ottla.security.java_regex.program import MatchingWork
from ottla.security.java_regex.syntax import InvalidRule
from ottla.security.kerberos_names import KerberosName, KerberosRules, parse_kerberos_name
from ottla.security.name_rules import NoMatchingRule


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("kafka/host@REALM", KerberosName("kafka", "host", "REALM")),
        ("alice@REALM", KerberosName("alice", None, "REALM")),
        ("alice", KerberosName("alice", None, None)),
        ("kafka/host", KerberosName("kafka/host", None, None)),
        ("", KerberosName("", None, None)),
        ("@", KerberosName("", None, "")),
    ],
)
def test_names(text: str, name: KerberosName) -> None:
    assert parse_kerberos_name(text) == name
    assert str(name) == text


@pytest.mark.parametrize("text", ["a/b/c@R", "a@b@c", "a@b/c", "x" * (limits.PRINCIPAL_NAME_CHARACTERS_MAX + 1)])
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(ValueError, match="Kerberos name"):
        parse_kerberos_name(text)


@pytest.mark.parametrize(
    ("rules", "name", "short"),
    [
        (["DEFAULT"], "alice@REALM.COM", "alice"),
        (["DEFAULT"], "kafka/host@REALM.COM", "kafka"),
        (["DEFAULT"], "alice@OTHER.COM", None),
        ([], "alice@REALM.COM", None),
        ([], "alice", "alice"),
        (["RULE:[1:$1]"], "alice@OTHER.COM", "alice"),
        (["RULE:[1:$1]"], "kafka/host@OTHER.COM", None),
        (["RULE:[1:$1]", "DEFAULT"], "kafka/host@REALM.COM", "kafka"),
        (["RULE:[2:$1]"], "kafka/host@OTHER.COM", "kafka"),
        (["RULE:[2:$2-$1]"], "kafka/host@OTHER.COM", "host-kafka"),
        (["RULE:[1:$1@$0](.*@OTHER.COM)s/@.*//"], "alice@OTHER.COM", "alice"),
        (["RULE:[1:$1@$0](.*@OTHER.COM)s/@.*//", "DEFAULT"], "alice@REALM.COM", "alice"),
        (["RULE:[1:$1@$0](.*@OTHER.COM)"], "alice@OTHER.COM", None),
        (["RULE:[1:$1]/L"], "Alice@R", "alice"),
        (["RULE:[1:$1]/U"], "Alice@R", "ALICE"),
        (["RULE:[1:$1]s/a/x/"], "banana@R", "bxnana"),
        (["RULE:[1:$1]s/a/x/g"], "banana@R", "bxnxnx"),
        (["RULE:[1:$1]s/(a)(n)/$2$1/g/U"], "banana@R", "BNANAA"),
        (["RULE:[1:x]"], "alice@R", "x"),
        (["RULE:[1:]"], "alice@R", ""),
        (["RULE:[0:$0]", "DEFAULT"], "alice@REALM.COM", "alice"),
    ],
)
def test_rules(rules: list[str], name: str, short: str | None) -> None:
    parsed = KerberosRules(rules, "REALM.COM")
    if short is None:
        with pytest.raises(NoMatchingRule):
            parsed.short_name(parse_kerberos_name(name))
    else:
        assert parsed.short_name(parse_kerberos_name(name)) == short


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "default",
        "DEFAULT/L",
        "RULE:[:$1]",
        "RULE:[x:$1]",
        "RULE:[1:$1",
        "RULE:[1:$2]",
        "RULE:[1:$]",
        "RULE:[1:$1]s/a/b",
        "RULE:[1:$1]s/(/b/",
        "RULE:[1:$1](()s/a/b/",
        "RULE:[1:$1]s/a/$1/",
        "RULE:[1:$1]/LU",
        "RULE:[1:$1] ",
        "RULE:[1:$1]s/(a)\\1/x/",
        "RULE:[1:$1]s/(?<=a)b/x/",
        "RULE:[1:" + "x" * limits.PRINCIPAL_RULES_CHARACTERS_MAX + "]",
    ],
)
def test_rules_that_are_refused(rule: str) -> None:
    with pytest.raises(InvalidRule):
        KerberosRules([rule], "REALM.COM")


@pytest.mark.parametrize("rule", ["RULE:[1:$1@$0](.*a.*a.*a.*a.*b)", "RULE:[1:$1]s/a*a*a*a*a*b/x/"])
def test_the_work_grows_only_as_the_name_does(rule: str) -> None:
    def work(count: int) -> int:
        done = MatchingWork()
        with suppress(NoMatchingRule):
            KerberosRules([rule], "R").short_name(KerberosName("a" * count, None, "R"), done)
        return limits.PRINCIPAL_RULES_WORK_MAX - done.left

    assert 0 < work(400) <= 2.1 * work(200)


def test_a_name_that_takes_too_much_work_has_no_principal() -> None:
    name = KerberosName("a" * (limits.PRINCIPAL_NAME_CHARACTERS_MAX - 2), None, "R")
    with pytest.raises(NoMatchingRule, match="takes the rules too much work"):
        KerberosRules(["RULE:[1:$1]s/a*b|a/x/g", "DEFAULT"], "R").short_name(name)
    with pytest.raises(NoMatchingRule, match="takes the rules too much work"):
        KerberosRules(["RULE:[1:$1$1](.*)", "DEFAULT"], "R").short_name(name)
