"""ShareAcknowledge (key 79): acknowledge records without fetching more; epoch -1 also closes the share session.

v2 renewed locks
"""

from __future__ import annotations

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import FIRST_LEADER_EPOCH
from ottla.model.session_epochs import FINAL_EPOCH, INITIAL_EPOCH
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.leader_hints import name_share_leaders
from ottla.server.api.needs import CheckedItems, Needs, on_group, on_topic
from ottla.server.fetch.share_sessions import Named
from ottla.server.loop.later import Answer, gather
from ottla.wire.messages.shares.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse

TopicResponse = ShareAcknowledgeResponse.TopicResponse
PartitionData = TopicResponse.PartitionData


@handles(
    ShareAcknowledgeRequest,
    needs=Needs(
        (on_group(AclOperation.READ),),
        items=CheckedItems(
            on_topic(AclOperation.READ), "topics.partitions", "responses.partitions", id="topic_id", always_asks=True
        ),
    ),
)
def share_acknowledge(request: ShareAcknowledgeRequest, context: Context) -> Answer[ShareAcknowledgeResponse]:
    shares = context.shares
    try:
        group_id, member_id = shares.check_member(request.group_id, request.member_id)
        if request.share_session_epoch == INITIAL_EPOCH:
            raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session = shares.sessions.enter(group_id, member_id, request.share_session_epoch)
    except ApiError as error:
        return ShareAcknowledgeResponse(
            error_code=error.code, error_message=error.text, responses=[], node_endpoints=[]
        )
    outcomes = shares.acknowledge(group_id, member_id, request.topics, renew=request.is_renew_ack)
    named = tuple(outcomes)
    final = request.share_session_epoch == FINAL_EPOCH
    if final:
        context.when_closed.pop(session.key, None)
        outcomes = shares.partitions.end(session) | outcomes
    lock_ms = shares.lock_ms(group_id)

    def respond(errors: list[ApiError | None]) -> ShareAcknowledgeResponse:
        if final:
            shares.partitions.closed(session)
        by_name = dict(zip(outcomes, errors, strict=True))
        response = ShareAcknowledgeResponse(
            error_code=0,
            acquisition_lock_timeout_ms=lock_ms,
            responses=_topics({name: by_name[name] for name in named}),
            node_endpoints=[],
        )
        name_share_leaders(response, context)
        return response

    return gather(list(outcomes.values())).map(respond).soonest()


def _topics(outcomes: dict[Named, ApiError | None]) -> list[TopicResponse]:
    topics: dict[bytes, TopicResponse] = {}
    for (topic_id, index), error in outcomes.items():
        topic = topics.setdefault(topic_id, TopicResponse(topic_id=topic_id, partitions=[]))
        topic.partitions.append(
            PartitionData(
                partition_index=index,
                error_code=error.code if error is not None else 0,
                error_message=error.text if error is not None else None,
                current_leader=PartitionData.LeaderIdAndEpoch(leader_id=0, leader_epoch=FIRST_LEADER_EPOCH),
            )
        )
    return list(topics.values())
