"""The guard of FindCoordinator: DESCRIBE on the group or transactional id; CLUSTER_ACTION for share coordinators, which
only brokers look for.
"""

from __future__ import annotations

from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.guard.checks import decisions_of, denied, holds
from ottla.server.api.guard.items import ItemsGuard
from ottla.server.api.guard.refusal import Paths, refusal
from ottla.server.api.needs import CheckedItems, on_cluster, on_group, on_transaction
from ottla.server.api.refusals import Handler
from ottla.server.loop.later import Answer
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
_RIGHTS = {_GROUP: on_group(AclOperation.DESCRIBE, ""), _TRANSACTION: on_transaction(AclOperation.DESCRIBE, "")}
_OF_BROKERS = on_cluster(AclOperation.CLUSTER_ACTION)
_FIRST_VERSION_OF_MANY = FindCoordinatorRequest.since("coordinator_keys")
_FIRST_VERSION_OF_SHARES = 6
_OF, _INTO = "coordinator_keys", "coordinators:key"
_NOBODY = (("node_id", -1), ("host", ""), ("port", -1), ("error_message", ""))


def guard(handler: Handler) -> Handler:
    many: dict[int, Handler] = {
        kind: ItemsGuard(
            CheckedItems(right, _OF, _INTO, order="place", refused=_NOBODY), handler, FindCoordinatorResponse
        )
        for kind, right in _RIGHTS.items()
    }

    def find_coordinator(request: FindCoordinatorRequest, context: Context) -> Answer[FindCoordinatorResponse]:
        version, kind, decisions = context.request_version, request.key_type, decisions_of(context)
        told = dict(_NOBODY)
        if kind == _SHARE and version >= _FIRST_VERSION_OF_SHARES and not holds(_OF_BROKERS, request, decisions):
            error = denied(_OF_BROKERS, "FindCoordinator")
            told["error_message"] = error.code.message
            return refusal(request, FindCoordinatorResponse, version, error, Paths.between(_OF, _INTO), **told)
        if version >= _FIRST_VERSION_OF_MANY:
            return many.get(kind, handler)(request, context)
        right = _RIGHTS.get(kind)
        if right is None or decisions.allows(right.operation, right.resource, request.key):
            return handler(request, context)
        told["error_message"] = right.error.message
        return refusal(request, FindCoordinatorResponse, version, denied(right, ""), None, **told)

    return find_coordinator
