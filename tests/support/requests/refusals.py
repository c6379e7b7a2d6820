"""What an answer says when the client has no right: which codes, in answers of which APIs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ottla.model.errors import ErrorCode
from ottla.wire.message import Struct, fields

REFUSALS = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
# These need no right: the greeting, and what the owner and the renewers of a token do with it.
EVERYBODY = {
    "ApiVersions",
    "SaslHandshake",
    "SaslAuthenticate",
    "RenewDelegationToken",
    "ExpireDelegationToken",
    "GetTelemetrySubscriptions",
    "PushTelemetry",
}
# These answer everybody; what one may not see is not in the answer.
OPEN = EVERYBODY | {"DescribeCluster", "ListGroups", "ListTransactions", "DescribeDelegationToken"}
# The response of these versions has no place for the error.
SILENT = {("DescribeLogDirs", 1), ("DescribeLogDirs", 2)}


def codes(message: Any, version: int) -> Iterator[int]:
    """All error codes in a response."""
    for field in fields(type(message)):
        value = getattr(message, field.name)
        if field.name.endswith("error_code") and version in field.versions:
            yield value
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, Struct):
                yield from codes(each, version)
