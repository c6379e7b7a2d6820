"""AlterUserScramCredentials (key 51): set and remove users' SCRAM credentials."""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Bytes, Int8, Int16, Int32, String


class AlterUserScramCredentialsRequest(
    Request["AlterUserScramCredentialsResponse"], key=51, versions="0", flexible="0+"
):
    class ScramCredentialDeletion(Struct):
        name: String
        mechanism: Int8

    deletions: list[ScramCredentialDeletion]

    class ScramCredentialUpsertion(Struct):
        name: String
        mechanism: Int8
        iterations: Int32
        salt: Bytes
        salted_password: Bytes

    upsertions: list[ScramCredentialUpsertion]


class AlterUserScramCredentialsResponse(Response, key=51, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0

    class Result(Struct):
        user: String
        error_code: Int16
        error_message: String | None

    results: list[Result]
