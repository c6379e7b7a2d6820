"""Where a node pushes its metrics and traces to: the settings `ottla.otel.…`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import SplitResult, unquote, urlsplit

from ottla.model.config import Config
from ottla.model.settings.own import (
    OTTLA_OTEL_CA_FILE,
    OTTLA_OTEL_ENDPOINT,
    OTTLA_OTEL_HEADERS,
    OTTLA_OTEL_TRACES_RATIO,
)

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")
# Python's HTTP client sends headers in Latin-1.
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*\Z")


@dataclass(frozen=True, slots=True)
class OtelPlace:
    """A collector's address without `/v1/metrics` or `/v1/traces`, and how to reach it."""

    url: SplitResult
    headers: dict[str, str] = field(repr=False)
    ca_file: str | None

    @property
    def shown(self) -> str:
        return f"{self.url.scheme}://{self.url.netloc}{self.url.path}"


def otel_place(settings: Config) -> OtelPlace | None:
    """Return where to push to; None if nothing is pushed. Raises ValueError, whose text has no secret."""
    text = settings[OTTLA_OTEL_ENDPOINT]
    if not text:
        return None
    url = _url(text)
    headers = _headers(settings[OTTLA_OTEL_HEADERS] or "")
    if headers and url.scheme == "http" and not _is_loopback(url.hostname or ""):
        raise ValueError(
            f"{OTTLA_OTEL_HEADERS.name} would be sent in plain text to {url.hostname}: "
            f"{OTTLA_OTEL_ENDPOINT.name} must be an https address"
        )
    return OtelPlace(url, headers, settings[OTTLA_OTEL_CA_FILE] or None)


def otel_problems(settings: Config) -> Iterator[str]:
    """Yield why the node must not start."""
    try:
        place = otel_place(settings)
    except ValueError as error:
        yield str(error)
        return
    if place is None:
        if settings[OTTLA_OTEL_TRACES_RATIO]:
            yield f"{OTTLA_OTEL_TRACES_RATIO.name} needs {OTTLA_OTEL_ENDPOINT.name}, where traces are pushed to"
    elif place.ca_file is not None and not os.access(place.ca_file, os.R_OK):
        yield f"{OTTLA_OTEL_CA_FILE.name} is {place.ca_file}, which cannot be read"


def _url(text: str) -> SplitResult:
    try:
        url = urlsplit(text.rstrip("/"))
        is_valid = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:  # the port is none, or the host
        is_valid = False
    if is_valid and url.username is None and not (url.query or url.fragment):
        return url
    # The text is not repeated: somebody may have put a password into it.
    raise ValueError(
        f"{OTTLA_OTEL_ENDPOINT.name} must be http://HOST:PORT or https://HOST:PORT, perhaps with a path, and nothing "
        f"else; users and tokens belong into {OTTLA_OTEL_HEADERS.name}"
    )


def _headers(text: str) -> dict[str, str]:
    headers: dict[str, str] = {}
    for number, each in enumerate(filter(None, map(str.strip, text.split(","))), 1):
        name, equals, value = each.partition("=")
        name, value = name.strip(), unquote(value.strip())
        if not equals or not _HEADER_NAME.match(name) or not _HEADER_VALUE.match(value):
            raise ValueError(f"{OTTLA_OTEL_HEADERS.name} must be name=value,name=value: entry {number} is not")
        headers[name] = value
    return headers


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
