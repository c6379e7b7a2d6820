"""FetchSnapshot (key 59): read a part of a metadata snapshot, for nodes that are far behind. See `raft.serving`."""

from __future__ import annotations

from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.loop.later import Answer
from ottla.wire.messages.quorum.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse


@handles(FetchSnapshotRequest, needs=Needs((on_cluster(AclOperation.CLUSTER_ACTION),)), on="controller")
def fetch_snapshot(request: FetchSnapshotRequest, context: Context) -> Answer[FetchSnapshotResponse]:
    return context.member.quorum.ask(request)
