"""SCRAM users in the syntax of `kafka-storage format --add-scram`: `SCRAM-SHA-256=[name=alice,password=secret]`.

In place of `password` there may be `saltedpassword` with `salt` (both base64); `salt` and `iterations` are optional
otherwise. Values may stand in double quotes. As in Kafka, a comma ends a value, so a password cannot contain one.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Callable
from typing import NamedTuple

from ottla.model.limits import SCRAM_ITERATIONS_MAX, SCRAM_ITERATIONS_MIN
from ottla.security.sasl.scram.credentials import (
    SCRAM_MECHANISMS,
    ScramCredential,
    ScramMechanism,
    credential_of,
    credential_of_salted,
    salt_from,
)

_SALT_SOURCE_BYTES = 17
_MECHANISM = re.compile(r"(SCRAM|SHA)[A-Z0-9-]{1,16}|PLAIN")


class ScramUser(NamedTuple):
    name: str
    mechanism: ScramMechanism
    credential: ScramCredential


def parse_scram_user(text: str, random_bytes: Callable[[int], bytes]) -> ScramUser:
    """Parse one argument; `random_bytes` is for a salt if none is given.

    Raise ValueError with Kafka's message, which never contains a password, also if the whole text is one.
    """
    name, equals, rest = text.strip().partition("=")
    if not equals:
        raise ValueError("Failed to find equals sign in SCRAM argument")
    mechanism = SCRAM_MECHANISMS.get(name)
    if mechanism is None:
        named = f" {name}" if _MECHANISM.fullmatch(name) else ""
        raise ValueError(f"The add-scram mechanism{named} is not supported.")
    if not rest.startswith("["):
        raise ValueError("Expected configuration string to start with [")
    if not rest.endswith("]"):
        raise ValueError("Expected configuration string to end with ]")
    return _user(mechanism, dict(map(_component, rest[1:-1].rstrip(",").split(","))), random_bytes)


def _component(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError("No equals sign found in a SCRAM component")
    if len(value) >= 2 and value.startswith('"') and value.endswith('"'):
        value = value[1:-1]
    return name, value


def _user(mechanism: ScramMechanism, found: dict[str, str], random_bytes: Callable[[int], bytes]) -> ScramUser:
    name = found.pop("name", None)
    if not name:
        raise ValueError("You must supply 'name' to add-scram")
    salt_text, password, salted_text = (found.pop(key, None) for key in ("salt", "password", "saltedpassword"))
    iterations = _iterations(mechanism, found.pop("iterations", None))
    salt = None if salt_text is None else _decoded("salt", salt_text)
    if password is None and salted_text is None:
        raise ValueError("You must supply one of 'password' or 'saltedpassword' to add-scram")
    if password is None and salt is None:
        raise ValueError("You must supply 'salt' with 'saltedpassword' to add-scram")
    if found:
        raise ValueError(f"Unknown SCRAM configurations: {', '.join(sorted(found))}")
    if salt is None:
        salt = salt_from(random_bytes(_SALT_SOURCE_BYTES))
    if password is not None:
        return ScramUser(name, mechanism, credential_of(password, salt, iterations, mechanism))
    salted = _decoded("saltedPassword", salted_text or "")
    return ScramUser(name, mechanism, credential_of_salted(salted, salt, iterations, mechanism))


def _iterations(mechanism: ScramMechanism, text: str | None) -> int:
    if text is None:
        return SCRAM_ITERATIONS_MIN
    try:
        iterations = int(text)
    except ValueError:
        raise ValueError(f"Failed to parse iterations count: {text}") from None
    for bad, bound in (
        (iterations < SCRAM_ITERATIONS_MIN, f">= {SCRAM_ITERATIONS_MIN}"),
        (iterations > SCRAM_ITERATIONS_MAX, f"<= {SCRAM_ITERATIONS_MAX}"),
    ):
        if bad:
            raise ValueError(f"The 'iterations' value must be {bound} for add-scram using {mechanism.sasl_name}")
    return iterations


def _decoded(what: str, text: str) -> bytes:
    try:
        return b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        raise ValueError(f"Failed to decode given {what}") from None
