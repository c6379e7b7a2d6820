"""AlterUserScramCredentials (key 51): set and remove users' SCRAM credentials."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.cluster.commands.alter_scram_credentials import (
    AlterScramCredentials,
    ScramAlteration,
    ScramDeletion,
    ScramUpsertion,
)
from ottla.machine.stepped import collected
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.loop.later import Disconnect, Large, Later
from ottla.server.loop.slices import Slices
from ottla.server.quorum.active_controller import Decided
from ottla.wire.messages.security.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)


def _check(request: AlterUserScramCredentialsRequest, _: Context) -> None:
    """Close the connection of a client that alters more users than any controller does at once. Up to this number, a
    refusal of the whole request, which names every user, takes some milliseconds.
    """
    if len(request.deletions) + len(request.upsertions) > limits.CREDENTIALS_PER_REQUEST_MAX:
        raise Disconnect(f"one request alters at most {limits.CREDENTIALS_PER_REQUEST_MAX} SCRAM credentials")


def _refuse(request: AlterUserScramCredentialsRequest, error: ApiError) -> AlterUserScramCredentialsResponse:
    users = sorted({each.name for each in request.deletions} | {each.name for each in request.upsertions})
    return AlterUserScramCredentialsResponse(results=[_result(ScramAlteration(user, error)) for user in users])


def _named(request: AlterUserScramCredentialsRequest) -> Iterator[str]:
    yield from (f"set {each.name}" for each in request.upsertions)
    yield from (f"remove {each.name}" for each in request.deletions)


@handles(
    AlterUserScramCredentialsRequest,
    needs=Needs((on_cluster(AclOperation.ALTER),), changes=_named),
    on="both",
    forwarded=True,
    refuse=_refuse,
    check=_check,
)
def alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, context: Context
) -> Decided[AlterUserScramCredentialsResponse]:
    deletions = tuple(ScramDeletion(each.name, each.mechanism) for each in request.deletions)
    upsertions = tuple(
        ScramUpsertion(each.name, each.mechanism, each.iterations, bytes(each.salt), bytes(each.salted_password))
        for each in request.upsertions
    )
    reply = context.member.controller.submit(AlterScramCredentials(deletions, upsertions))
    return _answer(reply, context.runtime.slices)


async def _answer(
    reply: Later[list[ScramAlteration] | ApiError], slices: Slices
) -> AlterUserScramCredentialsResponse | ApiError | Large[AlterUserScramCredentialsResponse]:
    outcomes = await reply
    if isinstance(outcomes, ApiError):
        return outcomes
    per_slice = limits.METADATA_RECORDS_PER_SLICE
    results = await slices.finish(collected(map(_result, outcomes), per_slice))
    response = AlterUserScramCredentialsResponse(results=results)
    return Large(response) if len(results) > per_slice else response


def _result(outcome: ScramAlteration) -> AlterUserScramCredentialsResponse.Result:
    error = outcome.error
    return AlterUserScramCredentialsResponse.Result(
        user=outcome.user,
        error_code=error.code if error else ErrorCode.NONE,
        error_message=error.text if error else None,
    )
