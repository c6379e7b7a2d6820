"""What the library's errors mean (obstore, on Rust's object_store), as errors of ours.

The library tells some kinds by class and the rest as text: what it was doing, the URL, and either what went wrong on
the way or `Server returned non-2xx status code: 503 …: BODY`. Only the status, and the code and the message of an XML
body, are taken from an answer: bodies of refused requests quote what was signed.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    UnauthenticatedError,
)

from ottla.model import limits
from ottla.tier.stores.errors import (
    ObjectExists,
    ObjectNotFound,
    StoreBroken,
    StoreDenied,
    StoreError,
    StoreFull,
    StoreUnavailable,
)
from ottla.tier.stores.redaction import redacted

_STATUS = re.compile(r"status code: (\d{3})( [A-Za-z][A-Za-z ]*)?")
_CODE = re.compile(r"<(?:Code|code)>([A-Za-z0-9.]+)</")
_MESSAGE = re.compile(r"<(?:Message|message)>([^<\n]+)")
# Of what went wrong on the way, the text has "error sending request" only; the reason is in the debug output.
_CERTIFICATE = re.compile(r"InvalidCertificate\(\s*(\w+)|invalid peer certificate: (\w+)")
_CAUSE = re.compile(r'\b(?:message|error): "([^"\n]+)"')
_TIMED_OUT = re.compile(r"\bkind: Timeout\b")
_WHERE = re.compile(r"https?://[^\s/?]+")
_TRANSIENT_STATUS = {408, 409, 425, 429, 500, 502, 503, 504}
_TRANSIENT_CODES = {
    "ConditionalRequestConflict",
    "InternalError",
    "OperationAborted",
    "OperationTimedOut",
    "RequestTimeout",
    "ServerBusy",
    "SlowDown",
    "ServiceUnavailable",
    "Throttling",
    "ThrottlingException",
}
_NO_ROOM = {"InsufficientStorage", "QuotaExceeded", "XMinioAdminBucketQuotaExceeded", "XMinioStorageFull"}
_WRONG_REGION = {"AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "PermanentRedirect"}
_NO_PLACE = {"ContainerNotFound", "NoSuchBucket"}
# The addresses at which clouds tell a machine who it is: they are asked when nothing else has credentials.
_MACHINE_IDENTITY = ("169.254.169.254", "169.254.170.2", "169.254.170.23", "metadata.google.internal")
_WITHOUT_IDENTITY = "found no credentials in the environment, in files, or as a role of this machine"
_WRONG_RANGE = ("InvalidRange", "Requested range", "Wanted range", "Range started at", "got unexpected range")


def store_error(error: Exception, action: str, key: str, secrets: Iterable[str] = ()) -> StoreError:
    """`action` is what was called, one of the port's names."""
    text, _, source = str(error)[: limits.STORE_ERROR_LOOKED_AT_BYTES].partition("\n\nDebug source:")
    status, code = _status(text), _found(_CODE, text)
    what = f"{action} {key or 'all'}"
    if any(address in text for address in _MACHINE_IDENTITY):
        return StoreDenied(f"{what}: {_WITHOUT_IDENTITY}", "see docs/object-stores.md")
    told = f"{what}: {redacted(_reason(text, source), secrets)}"
    if code in _NO_PLACE or "bucket does not exist" in text:
        return StoreBroken(told, "create the bucket or container, or mend ottla.remote.storage")
    if code in _NO_ROOM or status == 507:
        return StoreFull(told, "raise the quota or make room in the store")
    if code in _TRANSIENT_CODES:
        return StoreUnavailable(told)
    if isinstance(error, FileNotFoundError):
        return ObjectNotFound(f"{key}: there is no such object")
    if isinstance(error, AlreadyExistsError):
        return ObjectExists(f"{key}: there is one already") if action == "create" else StoreUnavailable(told)
    is_denied = isinstance(error, PermissionDeniedError | UnauthenticatedError)
    if is_denied or status in (401, 403) or code == "AccessDenied":
        return StoreDenied(told, "check the credentials of the environment, files or role, and their rights")
    if any(words in text for words in _WRONG_RANGE) or status == 416:
        return StoreBroken(f"{what}: the object is shorter than what was asked for")
    if "Received redirect" in text or status in (301, 307, 308) or code in _WRONG_REGION:
        return StoreBroken(told, "the bucket is in another region: set region= in ottla.remote.storage")
    if _CERTIFICATE.search(source) is not None:
        return StoreBroken(told, "name its authority by ca= in ottla.remote.storage")
    if isinstance(error, BaseError) and (status is None or status in _TRANSIENT_STATUS):
        # Without a status the request did not get through, or its answer did not: unless it was refused unsent.
        is_refused = type(error).__name__ in ("InvalidPathError", "NotSupportedError", "UnknownConfigurationKeyError")
        return StoreBroken(told) if is_refused else StoreUnavailable(told)
    return StoreBroken(told)


def _status(text: str) -> int | None:
    found = _STATUS.search(text)
    return None if found is None else int(found[1])


def _found(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return "" if found is None else html.unescape(found[1]).strip()


def _reason(text: str, source: str) -> str:
    status = _STATUS.search(text)
    code, message = _found(_CODE, text), _found(_MESSAGE, text)
    if status is not None or code:
        head = "" if status is None else f"{status[1]}{status[2] or ''}"
        return " ".join(f"{head} {code}{': ' + message if message else ''}".split())
    where = _WHERE.search(text)
    certificate = _CERTIFICATE.search(source)
    untrusted = "" if certificate is None else f"the certificate is not trusted ({certificate[1] or certificate[2]})"
    cause = untrusted or _found(_CAUSE, source)
    if where is None or not (cause or _TIMED_OUT.search(source)):
        return text.split("\n", 1)[0]
    return f"{cause or 'timed out'} at {where[0]}"
