"""What the library says, and what it becomes. The texts are of obstore 0.12; the servers' bodies of their manuals."""

from __future__ import annotations

import pytest
from obstore.exceptions import (
    AlreadyExistsError,
    GenericError,
    InvalidPathError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from ottla.model import limits
from ottla.tier.stores.cloud_errors import store_error
from ottla.tier.stores.errors import (
    ObjectExists,
    ObjectNotFound,
    StoreBroken,
    StoreDenied,
    StoreError,
    StoreFull,
    StoreUnavailable,
)

HEAD = "Generic S3 error: Error performing PUT https://host:9000/bucket/key?X-Amz-Signature=abc in 1.2ms - "


def answer(status: str, code: str = "", message: str = "") -> str:
    body = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{message}</Message><Key>k</Key></Error>' * bool(
        code
    )
    return f"{HEAD}Server returned non-2xx status code: {status}: {body}\n\nDebug source:\nGeneric {{ secrets }}"


def way(problem: str) -> str:
    return f"{HEAD}{problem}\n\nDebug source:\n…"


@pytest.mark.parametrize(
    ("error", "action", "kind"),
    [
        (GenericError(answer("503 Service Unavailable", "SlowDown", "Reduce your rate")), "put", StoreUnavailable),
        (GenericError(answer("500 Internal Server Error")), "read", StoreUnavailable),
        (GenericError(answer("429 Too Many Requests")), "put", StoreUnavailable),
        (GenericError(way("HTTP error: error sending request")), "put", StoreUnavailable),
        (GenericError(way("HTTP error: operation timed out")), "read", StoreUnavailable),
        (GenericError(answer("400 Bad Request", "RequestTimeout", "idle")), "put", StoreUnavailable),
        (AlreadyExistsError(answer("409 Conflict", "OperationAborted", "another one")), "create", StoreUnavailable),
        (AlreadyExistsError(answer("409 Conflict", "ConditionalRequestConflict", "x")), "create", StoreUnavailable),
        (AlreadyExistsError(answer("409 Conflict")), "put", StoreUnavailable),
        (AlreadyExistsError(answer("412 Precondition Failed", "PreconditionFailed", "x")), "create", ObjectExists),
        (AlreadyExistsError(answer("409 Conflict", "BlobAlreadyExists", "x")), "create", ObjectExists),
        (FileNotFoundError(answer("404 Not Found", "NoSuchKey", "x")), "read", ObjectNotFound),
        (FileNotFoundError(answer("404 Not Found")), "look", ObjectNotFound),
        (FileNotFoundError(answer("404 Not Found", "NoSuchBucket", "x")), "read", StoreBroken),
        (FileNotFoundError(answer("404 Not Found", "ContainerNotFound", "x")), "put", StoreBroken),
        (PermissionDeniedError(answer("403 Forbidden", "AccessDenied", "x")), "put", StoreDenied),
        (PermissionDeniedError(answer("403 Forbidden", "QuotaExceeded", "x")), "put", StoreFull),
        (UnauthenticatedError(answer("401 Unauthorized")), "read", StoreDenied),
        (GenericError(answer("507 Insufficient Storage")), "put", StoreFull),
        (GenericError(answer("416 Range Not Satisfiable", "InvalidRange", "x")), "read", StoreBroken),
        (GenericError(answer("400 Bad Request", "EntityTooLarge", "x")), "put", StoreBroken),
        (GenericError(answer("501 Not Implemented")), "create", StoreBroken),
        (PreconditionError(answer("412 Precondition Failed")), "put", StoreBroken),
        (GenericError(way("Received redirect without LOCATION, this normally …")), "read", StoreBroken),
        (GenericError(way("HTTP error: x") + "error: InvalidCertificate(\n   UnknownIssuer,"), "put", StoreBroken),
        (InvalidPathError('Path "a//b" contained empty path segment'), "put", StoreBroken),
        (ValueError("so not"), "put", StoreBroken),
        (
            GenericError("Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token in 5s  - x"),
            "put",
            StoreDenied,
        ),
    ],
)
def test_each_failure_has_its_kind(error: Exception, action: str, kind: type[StoreError]) -> None:
    found = store_error(error, action, "key")
    assert type(found) is kind, found
    assert "secrets" not in str(found) and "abc" not in str(found) and "\n" not in str(found)


def test_what_is_told_names_the_call_and_the_reason() -> None:
    error = store_error(GenericError(answer("503 Service Unavailable", "SlowDown", "Reduce your rate")), "put", "a/b")
    assert str(error) == "put a/b: 503 Service Unavailable SlowDown: Reduce your rate"
    refused = GenericError(way("HTTP error: error sending request") + '\nOs { message: "Connection refused", }')
    assert str(store_error(refused, "read", "a/b")) == "read a/b: Connection refused at https://host:9000"
    late = GenericError(way("HTTP error: error sending request") + "\nHttpError { kind: Timeout, source: x }")
    assert str(store_error(late, "read", "a/b")) == "read a/b: timed out at https://host:9000"


def test_what_is_told_has_no_secret_and_an_end() -> None:
    body = "<Error><Code>Odd</Code><Message>the key s3cr3t-value is odd " + "x" * 10_000 + "</Message></Error>"
    error = store_error(GenericError(f"status code: 500 Odd: {body}"), "put", "a", ["s3cr3t-value"])
    assert "s3cr3t" not in str(error) and "the key … is odd" in str(error)
    assert len(str(error)) < limits.STORE_ERROR_CHARS_MAX + 50
