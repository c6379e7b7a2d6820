"""JAAS configurations: the value of `sasl.jaas.config`, as Kafka reads it.

An error tells the place and what is expected there. It never repeats text of the configuration, because a part of a
password that lacks its quotes may be anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from ottla.model import limits
from ottla.security.sasl.jaas_tokens import END, JaasToken, jaas_tokens

PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTHBEARER_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KERBEROS_MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"

_FLAGS = ("required", "requisite", "sufficient", "optional")
PLAIN_USER: Final = "user_"  # PlainLoginModule has an option user_NAME=PASSWORD for each user


class InvalidJaas(ValueError):
    """One line that says where a configuration is wrong, and what is expected there."""


@dataclass(frozen=True, slots=True)
class LoginModule:
    """`flag` is in lower case. The options hold passwords, so they are not printed."""

    name: str
    flag: str
    options: Mapping[str, str] = field(repr=False)


def parse_jaas_line(text: str) -> LoginModule:
    """Parse the value of `sasl.jaas.config`; Kafka allows one login module in it."""
    tokens = _tokens(text)
    modules: list[LoginModule] = []
    while (token := next(tokens)).kind != END:
        modules.append(_module_of_line(tokens, token, len(modules) + 1))
    if not modules:
        raise InvalidJaas("the JAAS configuration has no login module")
    if len(modules) > 1:
        raise InvalidJaas(f"the JAAS configuration has {len(modules)} login modules, but it should have one")
    return modules[0]


def plain_users(modules: list[LoginModule]) -> dict[str, str]:
    """Return the passwords of a PLAIN listener by user name."""
    options = [module.options.items() for module in reversed(modules) if module.name == PLAIN_MODULE]
    return {
        name.removeprefix(PLAIN_USER): value
        for items in options  # the first module that has a user wins
        for name, value in items
        if name.startswith(PLAIN_USER)
    }


def _module_of_line(tokens: Iterator[JaasToken], first: JaasToken, number: int) -> LoginModule:
    """Any string may be a name or a value here, and the flag may be one."""
    where = f"login module {number} of the JAAS configuration"
    if first.text is None:
        raise InvalidJaas(f"{where} does not begin with the name of a class")
    flag = (next(tokens).text or "").lower()
    if flag not in _FLAGS:
        raise InvalidJaas(f"{where} lacks a control flag after its name: one of {', '.join(_FLAGS)}")
    options: dict[str, str] = {}
    while (token := next(tokens)).kind != ";":
        if token.kind == END:
            raise InvalidJaas(f"{where} does not end with a semicolon")
        equals, value = next(tokens), next(tokens)
        if token.text is None or equals.kind != "=" or value.text is None:
            raise InvalidJaas(
                f"option {len(options) + 1} of {where} is not of the form name=value; a value needs double quotes if "
                f"it begins with a digit or has other characters than letters, digits, '.', '_', '$' and '-'"
            )
        options[token.text] = value.text
    return LoginModule(first.text, flag, options)


def _tokens(text: str) -> Iterator[JaasToken]:
    if len(text) > limits.JAAS_CHARACTERS_MAX:
        raise InvalidJaas(f"the JAAS configuration has more than {limits.JAAS_CHARACTERS_MAX} characters")
    return jaas_tokens(text)
