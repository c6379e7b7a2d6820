"""`ottla.remote.storage`: where tiered topics keep their segments, as a URL.

    s3://bucket/prefix?region=eu-central-1          gs://bucket/prefix
    s3://bucket/prefix?endpoint=https://host:9000   az://account/container/prefix
    file:///var/lib/ottla/tier

Credentials are no part of it: settings are shown to whoever may describe a broker.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import parse_qsl, unquote, urlsplit

from ottla.model.hosts import is_host

_PREFIX_CHARS_MAX = 200  # S3 has 1,024 for it and a key


class StoreKind(enum.Enum):
    S3 = "s3"
    GCS = "gs"
    AZURE = "az"
    FILE = "file"


SHAPES = {
    StoreKind.S3: "s3://bucket/prefix",
    StoreKind.GCS: "gs://bucket/prefix",
    StoreKind.AZURE: "az://account/container/prefix",
    StoreKind.FILE: "file:///directory",
}
_OTHER_NAMES = {
    "s3a": StoreKind.S3,
    "s3n": StoreKind.S3,
    "gcs": StoreKind.GCS,
    "azure": StoreKind.AZURE,
    "abfs": StoreKind.AZURE,
    "abfss": StoreKind.AZURE,
    "wasb": StoreKind.AZURE,
    "wasbs": StoreKind.AZURE,
}
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]", re.ASCII)
_ACCOUNT = re.compile(r"[a-z0-9]{3,24}", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
_SECRET = re.compile(r"key|secret|token|password|credential|sas|sig|user", re.IGNORECASE)
_ABSOLUTE = re.compile(r"/.*")


def _is_endpoint(text: str) -> bool:
    parts = urlsplit(text)
    is_alone = not (parts.query or parts.fragment or "@" in parts.netloc)
    return parts.scheme in ("http", "https") and is_host(parts.hostname or "") and parts.port != 0 and is_alone


# name → (what its value has to be, the check)
_ENDPOINT = ("http://host:port or https://host:port", _is_endpoint)
_CA = ("the absolute path of a PEM file", lambda text: _ABSOLUTE.fullmatch(text) is not None)
_PLAIN = ("a name", lambda text: re.fullmatch(r"[A-Za-z0-9._@+=,-]+", text, re.ASCII) is not None)
_OPTIONS = {
    StoreKind.S3: {
        "region": _PLAIN,
        "endpoint": _ENDPOINT,
        "ca": _CA,
        "profile": _PLAIN,
        "style": ("path or virtual", lambda text: text in ("path", "virtual")),
        "sse": ("AES256, aws:kms or aws:kms:dsse", lambda text: text in ("AES256", "aws:kms", "aws:kms:dsse")),
        "kms-key": ("the id or ARN of a key", lambda text: re.fullmatch(r"[\w:/-]+", text, re.ASCII) is not None),
    },
    StoreKind.GCS: {"ca": _CA},
    StoreKind.AZURE: {"endpoint": _ENDPOINT, "ca": _CA},
    StoreKind.FILE: {},
}


class StoreLocationError(ValueError):
    """The URL is no location. The text is one line, with what to do; it does not repeat what may be a secret."""


@dataclass(frozen=True, slots=True)
class StoreLocation:
    """`prefix` is put before every key: empty, or with a slash at its end. Of `FILE` it is the directory itself."""

    kind: StoreKind
    container: str
    prefix: str
    account: str = ""
    options: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def shown(self) -> str:
        """The URL without its options, for messages."""
        names = (self.account, self.container, self.prefix.rstrip("/"))
        return f"{self.kind.value}://{'/'.join(name for name in names if name)}"


def parse_store_location(url: str) -> StoreLocation:
    """Raises `StoreLocationError`."""
    if not url.isprintable() or any(char.isspace() for char in url):
        raise StoreLocationError("the URL has spaces or control characters; write %20 for a space in a directory")
    scheme, separator, rest = url.partition("://")
    try:
        kind = StoreKind(scheme.lower())
    except ValueError:
        raise StoreLocationError(_unknown_scheme(scheme.lower() if separator else "")) from None
    place, _, query = rest.partition("?")
    if "#" in rest:
        raise StoreLocationError("a '#' has no meaning in this URL; leave it out")
    if "@" in place:
        raise StoreLocationError(
            "credentials do not belong in this URL, because settings can be seen; "
            "use the environment, files or roles, and write no '@'"
        )
    options = _options(kind, query)
    if kind is StoreKind.FILE:
        return StoreLocation(kind, "", _directory(place))
    if "%" in place:
        raise StoreLocationError("names of buckets and prefixes have no percent-encoding here; choose plain ones")
    names = place.rstrip("/").split("/")
    account = ""
    if kind is StoreKind.AZURE:
        account = names.pop(0)
        if _ACCOUNT.fullmatch(account) is None or not names:
            raise StoreLocationError(f"account and container are missing or malformed; write {SHAPES[kind]}")
    container = names.pop(0)
    if _BUCKET.fullmatch(container) is None:
        raise StoreLocationError(
            f"the bucket or container needs 3 or more letters, digits, '.', '_' or '-'; write {SHAPES[kind]}"
        )
    return StoreLocation(kind, container, _prefix(names), account, options)


def _unknown_scheme(scheme: str) -> str:
    shapes = ", ".join(SHAPES.values())
    if scheme in _OTHER_NAMES:
        return f"{scheme}:// is written {SHAPES[_OTHER_NAMES[scheme]]} here"
    if not scheme:
        return f"a URL is expected: {shapes}"
    return f"unknown kind of store {scheme[:20]!r}; there are {shapes}"


def _directory(place: str) -> str:
    host, slash, path = place.partition("/")
    try:
        path = unquote(path, errors="strict")
    except ValueError:
        raise StoreLocationError("the percent-encoding of the path is not UTF-8; write it plainly") from None
    names = [name for name in path.split("/") if name]
    if host not in ("", "localhost") or not slash:
        raise StoreLocationError("a directory needs its absolute path, with three slashes: file:///directory")
    if not names:
        raise StoreLocationError("the root directory is no place for a store; name a directory: file:///directory")
    if not path.isprintable() or any(name in (".", "..") for name in names):
        raise StoreLocationError("the path has '.', '..' or control characters; write it plainly: file:///directory")
    return "/" + "/".join(names)


def _prefix(names: list[str]) -> str:
    if any(_NAME.fullmatch(name) is None or name in (".", "..") for name in names):
        raise StoreLocationError(
            "the prefix has an empty name, '.', '..' or a character other than letters, digits, '.', '_', '-'; "
            "choose a plain one"
        )
    prefix = "".join(name + "/" for name in names)
    if len(prefix) > _PREFIX_CHARS_MAX:
        raise StoreLocationError(f"the prefix has {len(prefix)} characters; choose one of up to {_PREFIX_CHARS_MAX}")
    return prefix


def _options(kind: StoreKind, query: str) -> Mapping[str, str]:
    known = _OPTIONS[kind]
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), errors="strict", max_num_fields=20)
    except ValueError:
        raise StoreLocationError("options are written ?name=value&name=value") from None
    options: dict[str, str] = {}
    for name, value in pairs:
        if name not in known:
            raise StoreLocationError(_unknown_option(kind, name))
        if name in options:
            raise StoreLocationError(f"the option {name} comes twice; write it once")
        expected, is_right = known[name]
        try:
            if not is_right(value):
                raise ValueError
        except ValueError:
            raise StoreLocationError(f"the option {name} has to be {expected}") from None
        options[name] = value
    return MappingProxyType(options)


def _unknown_option(kind: StoreKind, name: str) -> str:
    if _SECRET.search(name) is not None:
        return (
            f"the option {name[:40]!r} looks like a credential, which settings would show; "
            "use the environment, files or roles"
        )
    known = ", ".join(_OPTIONS[kind])
    return (
        f"unknown option {name[:40]!r}; {kind.value}:// knows {known}"
        if known
        else (f"unknown option {name[:40]!r}; {kind.value}:// knows none")
    )
