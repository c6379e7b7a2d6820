"""The handlers of SCRAM credentials; their rules and texts are compared with Kafka's in tests/compat."""

from __future__ import annotations

import pytest
from tests.server.admin import Admin

from ottla.model.errors import ErrorCode
from ottla.server.loop.later import Disconnect
from ottla.wire.messages.security.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from ottla.wire.messages.security.describe_user_scram_credentials import DescribeUserScramCredentialsRequest

_Alter, _Describe = AlterUserScramCredentialsRequest, DescribeUserScramCredentialsRequest


def credential(user: str, mechanism: int = 1) -> _Alter.ScramCredentialUpsertion:
    return _Alter.ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=4_096, salt=b"salt", salted_password=b"salted"
    )


def described(admin: Admin, *users: str) -> dict[str, list[tuple[int, int]] | ErrorCode]:
    answer = admin.ask(_Describe(users=[_Describe.UserName(name=user) for user in users]))
    return {
        each.user: ErrorCode(each.error_code)
        if each.error_code
        else [(info.mechanism, info.iterations) for info in each.credential_infos]
        for each in answer.results
    }


def test_credentials_survive_a_restart_and_are_never_told() -> None:
    admin = Admin()
    admin.ask(_Alter(deletions=[], upsertions=[credential("alice"), credential("bob", 2)]))
    admin.ask(_Alter(deletions=[], upsertions=[credential("alice", 2)]))
    again = Admin(admin.stop())
    assert described(again) == {"alice": [(1, 4_096), (2, 4_096)], "bob": [(2, 4_096)]}
    assert described(again, "carol", "bob") == {"carol": ErrorCode.RESOURCE_NOT_FOUND, "bob": [(2, 4_096)]}


def test_a_request_that_no_controller_would_carry_out() -> None:
    many = [_Alter.ScramCredentialDeletion(name=str(number), mechanism=1) for number in range(10_001)]
    with pytest.raises(Disconnect, match="10000"):
        Admin().ask(_Alter(deletions=many, upsertions=[]))
