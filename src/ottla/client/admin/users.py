"""SCRAM users: which there are, and setting and removing their passwords.

Rules:
- A password never leaves this process: the broker is sent its salt and the salted password, as by Kafka's own clients.
- A user has at most one password per mechanism. One request can alter a user once, so two mechanisms take two requests.
"""

import asyncio
import os
from collections.abc import Iterable
from typing import NamedTuple

from ottla.client.admin.new_users import checked_password, checked_user
from ottla.client.checks import checked_name, checked_number, kind_of
from ottla.client.cluster import Cluster
from ottla.client.errors import check
from ottla.client.outcomes import Outcomes, told
from ottla.model import limits
from ottla.security.sasl.scram.credentials import ScramMechanism, salt_from, salted_password
from ottla.wire.messages.security.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from ottla.wire.messages.security.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

_Alter = AlterUserScramCredentialsRequest
_SALT_SOURCE_BYTES = 17
_USER = "the name of the user"


class ScramPassword(NamedTuple):
    """A new password of a user."""

    user: str
    password: str
    mechanism: ScramMechanism = ScramMechanism.SHA_512
    iterations: int = limits.SCRAM_ITERATIONS_MAX

    def __repr__(self) -> str:
        return f"ScramPassword({self.user!r}, {self.mechanism.sasl_name})"


class ScramInfo(NamedTuple):
    """What a cluster tells about a user's password: its mechanism and iterations."""

    mechanism: ScramMechanism
    iterations: int


class UserAdmin:
    """Operations on SCRAM users."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def all(self) -> dict[str, tuple[ScramInfo, ...]]:
        """Return every user with the mechanisms that the user has a password for, sorted by name."""
        answer = await self._ask(None)
        return {each.user: _infos(each) for each in sorted(answer.results, key=lambda each: each.user)}

    async def describe(self, user: str) -> tuple[ScramInfo, ...]:
        """Return the mechanisms that a user has a password for. Raise RESOURCE_NOT_FOUND if there is none."""
        return (await self.describe_each([user])).all()[user]

    async def describe_each(self, users: Iterable[str]) -> Outcomes[str, tuple[ScramInfo, ...]]:
        """Describe several users, with an outcome per user."""
        names = list(dict.fromkeys(checked_name(user, _USER) for user in users))
        if not names:
            return Outcomes()
        answer = await self._ask(names)
        return told(names, [(each.user, _infos(each), each.error_code, each.error_message) for each in answer.results])

    async def set_password(
        self,
        user: str,
        password: str,
        *,
        mechanism: ScramMechanism = ScramMechanism.SHA_512,
        iterations: int = limits.SCRAM_ITERATIONS_MAX,
    ) -> None:
        """Create a user, or change a user's password for this mechanism."""
        (await self.set_password_each([ScramPassword(user, password, mechanism, iterations)])).all()

    async def set_password_each(self, passwords: Iterable[ScramPassword]) -> Outcomes[str, None]:
        """Set passwords of several users, with an outcome per user."""
        wanted = [_checked(each) for each in passwords]
        upsertions = [await asyncio.to_thread(_upsertion, each) for each in wanted]
        return await self._alter(_Alter(deletions=[], upsertions=upsertions), [each.name for each in upsertions])

    async def remove(self, user: str, mechanism: ScramMechanism | None = None) -> None:
        """Remove a user's password for a mechanism, or (None) for all mechanisms that the user has one for."""
        mechanisms = [each.mechanism for each in await self.describe(user)] if mechanism is None else [mechanism]
        for each in mechanisms:
            (await self.remove_each([(user, each)])).all()

    async def remove_each(self, passwords: Iterable[tuple[str, ScramMechanism]]) -> Outcomes[str, None]:
        """Remove passwords of several users, with an outcome per user."""
        deletions = [
            _Alter.ScramCredentialDeletion(name=checked_name(user, _USER), mechanism=_mechanism(each))
            for user, each in passwords
        ]
        return await self._alter(_Alter(deletions=deletions, upsertions=[]), [each.name for each in deletions])

    async def _alter(self, request: _Alter, users: list[str]) -> Outcomes[str, None]:
        answer = await self._cluster.call(request, repeatable=False)
        return told(users, [(each.user, None, each.error_code, each.error_message) for each in answer.results])

    async def _ask(self, users: list[str] | None) -> DescribeUserScramCredentialsResponse:
        kind = DescribeUserScramCredentialsRequest.UserName
        names = None if users is None else [kind(name=user) for user in users]
        request = DescribeUserScramCredentialsRequest(users=names)
        answer = await self._cluster.call(request, error_of=lambda each: each.error_code)
        check(answer.error_code, answer.error_message)
        return answer


def _checked(wanted: ScramPassword) -> ScramPassword:
    if not isinstance(wanted, ScramPassword):
        raise TypeError(f"a list of ScramPassword(...) is needed, not of {kind_of(wanted)}")
    return ScramPassword(
        checked_user(wanted.user),
        checked_password(wanted.password),
        _mechanism(wanted.mechanism),
        checked_number(wanted.iterations, "iterations"),
    )


def _mechanism(mechanism: object) -> ScramMechanism:
    if not isinstance(mechanism, ScramMechanism):
        raise TypeError(f"mechanism must be a ScramMechanism, not {kind_of(mechanism)}")
    return mechanism


def _upsertion(wanted: ScramPassword) -> _Alter.ScramCredentialUpsertion:
    salt = salt_from(os.urandom(_SALT_SOURCE_BYTES))
    return _Alter.ScramCredentialUpsertion(
        name=wanted.user,
        mechanism=wanted.mechanism,
        iterations=wanted.iterations,
        salt=salt,
        # The broker refuses a number that is out of bounds: it must not keep this process busy.
        salted_password=salted_password(
            wanted.password, salt, min(max(1, wanted.iterations), limits.SCRAM_ITERATIONS_MAX), wanted.mechanism
        ),
    )


def _infos(result: DescribeUserScramCredentialsResponse.Result) -> tuple[ScramInfo, ...]:
    known = (each for each in result.credential_infos if each.mechanism in ScramMechanism._value2member_map_)
    return tuple(sorted(ScramInfo(ScramMechanism(each.mechanism), each.iterations) for each in known))
