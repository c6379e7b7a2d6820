"""JSON of tokens and keys: what two parsers could read differently is refused."""

from __future__ import annotations

import json


class InvalidJson(ValueError):
    """The text does not contain the document, which may be a token."""


def parse_json_object(text: bytes) -> dict[str, object]:
    """Parse an object in UTF-8; refuse repeated members, NaN, infinities and text that is not Unicode."""
    try:
        parsed: object = json.loads(text.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
        if not isinstance(parsed, dict):
            raise InvalidJson("it is not a JSON object")
        json.dumps(parsed, ensure_ascii=False, allow_nan=False).encode()
    except InvalidJson:
        raise
    except (ValueError, RecursionError):  # a lone surrogate is a UnicodeEncodeError, which is a ValueError
        raise InvalidJson("it is not valid JSON") from None
    return parsed


def _unique(members: list[tuple[str, object]]) -> dict[str, object]:
    unique = dict(members)
    if len(unique) != len(members):
        raise InvalidJson("a member of an object is repeated")
    return unique


def _no_constant(name: str) -> object:
    raise InvalidJson("NaN and infinities are not JSON")
