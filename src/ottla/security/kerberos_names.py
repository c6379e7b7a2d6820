"""`sasl.kerberos.principal.to.local.rules`: from the name in a Kerberos ticket to the name of a principal.

A rule is DEFAULT (the first component of names of the default realm) or RULE:[n:format](match)s/from/to/g/L. It applies
to names of n components; `format` refers to the realm ($0) and the components ($1, $2).

Names come from whoever has a ticket: the work of matching one is bounded (`java_regex`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ottla.model import limits
from ottla.security.java_regex.pattern import JavaPattern, JavaReplacement, case_change
from ottla.security.java_regex.program import MatchingWork, TooMuchWork
from ottla.security.java_regex.syntax import InvalidRule
from ottla.security.name_rules import NoMatchingRule

_NAME = re.compile(r"(?P<service>[^/@]*)(?:/(?P<host>[^/@]*))?@(?P<realm>[^/@]*)")
_RULE = re.compile(
    r"DEFAULT|RULE:\[(?P<count>[0-9]{1,9}):(?P<format>[^\]]*)\](?:\((?P<match>[^)]*)\))?"
    r"(?P<change>s/(?P<from>[^/]*)/(?P<to>[^/]*)/(?P<all>g)?)?/?(?P<case>[LU])?"
)
_DIGITS_MAX = 9  # as above; names have two components at most
_PARAMETER = re.compile(r"\$([0-9]*)")
_NOT_SIMPLE = re.compile(r"[/@]")


class KerberosName(NamedTuple):
    service: str
    host: str | None
    realm: str | None

    def __str__(self) -> str:
        host = "" if self.host is None else f"/{self.host}"
        return self.service + host + ("" if self.realm is None else f"@{self.realm}")


def parse_kerberos_name(text: str) -> KerberosName:
    """Parse `service/host@REALM`; the host may be missing, and so may host and realm. Raise ValueError."""
    if len(text) > limits.PRINCIPAL_NAME_CHARACTERS_MAX:
        raise ValueError(f"a Kerberos name has {len(text)} characters")
    found = _NAME.fullmatch(text)
    if found is not None:
        return KerberosName(found["service"], found["host"], found["realm"])
    if "@" in text:
        raise ValueError(f"{text!r} is not a Kerberos name")
    return KerberosName(text, None, None)


class _LocalRule(NamedTuple):
    text: str
    components: int
    format: str
    match: JavaPattern | None
    change: Callable[[str, MatchingWork], str]
    change_case: Callable[[str], str]

    def apply(self, parts: Sequence[str], work: MatchingWork) -> str | None:
        if len(parts) - 1 != self.components:
            return None
        name = _PARAMETER.sub(lambda found: parts[int(found[1])], self.format)
        if len(name) > limits.PRINCIPAL_NAME_CHARACTERS_MAX:
            raise TooMuchWork
        if self.match is not None and not self.match.matches(name, work):
            return None
        return self.change_case(_simple(self.change(name, work), self.text))


class KerberosRules:
    """Raises InvalidRule if a rule is wrong."""

    def __init__(self, rules: Sequence[str], default_realm: str) -> None:
        if sum(map(len, rules)) > limits.PRINCIPAL_RULES_CHARACTERS_MAX:
            raise InvalidRule(f"the rules have more than {limits.PRINCIPAL_RULES_CHARACTERS_MAX} characters")
        self._rules = [_local_rule(rule) for rule in rules]  # None: DEFAULT
        self._default_realm = default_realm

    def short_name(self, name: KerberosName, work: MatchingWork | None = None) -> str:
        """Return the name of the principal; raise NoMatchingRule."""
        work = work or MatchingWork()
        if name.realm is None:
            return name.service
        parts = [name.realm, name.service] if name.host is None else [name.realm, name.service, name.host]
        try:
            for rule in self._rules:
                short = rule.apply(parts, work) if rule else self._default(name)
                if short is not None:
                    return short
        except TooMuchWork:
            raise NoMatchingRule(
                f"a Kerberos name of {len(str(name))} characters takes the rules too much work"
            ) from None
        raise NoMatchingRule(f"no rule of sasl.kerberos.principal.to.local.rules applies to {str(name)!r}")

    def _default(self, name: KerberosName) -> str | None:
        return _simple(name.service, "DEFAULT") if name.realm == self._default_realm else None


def _local_rule(text: str) -> _LocalRule | None:
    found = _RULE.fullmatch(text)
    if found is None:
        raise InvalidRule(f"expected DEFAULT or RULE:[n:format](match)s/from/to/g/L, but found {text!r}")
    if found["count"] is None:
        return None
    components = int(found["count"])
    for number in _PARAMETER.findall(found["format"]):
        if not number or len(number) > _DIGITS_MAX or int(number) > components:
            raise InvalidRule(f"the format of the rule {text!r} refers to a component that does not exist: ${number}")
    return _LocalRule(
        text,
        components,
        found["format"],
        None if found["match"] is None else JavaPattern(found["match"]),
        _change(found) if found["change"] else _unchanged,
        case_change(found["case"]),
    )


def _change(found: re.Match[str]) -> Callable[[str, MatchingWork], str]:
    pattern = JavaPattern(found["from"])
    replacement = JavaReplacement(found["to"], pattern)
    once = not found["all"]
    return lambda name, work: pattern.replace(name, replacement, work, once=once)


def _unchanged(name: str, work: MatchingWork) -> str:
    return name


def _simple(name: str, rule: str) -> str:
    if _NOT_SIMPLE.search(name):
        raise NoMatchingRule(f"the rule {rule!r} of sasl.kerberos.principal.to.local.rules gives {name!r}")
    return name
