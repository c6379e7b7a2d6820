"""What a request needs to be there before it, so that its answer depends on the client's rights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from tests.support.requests.beats import Flock
from tests.support.requests.one_of_each import GROUP, TOPIC, TRANSACTION
from tests.support.requests.right_forms import CONSUMERS, SHARERS, STREAMERS, forms_of, request_of
from tests.support.requests.same import Side
from tests.support.requests.shares import ShareTalk
from tests.support.requests.streamers import Troupe, subtopology, topology
from tests.support.requests.transactional import Transactional
from tests.support.waiting import until

from ottla.model.errors import ErrorCode
from ottla.wire.messages.groups.offset_commit import OffsetCommitRequest
from ottla.wire.messages.shares.share_fetch import ShareFetchRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.messages.topics.metadata import MetadataRequest


@contextmanager
def _consumer(admin: Side) -> Iterator[None]:
    member = Flock(admin, CONSUMERS).bird("m", [TOPIC])
    member.join()
    yield
    member.leave()


@contextmanager
def _sharer(admin: Side) -> Iterator[None]:
    talk = ShareTalk(admin, SHARERS)
    talk.join("admin-member", TOPIC)
    yield
    talk.beat("admin-member", -1)


@contextmanager
def _left_share_group(admin: Side) -> Iterator[None]:
    with _sharer(admin):
        pass
    yield


@contextmanager
def _streamer(admin: Side) -> Iterator[None]:
    member = Troupe(admin, STREAMERS).player("a", topology(subtopology("0", TOPIC)))
    member.join()
    yield
    member.leave()


@contextmanager
def _transaction(admin: Side) -> Iterator[None]:
    txn = Transactional(admin, TRANSACTION).find().begin()
    txn.add(TOPIC, 0)
    yield
    txn.begin()  # which ends the old one


def _committed(admin: Side, client: Side) -> None:
    """A group with an offset."""
    topic = OffsetCommitRequest.Topic
    partition = topic.Partition(partition_index=0, committed_offset=3, committed_metadata="m")
    request = OffsetCommitRequest(group_id=GROUP, member_id="", topics=[topic(name=TOPIC, partitions=[partition])])
    answer = admin.call(request, 9)
    assert answer["topics"][0]["partitions"][0]["error_code"] == 0, answer


def _topic(admin: Side, client: Side) -> None:
    """The topic, if it was deleted. The controller knows, and the broker a moment later."""
    wanted = CreateTopicsRequest.CreatableTopic(
        name=TOPIC, num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )
    answer = admin.answer(CreateTopicsRequest(topics=[wanted]), 7)
    assert isinstance(answer, CreateTopicsResponse)
    if answer.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
        return
    admin.ids[TOPIC] = answer.topics[0].topic_id
    by_id = MetadataRequest(topics=[MetadataRequest.Topic(topic_id=admin.ids[TOPIC], name=None)])
    until(lambda: admin.call(by_id, 12)["topics"][0]["error_code"], lambda code: code == 0)
    admin.wait_for_leaders(TOPIC, 1)


@contextmanager
def _topic_stays(admin: Side) -> Iterator[None]:
    yield
    _topic(admin, admin)


def _session(admin: Side, client: Side) -> None:
    """A share session of the client."""
    (form,) = forms_of(ShareFetchRequest.key).values()
    client.call(request_of(ShareFetchRequest.key, 1, form, admin.ids[TOPIC], ""), 1)


STAGES: dict[str, Callable[[Side], AbstractContextManager[None]]] = {
    "DeleteTopics": _topic_stays,
    "ConsumerGroupDescribe": _consumer,
    "ShareGroupDescribe": _sharer,
    "ShareFetch": _sharer,
    "ShareAcknowledge": _sharer,
    "DescribeShareGroupOffsets": _left_share_group,
    "AlterShareGroupOffsets": _left_share_group,
    "DeleteShareGroupOffsets": _left_share_group,
    "StreamsGroupDescribe": _streamer,
    "DescribeTransactions": _transaction,
    "ListTransactions": _transaction,
}
BEFORE: dict[str, Callable[[Side, Side], None]] = {
    "OffsetFetch": _committed,
    "DescribeGroups": _committed,
    "ListGroups": _committed,
    "DeleteGroups": _committed,
    "OffsetDelete": _committed,
    "DeleteTopics": _topic,
    "ShareAcknowledge": _session,
}


def stage(name: str, admin: Side) -> AbstractContextManager[None]:
    """What all requests to an API need."""
    return STAGES[name](admin) if name in STAGES else nullcontext()


def prepare(name: str, admin: Side, client: Side) -> None:
    """What one request needs, which the one before it may have used up."""
    if name in BEFORE:
        BEFORE[name](admin, client)
