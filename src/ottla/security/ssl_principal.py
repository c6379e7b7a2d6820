"""`ssl.principal.mapping.rules`: from the distinguished name of a client's certificate to the name of its principal.

A rule is DEFAULT (the whole distinguished name) or RULE:pattern/replacement/[LU]; the first rule whose pattern matches
the whole name decides. L and U make the result lower or upper case.

Names come from whoever has a certificate: the work of matching one is bounded (`java_regex`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from ottla.model import limits
from ottla.security.java_regex.pattern import JavaPattern, JavaReplacement, case_change
from ottla.security.java_regex.program import MatchingWork, TooMuchWork
from ottla.security.java_regex.syntax import InvalidRule
from ottla.security.name_rules import NoMatchingRule

DEFAULT_RULES = "DEFAULT"
_RULE = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?)|)"
    r"\s*(?:,|\Z)"
)


class _MappingRule(NamedTuple):
    pattern: JavaPattern
    replacement: JavaReplacement
    change_case: Callable[[str], str]

    def apply(self, name: str, work: MatchingWork) -> str | None:
        if not self.pattern.matches(name, work):
            return None
        return self.change_case(self.pattern.replace(name, self.replacement, work))


class SslPrincipalRules:
    """Raises InvalidRule if a rule is wrong."""

    def __init__(self, text: str = DEFAULT_RULES) -> None:
        if len(text) > limits.PRINCIPAL_RULES_CHARACTERS_MAX:
            raise InvalidRule(f"the rules have more than {limits.PRINCIPAL_RULES_CHARACTERS_MAX} characters")
        self._rules: list[_MappingRule | None] = []  # None: DEFAULT
        position = 0
        while position < len(text):
            found = _RULE.match(text, position)
            if found is None:
                raise InvalidRule(f"expected DEFAULT or RULE:pattern/replacement/[LU], but found {text[position:]!r}")
            position = found.end()
            if found["default"]:
                self._rules.append(None)
            elif found["pattern"] is not None:
                self._rules.append(_mapping_rule(found))

    def name_of(self, distinguished_name: str, work: MatchingWork | None = None) -> str:
        """Return the name of the principal; raise NoMatchingRule."""
        work = work or MatchingWork()
        if len(distinguished_name) > limits.PRINCIPAL_NAME_CHARACTERS_MAX:
            raise NoMatchingRule(f"a distinguished name has {len(distinguished_name)} characters")
        try:
            for rule in self._rules:
                name = distinguished_name if rule is None else rule.apply(distinguished_name, work)
                if name is not None:
                    return name
        except TooMuchWork:
            reason = f"a distinguished name of {len(distinguished_name)} characters takes the rules too much work"
            raise NoMatchingRule(reason) from None
        raise NoMatchingRule(f"no rule of ssl.principal.mapping.rules applies to {distinguished_name!r}")


def _mapping_rule(found: re.Match[str]) -> _MappingRule:
    pattern = JavaPattern(found["pattern"])
    replacement = JavaReplacement(found["replacement"], pattern, keep_unknown=True)
    return _MappingRule(pattern, replacement, case_change(found["case"]))
