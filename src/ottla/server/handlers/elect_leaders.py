"""ElectLeaders (key 43): preferred leaders, or unclean ones.

v0 preferred ones only   v1 both kinds, and an error for the whole
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.cluster.commands.elect_leaders import Elected, ElectLeaders
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.answer import Answer
from ottla.server.context import Context
from ottla.server.dispatch import handles
from ottla.server.portions import Portions
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

_Topic = ElectLeadersResponse.ReplicaElectionResult


@handles(
    ElectLeadersRequest,
    on="both",
    forwarded=True,
    portions=Portions(
        "topic_partitions.partitions", "replica_election_results.partition_result", limits.ITEMS_PER_SLICE
    ),
)
def elect_leaders(request: ElectLeadersRequest, context: Context) -> Answer[ElectLeadersResponse]:
    asked = None
    if request.topic_partitions is not None:
        asked = tuple((each.topic, index) for each in request.topic_partitions for index in each.partitions)

    def refuse(error: ApiError) -> ElectLeadersResponse:
        return _response([Elected(name, partition, error) for name, partition in asked or ()], error.code)

    def respond(outcomes: list[Elected]) -> ElectLeadersResponse:
        if asked is not None:
            return _response(outcomes)
        return _response(outcomes, topics=context.metadata.state.topics)  # all of them, most of them with nothing

    return context.controller.ask(ElectLeaders(request.election_type, asked), respond, refuse)


def _response(
    outcomes: list[Elected], code: ErrorCode = ErrorCode.NONE, topics: Iterable[str] = ()
) -> ElectLeadersResponse:
    found = {name: _Topic(topic=name, partition_result=[]) for name in topics}
    for name, partition, error in outcomes:
        topic = found.get(name)
        if topic is None:
            topic = found[name] = _Topic(topic=name, partition_result=[])
        topic.partition_result.append(
            _Topic.PartitionResult(
                partition_id=partition,
                error_code=error.code if error else ErrorCode.NONE,
                error_message=error.text if error else None,
            )
        )
    return ElectLeadersResponse(error_code=code, replica_election_results=list(found.values()))
