"""FetchSnapshot (key 59): read a part of a metadata snapshot, for nodes that are far behind. See `raft.serving`."""

from __future__ import annotations

from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.loop.later import Answer
from ottla.wire.messages.quorum.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse


@handles(FetchSnapshotRequest, on="controller")
def fetch_snapshot(request: FetchSnapshotRequest, context: Context) -> Answer[FetchSnapshotResponse]:
    return context.member.quorum.ask(request)
