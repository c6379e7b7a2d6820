"""ElectLeaders (key 43): preferred leaders, or unclean ones.

v0 preferred ones only   v1 both kinds, and an error for the whole
"""

from __future__ import annotations

from ottla.cluster.commands.elect_leaders import Elected, ElectLeaders
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.answer import Answer, bounded
from ottla.server.context import Context
from ottla.server.dispatch import handles
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

_Topic = ElectLeadersResponse.ReplicaElectionResult


@handles(ElectLeadersRequest, on="both", forwarded=True)
def elect_leaders(request: ElectLeadersRequest, context: Context) -> Answer[ElectLeadersResponse]:
    asked = None
    if request.topic_partitions is not None:
        asked = tuple(bounded([(each.topic, index) for each in request.topic_partitions for index in each.partitions]))

    def refuse(error: ApiError) -> ElectLeadersResponse:
        return ElectLeadersResponse(error_code=error.code, replica_election_results=[])

    return context.controller.ask(ElectLeaders(request.election_type, asked), _response, refuse)


def _response(outcomes: list[Elected]) -> ElectLeadersResponse:
    topics: dict[str, _Topic] = {}
    for name, partition, error in outcomes:
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = _Topic(topic=name, partition_result=[])
        topic.partition_result.append(
            _Topic.PartitionResult(
                partition_id=partition,
                error_code=error.code if error else ErrorCode.NONE,
                error_message=error.text if error else None,
            )
        )
    return ElectLeadersResponse(error_code=ErrorCode.NONE, replica_election_results=list(topics.values()))
