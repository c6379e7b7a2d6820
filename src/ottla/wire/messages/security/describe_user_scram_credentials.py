"""DescribeUserScramCredentials (key 50): which SCRAM mechanisms users have credentials for."""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Int8, Int16, Int32, String


class DescribeUserScramCredentialsRequest(
    Request["DescribeUserScramCredentialsResponse"], key=50, versions="0", flexible="0+"
):
    class UserName(Struct):
        name: String

    users: list[UserName] | None


class DescribeUserScramCredentialsResponse(Response, key=50, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None

    class Result(Struct):
        user: String
        error_code: Int16
        error_message: String | None

        class CredentialInfo(Struct):
            mechanism: Int8
            iterations: Int32

        credential_infos: list[CredentialInfo]

    results: list[Result]
