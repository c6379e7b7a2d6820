"""ssl.principal.mapping.rules: Kafka's documented examples, and rules that are refused."""

from __future__ import annotations

import pytest

from ottla.model import limits
from ottla.security.java_regex.program import MatchingWork
from ottla.security.java_regex.syntax import InvalidRule
from ottla.security.name_rules import NoMatchingRule
from ottla.security.ssl_principal import SslPrincipalRules

DUKE = "CN=duke,OU=ServiceUsers,O=Org,C=US"
ADMIN = "CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US"


@pytest.mark.parametrize(
    ("rules", "name", "principal"),
    [
        ("DEFAULT", DUKE, DUKE),
        ("", DUKE, None),
        (" , DEFAULT , ", DUKE, DUKE),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", DUKE, "duke"),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L", ADMIN, "duke@sme"),
        ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U", ADMIN, "DUKE"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/, DEFAULT", ADMIN, ADMIN),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", ADMIN, None),
        ("RULE:CN/x/", DUKE, None),
        ("RULE:.*/Bob/", DUKE, "BobBob"),
        ("RULE:^.*$/Bob/", DUKE, "Bob"),
        ("RULE:^CN=(.*?),.*$/$1$7/", DUKE, "duke$7"),
        ("RULE:^CN=(.*?),.*$/$12/", DUKE, "duke2"),
        ("RULE:^CN=(.*?),.*$/$1\\/\\$1/", DUKE, "duke/$1"),
        ("RULE:^CN=(?<who>.*?),.*$/${who}/", DUKE, "duke"),
        ("RULE:^CN=(.*?),OU=(x)?.*$/$1-$2/", DUKE, "duke-"),
        ("RULE:^CN=(.*?),.*$/$0/L", DUKE, DUKE.lower()),
        ("RULE:^CN=a\\/(.*)$/$1/", "CN=a/b", "b"),
        ("RULE:\\w+/x/", "é", None),
    ],
)
def test_rules(rules: str, name: str, principal: str | None) -> None:
    parsed = SslPrincipalRules(rules)
    if principal is None:
        with pytest.raises(NoMatchingRule):
            parsed.name_of(name)
    else:
        assert parsed.name_of(name) == principal


@pytest.mark.parametrize(
    "rules",
    [
        "DEFAULTS",
        "default",
        "RULE:",
        "RULE:/",
        "RULE:a/b",
        "RULE:a/b/L/U",
        "RULE:a/b/LU",
        "RULE:a/b/x",
        "RULE:a/b/L DEFAULT",
        "DEFAULT; DEFAULT",
        "RULE:(/b/",
        "RULE:[[a]]/b/",
        "RULE:[a&&b]/b/",
        "RULE:\\p{Alpha}/b/",
        "RULE:^CN=(.*),OU=\\1$/$1/",
        "RULE:^CN=(?!admin)(.*?),.*$/$1/",
        "RULE:a/$1/",
        "RULE:a/$/",
        "RULE:(a)/${x}/",
        "RULE:(a)/$x/",
        "RULE:" + "a" * limits.PRINCIPAL_RULES_CHARACTERS_MAX + "/b/",
    ],
)
def test_rules_that_are_refused(rules: str) -> None:
    with pytest.raises(InvalidRule):
        SslPrincipalRules(rules)


def test_the_default_is_the_whole_name() -> None:
    assert SslPrincipalRules().name_of(DUKE) == DUKE


def test_a_very_long_name_has_no_principal() -> None:
    with pytest.raises(NoMatchingRule):
        SslPrincipalRules().name_of("CN=" + "x" * limits.PRINCIPAL_NAME_CHARACTERS_MAX)


SIX_FIELDS = "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L"


def work_with(rules: str, name: str) -> int:
    """The steps that it takes to find out that the rules do not apply."""
    work = MatchingWork()
    with pytest.raises(NoMatchingRule):
        SslPrincipalRules(rules).name_of(name, work)
    return limits.PRINCIPAL_RULES_WORK_MAX - work.left


def test_the_work_grows_only_as_the_name_does() -> None:
    """Kafka's own example of a rule, and a name with each field many times but the last."""
    short, long = ("CN=x" + ",OU=x,O=x,L=x,ST=x" * count for count in (30, 60))
    assert work_with(SIX_FIELDS, long) <= 2.1 * work_with(SIX_FIELDS, short)
    assert work_with(SIX_FIELDS, long) <= 30 * len(long)


def test_a_name_that_takes_too_much_work_has_no_principal() -> None:
    """Not even that of a later rule: a client must not choose which rules apply to it."""
    name = "CN=x" + ",OU=x,O=x,L=x,ST=x" * 200
    rules = f"{', '.join([SIX_FIELDS] * 4)}, DEFAULT"
    with pytest.raises(NoMatchingRule, match="takes the rules too much work"):
        SslPrincipalRules(rules).name_of(name)
    assert SslPrincipalRules(rules).name_of(name[:300]) == name[:300]
