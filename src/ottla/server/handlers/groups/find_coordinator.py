"""FindCoordinator (key 10): the node that coordinates a group, a transactional id, or a share partition.

v4 many keys at once   v6 share partitions, named `group:topic id:partition`
"""

from __future__ import annotations

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster, on_group, on_transaction
from ottla.server.api.portions import Portions
from ottla.server.coordinators.all_coordinators import AnyCoordinators
from ottla.server.loop.later import Answer, Later, gather, settled
from ottla.shares.state.partition import is_coordinator_key
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

Coordinator = FindCoordinatorResponse.Coordinator

GROUP = 0
TRANSACTION = 1
SHARE = 2
_FIRST_VERSION_OF_MANY = FindCoordinatorRequest.since("coordinator_keys")
# The first version in which a key may be that of a share partition (KIP-932).
_FIRST_VERSION_OF_SHARES = 6
_NOBODY = (-1, "", -1)
_NO_ERROR = ApiError(ErrorCode.NONE, "")


@handles(
    FindCoordinatorRequest,
    needs=Needs(
        guard="find_coordinator",
        asks=(
            on_group(AclOperation.DESCRIBE),
            on_transaction(AclOperation.DESCRIBE),
            on_cluster(AclOperation.CLUSTER_ACTION),
        ),
    ),
    portions=Portions("coordinator_keys", "coordinators", limits.ITEMS_PER_SLICE),
)
def find_coordinator(request: FindCoordinatorRequest, context: Context) -> Answer[FindCoordinatorResponse]:
    if context.request_version >= _FIRST_VERSION_OF_MANY:
        found = [_find(key, request.key_type, context) for key in request.coordinator_keys]
        return gather(found).map(lambda them: FindCoordinatorResponse(coordinators=them)).soonest()
    return _find(request.key, request.key_type, context).map(_alone).soonest()


def _alone(one: Coordinator) -> FindCoordinatorResponse:
    code = ErrorCode(one.error_code)
    return FindCoordinatorResponse(
        error_code=code,
        # Kafka's default message.
        error_message=one.error_message or (code.message if code else code.name),
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


def _find(key: str, key_type: int, context: Context) -> Later[Coordinator]:
    try:
        coordinators = _coordinators(key, key_type, context)
    except ApiError as error:
        return settled(_answer(key, _NOBODY, error))

    def found(error: ApiError | None) -> Coordinator:
        try:
            if error is not None:
                raise error
            return _answer(key, _place(coordinators.leader_of(key), context))
        except ApiError as refusal:
            return _answer(key, _NOBODY, ApiError(refusal.code, ""))  # without a message, as with Kafka

    return coordinators.ensure_topic().map(found)


def _place(node_id: int, context: Context) -> tuple[int, str, int]:
    """Return a node id, and the node's address on the client's listener. Raises COORDINATOR_NOT_AVAILABLE."""
    listener = context.connection.listener
    if node_id == context.node_id:
        return node_id, *context.advertised(listener)
    broker = context.member.state.brokers.get(node_id)
    for endpoint in broker.endpoints if broker is not None and not broker.fenced else ():
        if endpoint.name == listener:
            return node_id, endpoint.host, endpoint.port
    raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _answer(key: str, place: tuple[int, str, int], error: ApiError = _NO_ERROR) -> Coordinator:
    node_id, host, port = place
    return Coordinator(
        key=key,
        node_id=node_id,
        host=host,
        port=port,
        error_code=error.code,
        error_message=error.code.message if error.message is None else error.message,
    )


def _coordinators(key: str, key_type: int, context: Context) -> AnyCoordinators:
    if key_type == GROUP:
        return context.groups.coordinators
    if key_type == TRANSACTION:
        return context.transactions.coordinators
    if key_type == SHARE:
        if context.request_version >= _FIRST_VERSION_OF_SHARES and is_coordinator_key(key):
            return context.shares.coordinators
        raise ApiError(ErrorCode.INVALID_REQUEST, "")
    raise ApiError(ErrorCode.INVALID_REQUEST)
