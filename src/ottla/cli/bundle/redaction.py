"""Redaction: take secrets out of whatever goes into a support bundle.

Rules:
- What has a name is judged by it: settings by their declarations, everything that no declaration knows by words in its
  name (password, token, key and the like). Too much hidden is no harm.
- Texts, such as log lines, are searched for the forms in which secrets appear: NAME=VALUE and NAME: VALUE, also in
  JSON and JAAS, URLs with a user, private keys, headers of HTTP, tokens.
- The value of each secret that was seen anywhere is taken out of every text that is packed after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from ottla.client.security.names import is_secret_name
from ottla.client.security.secret import HIDDEN
from ottla.model.broker_settings import BROKER_SETTINGS
from ottla.model.config import declared

# Shorter values are left in texts: "true" may be somebody's password, and is in every file.
_KNOWN_LENGTH_MIN = 6
_WORDS = (
    r"pass(?:word|wd|phrase|code)?|pwd|secret|token|credentials?|jaas|hmac|api[-_.]?key|access[-_.]?key|private[-_.]?key"
    r"|auth(?:orization)?|user[-_.]?info|cookie|signature|salt|bearer"
)
# Headers and parameters of services that call a secret otherwise.
_SERVICES = r"honeycomb[-_.]team|(?:ingestion|license|insert|functions|subscription|account|signing)[-_.]?key"
# The words of a name: at its beginning or behind a mark, and not followed by a letter ("author" is no "auth").
_NAME = re.compile(
    rf"(?:^|[-_.\s])(?:\w*(?:password|passwd|secret|apikey|token)\w*|(?:{_WORDS}|{_SERVICES}))(?![a-z])", re.I
)
# Settings and variables that are headers: NAME=VALUE,NAME=VALUE, values percent-encoded.
_HEADERS = re.compile(r"(?:^|[-_.])headers$", re.I)
_PRIVATE = r"[A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----"
_KEY_BLOCK = re.compile(rf"-----BEGIN {_PRIVATE}.*?(?:-----END {_PRIVATE}|\Z)", re.S)
_KEY_REST = re.compile(rf"\A(?:[A-Za-z0-9+/=:,\- ]*\r?\n)*?-----END {_PRIVATE}")  # of a text that begins within a key
_JAAS = re.compile(
    r"(?<![\w.])[\w.]*LoginModule\s+(?:required|requisite|sufficient|optional)\b(?:[^;]{0,2000};|[^\n]*)", re.I
)
_JAAS_USER = re.compile(r"\b(user_[\w.-]+\s*=\s*\\{0,3}\")[^\"\\]*")
_URL = re.compile(r"(?<![a-z0-9+.-])([a-z][a-z0-9+.-]*://)[^\s\"'<>]*@", re.I)
_HEADER = re.compile(r"\b(Basic|Bearer|Negotiate|Digest)(\s+)[A-Za-z0-9+/=_.~-]{6,}")
_WEB_TOKEN = re.compile(r"\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?")
_CLOUD_KEY = re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bgh[pousr]_[A-Za-z0-9]{20,}")
_QUOTE = r"\\{0,3}[\"']"
_SECRET_NAME = (
    r"(?<![\w.-])(?P<name>[\w.-]*(?:password|passwd|passphrase|pwd|secret|token|credentials?|api[-_.]?key"
    r"|access[-_.]?key|ssl\.keystore\.key|jaas\.config|user\.info|hmac|authorization|cookie|signature"
    rf"|(?:otel|otlp|traces|metrics|logs)[-_.]headers|{_SERVICES})[\w.-]*)"
)
_PAIR = re.compile(
    _SECRET_NAME + rf"(?P<mark>(?:{_QUOTE})?(?:\s*[=:]\s*|\s+(?=[\"'])))"
    rf"(?:(?P<quote>{_QUOTE})(?P<quoted>.*?)(?P=quote)|(?P<bare>[^\s\"']+))",
    re.I,
)
_LINE = re.compile(rf"^(?P<space>\s*){_SECRET_NAME}(?P<mark>[ \t]*[=:][ \t]*)(?P<bare>\S[^\n]*)$", re.I | re.M)
_SIGNED_URL = re.compile(r"([?&;]sig=)[^&\s\"'<>]+", re.I)
_IN_JAAS = re.compile(r"\b(?:password|user_[\w.-]+|clientSecret)\s*=\s*[\"']?([^\"';\s]+)")
_BEHIND_USER = re.compile(r"\A[\w.@-]+:(\S+)\Z")
_PASSWORD_IN_URL = re.compile(r"://[^:@/\s]*:([^@\s]+)@")
_OPTION = re.compile(r"(--[a-z-]*(?:password|secret|token)[a-z-]*(?:\s+|=))(\S+)", re.I)
_PLAIN_WORDS = re.compile(r"true|false|null|none|-?\d{1,4}|\[hidden\]", re.I)


def is_secret(name: str) -> bool:
    """Whether the value of a setting or variable with this name must not be shown."""
    setting = declared(name, BROKER_SETTINGS)
    if setting is not None:
        return setting.sensitive or is_secret_name(name)
    return is_secret_name(name) or _NAME.search(name) is not None or _HEADERS.search(name) is not None


class Redaction:
    """Takes secrets out of texts, and remembers those that it has seen under their names."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def settings(self, values: Mapping[str, str]) -> dict[str, str]:
        """Return settings, or variables, as they may be shown."""
        for name, value in values.items():
            if is_secret(name):
                self.note(value)
            if _HEADERS.search(name):
                for part in _in_headers(value):
                    self.note(part)
            for password in _PASSWORD_IN_URL.findall(value):
                self.note(password)
        return {name: HIDDEN if is_secret(name) else self.text(value) for name, value in values.items()}

    def note(self, secret: str) -> None:
        """Remember a secret, and those that are a part of it: in a JAAS line, or behind the name of a user."""
        for each in (secret, *_IN_JAAS.findall(secret), *_BEHIND_USER.findall(secret)):
            if len(each) >= _KNOWN_LENGTH_MIN and not _PLAIN_WORDS.fullmatch(each):
                self._known.add(each)
                self._pattern = None

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        text = _KEY_REST.sub(HIDDEN, text)
        text = _KEY_BLOCK.sub(HIDDEN, text)
        text = _JAAS.sub(HIDDEN, text)
        text = _JAAS_USER.sub(rf"\1{HIDDEN}", text)
        text = _URL.sub(rf"\1{HIDDEN}@", text)
        text = _HEADER.sub(rf"\1\2{HIDDEN}", text)
        text = _WEB_TOKEN.sub(HIDDEN, text)
        text = _CLOUD_KEY.sub(HIDDEN, text)
        text = _OPTION.sub(rf"\1{HIDDEN}", text)
        text = _SIGNED_URL.sub(rf"\1{HIDDEN}", text)
        text = _LINE.sub(_hidden_line, text)
        text = _PAIR.sub(_hidden_pair, text)
        return self._without_known(text)

    def _without_known(self, text: str) -> str:
        if not self._known:
            return text
        if self._pattern is None:
            longest_first = sorted(self._known, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))
        return self._pattern.sub(HIDDEN, text)


def _in_headers(headers: str) -> Iterator[str]:
    """Yield the values of headers, as they are written and as they are sent, and what is behind a scheme."""
    for each in headers.split(","):
        value = each.partition("=")[2].strip()
        for text in (value, unquote(value)):
            yield text
            yield text.rpartition(" ")[2]


def _hidden_line(found: re.Match[str]) -> str:
    if _PLAIN_WORDS.fullmatch(found["bare"]) or declared_openly(found["name"]):
        return found[0]
    return f"{found['space']}{found['name']}{found['mark']}{HIDDEN}"


def _hidden_pair(found: re.Match[str]) -> str:
    value = found["quoted"] if found["bare"] is None else found["bare"]
    if not value or _PLAIN_WORDS.fullmatch(value) or declared_openly(found["name"]):
        return found[0]
    quote = found["quote"] or ""
    return f"{found['name']}{found['mark']}{quote}{HIDDEN}{quote}"


def declared_openly(name: str) -> bool:
    """Whether this is a setting of nodes that is no secret, whatever words are in its name."""
    return declared(name, BROKER_SETTINGS) is not None and not is_secret(name)
