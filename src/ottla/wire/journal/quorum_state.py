"""The `quorum-state` file of a KRaft node (kept as JSON on disk) in declared form."""

from __future__ import annotations

from ottla.wire.message import Data, Struct, on
from ottla.wire.types import NO_ID, NO_LEADER_EPOCH, Int32, Int64, LeaderEpoch, String, Uuid


class QuorumStateData(Data, versions="0-1", flexible="0+"):
    """The epoch of this node, the leader of that epoch, and the candidate that the node voted for.

    v1   + voted_directory_id - cluster_id, applied_offset, current_voters
    """

    cluster_id: String = on("0", "")
    leader_id: Int32 = -1
    leader_epoch: LeaderEpoch = NO_LEADER_EPOCH
    voted_id: Int32 = -1
    voted_directory_id: Uuid = on("1+", NO_ID)
    applied_offset: Int64 = on("0", 0)

    class Voter(Struct):
        voter_id: Int32

    current_voters: list[Voter] | None = on("0", [])
