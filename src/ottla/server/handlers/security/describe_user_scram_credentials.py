"""DescribeUserScramCredentials (key 50): which SCRAM mechanisms users have credentials for, and with how many
iterations. Salts and keys are never told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator

from ottla.cluster.state import ClusterState
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation
from ottla.security.sasl.scram.credentials import ScramMechanism
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.loop.later import Answer
from ottla.server.loop.slices import Tally
from ottla.wire.messages.security.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

_Result = DescribeUserScramCredentialsResponse.Result


def _refuse(request: DescribeUserScramCredentialsRequest, error: ApiError) -> DescribeUserScramCredentialsResponse:
    """Refuse the whole request; as with Kafka, there is the same error without a name for each user."""
    results = [_refused("", error.code, error.text) for _ in request.users or ()]
    return DescribeUserScramCredentialsResponse(error_code=error.code, error_message=error.text, results=results)


@handles(
    DescribeUserScramCredentialsRequest,
    needs=Needs((on_cluster(AclOperation.DESCRIBE),), refuse=_refuse),
    on="both",
)
def describe_user_scram_credentials(
    request: DescribeUserScramCredentialsRequest, context: Context
) -> Answer[DescribeUserScramCredentialsResponse]:
    return context.runtime.slices.answer(_describing(request, context.member.state))


def _describing(
    request: DescribeUserScramCredentialsRequest, state: ClusterState
) -> Generator[None, None, DescribeUserScramCredentialsResponse]:
    """Describe the named users; all users if none is named."""
    tally = Tally(limits.ITEMS_PER_SLICE)
    times: Counter[str] = Counter()
    if request.users:
        for asked in request.users:
            times[asked.name] += 1
            if tally.is_full():
                yield
    else:
        times.update(dict.fromkeys((user for user, _ in state.scram), 1))
    results: list[_Result] = []
    for user, count in times.items():
        results.append(_described(state, user) if count == 1 else _named_twice(user))
        if tally.is_full():
            yield
    return DescribeUserScramCredentialsResponse(error_code=ErrorCode.NONE, error_message="", results=results)


def _described(state: ClusterState, user: str) -> _Result:
    found = [record for mechanism in ScramMechanism if (record := state.scram.get((user, mechanism))) is not None]
    if not found:
        missing = f"Attempt to describe a user credential that does not exist: {user}"
        return _refused(user, ErrorCode.RESOURCE_NOT_FOUND, missing)
    infos = [_Result.CredentialInfo(mechanism=each.mechanism, iterations=each.iterations) for each in found]
    return _Result(user=user, error_code=ErrorCode.NONE, error_message="", credential_infos=infos)


def _named_twice(user: str) -> _Result:
    twice = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
    return _refused(user, ErrorCode.DUPLICATE_RESOURCE, twice)


def _refused(user: str, code: ErrorCode, message: str) -> _Result:
    return _Result(user=user, error_code=code, error_message=message, credential_infos=[])
