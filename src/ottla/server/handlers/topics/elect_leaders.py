"""ElectLeaders (key 43): elect preferred leaders, or leaders by unclean election.

v0 preferred leaders only   v1 both kinds, and an error for the whole request
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from ottla.cluster.commands.elect_leaders import ElectionOutcome, ElectLeaders
from ottla.machine.stepped import collected, in_one_go
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.api.portions import Portions
from ottla.server.loop.later import Large, Later
from ottla.server.quorum.active_controller import Decided
from ottla.wire.messages.topics.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

_Topic = ElectLeadersResponse.ReplicaElectionResult


def _refuse(request: ElectLeadersRequest, error: ApiError) -> ElectLeadersResponse:
    asked = [(each.topic, index) for each in request.topic_partitions or () for index in each.partitions]
    return in_one_go(_responding([ElectionOutcome(name, index, error) for name, index in asked], error.code, ()))


def _named(request: ElectLeadersRequest) -> Iterator[str]:
    yield "unclean" if request.election_type else "preferred"
    if request.topic_partitions is None:
        yield "all partitions"
    else:
        yield from (each.topic for each in request.topic_partitions)


@handles(
    ElectLeadersRequest,
    needs=Needs((on_cluster(AclOperation.ALTER),), changes=_named),
    on="both",
    forwarded=True,
    portions=Portions(
        "topic_partitions.partitions", "replica_election_results.partition_result", limits.ITEMS_PER_SLICE
    ),
    refuse=_refuse,
)
def elect_leaders(request: ElectLeadersRequest, context: Context) -> Decided[ElectLeadersResponse]:
    asked = None
    if request.topic_partitions is not None:
        asked = tuple((each.topic, index) for each in request.topic_partitions for index in each.partitions)

    reply = context.member.controller.submit(ElectLeaders(request.election_type, asked))
    return _answer(reply, asked, context)


async def _answer(
    reply: Later[list[ElectionOutcome] | ApiError], asked: tuple[tuple[str, int], ...] | None, context: Context
) -> ElectLeadersResponse | ApiError | Large[ElectLeadersResponse]:
    """Build the response in slices, because there may be very many partitions and topics."""
    outcomes = await reply
    if isinstance(outcomes, ApiError):
        return outcomes
    # Without a list, the response has all topics, most of them without partitions.
    topics = tuple(context.member.state.topics) if asked is None else ()
    response = await context.runtime.slices.finish(_responding(outcomes, ErrorCode.NONE, topics))
    return Large(response) if len(outcomes) + len(topics) > limits.METADATA_RECORDS_PER_SLICE else response


def _responding(
    outcomes: Sequence[ElectionOutcome], code: ErrorCode, topics: Sequence[str]
) -> Generator[None, None, ElectLeadersResponse]:
    per_slice = limits.METADATA_RECORDS_PER_SLICE
    listed = yield from collected((_Topic(topic=name, partition_result=[]) for name in topics), per_slice)
    found = {topic.topic: topic for topic in listed}
    for number, (name, partition, error) in enumerate(outcomes, start=1):
        if number % per_slice == 0:
            yield
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
