"""What of a library's error may be told: one line, without users and queries of URLs, without secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ottla.model import limits

SECRETS = (
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_TOKEN",
    "AWS_SSE_CUSTOMER_KEY_BASE64",
    "AZURE_CLIENT_SECRET",
    "AZURE_ENCRYPTION_KEY",
    "AZURE_FABRIC_SESSION_TOKEN",
    "AZURE_STORAGE_ACCESS_KEY",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_CLIENT_SECRET",
    "AZURE_STORAGE_MASTER_KEY",
    "AZURE_STORAGE_SAS_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_TOKEN",
    "GOOGLE_BEARER_TOKEN",
    "GOOGLE_SERVICE_ACCOUNT_KEY",
)
_USER = re.compile(r"(?<=://)[^/@\s]*@")
_QUERY = re.compile(r"(https?://[^\s?\"'<>)]*)\?[^\s\"'<>)]*")
_NAME = (
    r"[\w-]*(?:signature|password|secret|token|credential|authorization|account[_-]?key|access[_-]?key(?:[_-]?id)?)[\w-]*"
    r"|sig"
)
_VALUE = r"(?:(?:Bearer|Basic|SharedKey|AWS4-HMAC-SHA256)\s+)?[\"']?[^\s\"',;&<>)]+[\"']?"
# name=value, "name": "value", and headers; no sentence like `SignatureDoesNotMatch: The key …`.
_NAMED = re.compile(rf"\b({_NAME})(\s*=\s*)({_VALUE})", re.IGNORECASE)
_QUOTED = re.compile(rf"([\"'](?:{_NAME})[\"']\s*:\s*)({_VALUE})", re.IGNORECASE)
_HEADER = re.compile(rf"\b((?:authorization|x-[\w-]*(?:token|key|signature)[\w-]*)\s*:\s*)({_VALUE})", re.IGNORECASE)


def secrets_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The secrets that stores take from the environment, the longest first."""
    values = {environment.get(name, "") for name in SECRETS}
    return tuple(sorted((each for each in values if len(each) >= limits.STORE_SECRET_CHARS_MIN), key=len, reverse=True))


def redacted(text: str, secrets: Iterable[str] = ()) -> str:
    for secret in secrets:
        text = text.replace(secret, "…")
    text = _QUERY.sub(r"\1?…", _USER.sub("", text))
    text = _NAMED.sub(r"\1\2…", _HEADER.sub(r"\1…", _QUOTED.sub(r"\1…", text)))
    text = " ".join(text.split())
    most = limits.STORE_ERROR_CHARS_MAX
    return text if len(text) <= most else text[: most - 1] + "…"
