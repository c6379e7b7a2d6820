"""UpdateRaftVoter (key 82): a voter reports its endpoints and supported KRaft versions."""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import NO_LEADER_EPOCH, Int16, Int32, LeaderEpoch, String, UInt16, Uuid


class UpdateRaftVoterRequest(Request["UpdateRaftVoterResponse"], key=82, versions="0", flexible="0+"):
    cluster_id: String | None
    current_leader_epoch: LeaderEpoch
    voter_id: Int32
    voter_directory_id: Uuid

    class Listener(Struct):
        name: String
        host: String
        port: UInt16

    listeners: list[Listener]

    class KRaftVersionFeature(Struct):
        min_supported_version: Int16
        max_supported_version: Int16

    kraft_version_feature: KRaftVersionFeature


class UpdateRaftVoterResponse(Response, key=82, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16

    class CurrentLeader(Struct):
        leader_id: Int32 = -1
        leader_epoch: LeaderEpoch = NO_LEADER_EPOCH
        host: String = ""
        port: Int32 = 0

    current_leader: CurrentLeader = on("0+", CurrentLeader, tag=0)
