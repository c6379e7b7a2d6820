"""Voters of a metadata quorum whose voters may change while it runs (KIP-853): list, add and remove them.

Only a quorum of kraft.version 1 or later accepts such changes: one that was formatted with its voters in the log
instead of in `controller.quorum.voters`. A voter is a node id with a directory id: a node that lost its disk is another
voter.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from ottla.client.checks import checked_number
from ottla.client.cluster import Cluster
from ottla.client.connection import Address
from ottla.client.errors import ClientError, NotConnected, check
from ottla.model.errors import ErrorCode
from ottla.model.ids import UUID_SIZE_BYTES
from ottla.model.names import CLUSTER_METADATA_TOPIC
from ottla.wire.message import Request, Response
from ottla.wire.messages.cluster.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.quorum.add_raft_voter import AddRaftVoterRequest
from ottla.wire.messages.quorum.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse, ReplicaState
from ottla.wire.messages.quorum.remove_raft_voter import RemoveRaftVoterRequest

R = TypeVar("R", bound=Response)
PartitionData = DescribeQuorumResponse.TopicData.PartitionData
_CONTROLLER = "the id of a controller"
_CONTROLLERS = 2  # the endpoint type of controllers in DescribeCluster


class VoterEndpoint(NamedTuple):
    """A listener at which a voter accepts requests of the other controllers."""

    listener: str
    host: str
    port: int

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)


class QuorumReplica(NamedTuple):
    """A voter or observer of the metadata quorum; a time is -1 if it is unknown."""

    node_id: int
    directory_id: bytes
    log_end_offset: int
    last_fetch_timestamp: int
    last_caught_up_timestamp: int


@dataclass(frozen=True, slots=True)
class QuorumState:
    """The state of the metadata quorum; `endpoints` has the listeners of the voters, by node id.

    `in_doubt`: the controller that answered is a voter that does not vote yet, because its disk was empty
    (docs/quorum.md).
    """

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    endpoints: dict[int, tuple[VoterEndpoint, ...]]
    in_doubt: bool = False


class VoterAdmin:
    """Operations on the metadata quorum and its voters."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def quorum(self) -> QuorumState:
        """Return the state of the quorum as its leader sees it. A broker forwards the request to the leader; a
        controller that does not lead names the leader, which is then asked.
        """

        async def attempt() -> QuorumState:
            answer = await self._cluster.call(_which_quorum())
            found = _partition(answer)
            if found.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                places = _quorum(answer).endpoints.get(found.leader_id)
                if places:
                    answer = await self._ask_controller(places[0].address, _which_quorum())
                    found = _partition(answer)
            check(found.error_code, found.error_message)
            return _quorum(answer)

        return await self._cluster.retry(attempt)

    async def as_seen_by(self, controller: Address) -> QuorumState:
        """Return the state of the quorum as the controller at this address sees it. Only the leader knows the log end
        offsets of the others: any other controller returns no voters and no observers, only the leader's id (-1:
        none) and endpoints.
        """
        return _quorum(await self._ask_controller(controller, _which_quorum()))

    async def controllers(self) -> dict[int, tuple[VoterEndpoint, ...]]:
        """Return where each controller of the cluster, voter or not, listens. Asks a voter: a broker knows only the
        endpoints of voters. Controllers that were removed for good may be in the result.
        """
        places = (await self.quorum()).endpoints
        failure: ClientError = NotConnected("no voter tells where it listens")
        for end in [end for ends in places.values() for end in ends[:1]]:
            try:
                answer = await self._ask_controller(end.address, _which_controllers())
            except ClientError as error:
                failure = error
                continue
            check(answer.error_code, answer.error_message)
            found = {each.broker_id: (VoterEndpoint(end.listener, each.host, each.port),) for each in answer.brokers}
            return found | places
        raise failure

    async def is_up(self, endpoint: VoterEndpoint) -> bool:
        """Return whether a controller answers at the endpoint."""
        try:
            await self._ask_controller(endpoint.address, _which_controllers())
        except ClientError:
            return False
        return True

    async def _ask_controller(self, address: Address, request: Request[R]) -> R:
        purpose = object()  # key of a connection for this request only, so that several may be asked at once
        try:
            return await (await self._cluster.connect(address, purpose)).request(request)
        finally:
            self._cluster.disconnect(purpose)

    async def add(self, node_id: int, directory_id: bytes, endpoints: Iterable[VoterEndpoint]) -> None:
        """Make a controller that follows the quorum a voter. Raises VOTER_NOT_FOUND, DUPLICATE_VOTER …."""
        request = AddRaftVoterRequest(
            cluster_id=None,
            timeout_ms=self._cluster.options.request_timeout_ms,
            voter_id=checked_number(node_id, _CONTROLLER),
            voter_directory_id=_checked_directory(directory_id),
            listeners=[AddRaftVoterRequest.Listener(name=each[0], host=each[1], port=each[2]) for each in endpoints],
        )
        answer = await self._cluster.call(request, repeatable=False, error_of=lambda each: each.error_code)
        check(answer.error_code, answer.error_message)

    async def remove(self, node_id: int, directory_id: bytes) -> None:
        """Remove a voter from the quorum."""
        request = RemoveRaftVoterRequest(
            cluster_id=None,
            voter_id=checked_number(node_id, _CONTROLLER),
            voter_directory_id=_checked_directory(directory_id),
        )
        answer = await self._cluster.call(request, repeatable=False, error_of=lambda each: each.error_code)
        check(answer.error_code, answer.error_message)


def _checked_directory(directory_id: object) -> bytes:
    if not isinstance(directory_id, bytes) or len(directory_id) != UUID_SIZE_BYTES:
        raise TypeError(f"the id of a directory is {UUID_SIZE_BYTES} bytes, not {directory_id!r}")
    return directory_id


def _which_quorum() -> DescribeQuorumRequest:
    kind = DescribeQuorumRequest.TopicData
    wanted = kind(topic_name=CLUSTER_METADATA_TOPIC, partitions=[kind.PartitionData(partition_index=0)])
    return DescribeQuorumRequest(topics=[wanted])


def _which_controllers() -> DescribeClusterRequest:
    return DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=_CONTROLLERS)


def _quorum(answer: DescribeQuorumResponse) -> QuorumState:
    found = _partition(answer)
    return QuorumState(
        leader_id=found.leader_id,
        leader_epoch=found.leader_epoch,
        high_watermark=found.high_watermark,
        voters=tuple(sorted(_replica(each) for each in found.current_voters)),
        observers=tuple(sorted(_replica(each) for each in found.observers)),
        endpoints={
            node.node_id: tuple(VoterEndpoint(each.name, each.host, each.port) for each in node.listeners)
            for node in answer.nodes
        },
        in_doubt=answer.in_doubt,
    )


def _partition(answer: DescribeQuorumResponse) -> PartitionData:
    check(answer.error_code, answer.error_message)
    return answer.topics[0].partitions[0]


def _replica(replica: ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        replica.replica_id,
        replica.replica_directory_id,
        replica.log_end_offset,
        replica.last_fetch_timestamp,
        replica.last_caught_up_timestamp,
    )
