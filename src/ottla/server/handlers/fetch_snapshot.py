"""FetchSnapshot (key 59): a piece of a metadata snapshot, for nodes far behind. See `raft.serving`."""

from __future__ import annotations

from ottla.server.answer import Answer
from ottla.server.context import Context
from ottla.server.dispatch import handles
from ottla.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse


@handles(FetchSnapshotRequest, on="controller")
def fetch_snapshot(request: FetchSnapshotRequest, context: Context) -> Answer[FetchSnapshotResponse]:
    return context.services.quorum.ask(request)
