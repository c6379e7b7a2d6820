r"""Patterns of transactional ids, as admins write them: RE2's syntax, which Kafka takes, on top of Python's.

What Python knows and RE2 does not (lookaround, backreferences, conditions, atomic groups, possessive repetition) is
refused as Kafka refuses it; what RE2 knows and Python does not (`\Q…\E`, `\z`, `(?<name>…)`) is put in other words.
"""

from __future__ import annotations

import re

from ottla.model.errors import ApiError, ErrorCode

_TOKEN = re.compile(
    r"\\Q(.*?)(?:\\E|$)|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?(?:<?[=!]|>|\(|#|P[=>])|\(\?<(?=\w)|[*+?}]\+|.",
    re.DOTALL,
)
_REFUSED = ("(?=", "(?!", "(?<=", "(?<!", "(?>", "(?(", "(?#", "(?P=", "(?P>")
_OTHER_WORDS = {r"\z": r"\Z", "(?<": "(?P<", r"\C": "."}


def pattern_of(text: str) -> re.Pattern[str]:
    """Raises INVALID_REGULAR_EXPRESSION."""
    try:
        return re.compile("".join(_translated(found) for found in _TOKEN.finditer(text)))
    except (re.error, OverflowError, RecursionError) as error:
        raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, str(error)) from error


def _translated(found: re.Match[str]) -> str:
    token = found.group()
    if token.startswith(r"\Q"):
        return re.escape(found.group(1))
    possessive = len(token) == 2 and token[1] == "+" and token[0] != "\\"
    backreference = len(token) == 2 and token[0] == "\\" and token[1] in "123456789Z"
    if possessive or backreference or token in _REFUSED:
        raise re.error(f"{token} is not supported")
    return _OTHER_WORDS.get(token, token)
