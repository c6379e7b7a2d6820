"""SlowRequests: logs requests that took longer than `ottla.slow.request.ms`, one line each.

Where the time went is told in Kafka's words: local is until the handler returned, remote is waiting for other nodes,
disks or records. A request whose client asked to wait (`_WAITING`) is judged by its local time alone.
"""

from __future__ import annotations

import logging

from ottla.server.api.context import Context
from ottla.server.api.dispatch import Route
from ottla.wire.messages.groups.join_group import JoinGroupRequest
from ottla.wire.messages.groups.sync_group import SyncGroupRequest
from ottla.wire.messages.records.fetch import FetchRequest
from ottla.wire.messages.shares.share_fetch import ShareFetchRequest

log = logging.getLogger(__name__)

_WAITING = frozenset(each.key for each in (FetchRequest, ShareFetchRequest, JoinGroupRequest, SyncGroupRequest))
_NAME_CHARS_MAX = 100


class SlowRequests:
    def __init__(self, limit_ms: int) -> None:
        self._limit_s = limit_ms / 1000

    def handled(self, route: Route, context: Context, local_s: float) -> None:
        """Note a request that needed no wait, or one whose client asked to wait, when its handler has returned."""
        if local_s > self._limit_s:
            self._tell(route, context, local_s, local_s)

    def answered(self, route: Route, context: Context, local_s: float, total_s: float) -> None:
        """Note a request whose answer had to wait, when it is ready."""
        judged_s = local_s if route.endpoint.key in _WAITING else total_s
        if judged_s > self._limit_s:
            self._tell(route, context, local_s, total_s)

    def _tell(self, route: Route, context: Context, local_s: float, total_s: float) -> None:
        peer = context.connection
        log.info(
            "slow request: %s version %d of client %r, %s at %s, on listener %s took %d ms: local %d, remote %d",
            route.endpoint.name,
            route.version,
            context.client_id[:_NAME_CHARS_MAX],
            str(context.principal)[:_NAME_CHARS_MAX],
            peer.remote_address[0],
            peer.listener,
            round(total_s * 1000),
            round(local_s * 1000),
            round((total_s - local_s) * 1000),
        )
