"""super.users: principals that may do everything."""

from __future__ import annotations

import re

from ottla.security.principal import parse_principal

_SEPARATOR = ";"  # a certificate's name contains commas
_COMMA = re.compile(r",\s*User:")


def super_users(text: str) -> frozenset[str]:
    """Return the principals of the setting as text; raise ValueError if one of them is not of the form Type:name.

    Two principals with a comma between them are refused: Kafka takes them for one with a strange name.
    """
    if _COMMA.search(text):
        raise ValueError(f"principals are separated by semicolons, not commas: {_COMMA.sub(';User:', text)}")
    names = [part.strip() for part in text.split(_SEPARATOR)]
    return frozenset(str(parse_principal(name)) for name in names if name)
