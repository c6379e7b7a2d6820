"""The request for a vote or for a pre-vote."""

from __future__ import annotations

from ottla.model.names import CLUSTER_METADATA_TOPIC
from ottla.raft import lost_disk
from ottla.raft.state import RaftState
from ottla.raft.voters import Voter
from ottla.wire.messages.quorum.vote import VoteRequest


def ask_for_vote(node: RaftState, voter: Voter, *, pre_vote: bool) -> int:
    """Ask a voter, whose address is known, for its vote; return the request's number."""
    assert voter.address is not None, f"nobody knows where voter {voter.id} is"
    end = node.end
    if not end.offset:
        lost_disk.extend_quarantine(node)
    topic = VoteRequest.TopicData
    question = topic.PartitionData(
        partition_index=0,
        replica_epoch=node.epoch,
        replica_id=node.me.id,
        replica_directory_id=node.me.directory,
        voter_directory_id=voter.directory,
        last_offset_epoch=end.epoch,
        last_offset=end.offset,
        pre_vote=pre_vote,
    )
    topics = [topic(topic_name=CLUSTER_METADATA_TOPIC, partitions=[question])]
    request = VoteRequest(cluster_id=node.cluster_id, voter_id=voter.id, topics=topics)
    return node.send(voter.id, voter.address, request)
