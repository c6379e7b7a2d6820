"""The share session with one broker: the partitions it fetches, and pending acknowledgements of its records.

Rules:
- One request at a time: each carries the session's next epoch, and the broker refuses any other.
- Records belong to the session that fetched them. When it is lost (another connection, another epoch) the broker has
  released them, and their pending acknowledgements fail; the consumer opens another session.
- Acknowledgements are sent with the next ShareFetch where possible. Renewals, and acknowledgements of partitions that
  are not fetched any more, are sent by ShareAcknowledge.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from ottla.client.cluster import Cluster
from ottla.client.connection import Connection
from ottla.client.errors import ClientError, UnsupportedApi, check, error_code
from ottla.client.share.delivery import Acknowledgement, Acknowledgements, PartitionAnswer
from ottla.client.share.options import Acknowledged, ShareOptions
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.session_epochs import FINAL_EPOCH, next_epoch
from ottla.wire.message import Request
from ottla.wire.messages.shares.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from ottla.wire.messages.shares.share_fetch import ShareFetchRequest, ShareFetchResponse

R = TypeVar("R", ShareFetchResponse, ShareAcknowledgeResponse)
_Topic = ShareFetchRequest.FetchTopic
_AckTopic = ShareAcknowledgeRequest.AcknowledgeTopic

_RENEW_SINCE = ShareAcknowledgeRequest.since("is_renew_ack")

# A partition by its topic's id, and the acknowledgements of one request by partition.
IdPartition = tuple[bytes, int]
Acks = dict[IdPartition, Acknowledgements]


class ShareFetched(NamedTuple):
    """One partition's part of an answer, and how long its records stay locked."""

    name: IdPartition
    partition: TopicPartition
    answer: PartitionAnswer
    lock_ms: int


class MemberShareSession:
    """The session of one member with one broker; see the module's rules."""

    def __init__(self, cluster: Cluster, options: ShareOptions, node_id: int, member_id: str) -> None:
        self.node_id = node_id
        self.lost: ApiError | ClientError | None = None
        self.pending: Acks = {}
        self.flush: asyncio.TimerHandle | None = None  # when pending acknowledgements are sent without a fetch
        self._cluster = cluster
        self._options = options
        self._member_id = member_id
        self._epoch = 0
        self._names: dict[IdPartition, TopicPartition] = {}  # all partitions that this session ever read
        self._reading: dict[IdPartition, None] = {}  # the partitions in the broker's session
        self._connection: Connection | None = None
        self._turn = asyncio.Lock()

    def acknowledge(self, partition: IdPartition, offset: int, kind: Acknowledgement) -> None:
        """Add an acknowledgement to the pending ones."""
        self._pending_of(partition).offsets[offset] = kind

    def acknowledge_ranges(self, partition: IdPartition, ranges: Iterable[range], kind: Acknowledgement) -> None:
        """Add acknowledgements of offsets whose records were not handed out; their outcome is not reported."""
        self._pending_of(partition).ranges.extend((each, kind) for each in ranges)

    def _pending_of(self, partition: IdPartition) -> Acknowledgements:
        found = self.pending.get(partition)
        if found is None:
            found = self.pending[partition] = Acknowledgements()
        return found

    def check_renewal(self) -> None:
        """Raise if the broker is too old to renew locks."""
        if self._connection is not None and self._connection.version_of(ShareAcknowledgeRequest) < _RENEW_SINCE:
            raise UnsupportedApi(f"{self._connection.address} does not renew locks")

    def is_pending(self, partition: IdPartition, offset: int) -> bool:
        """Return whether an acknowledgement of the offset was not sent yet."""
        found = self.pending.get(partition)
        return found is not None and offset in found.offsets

    # --- requests -----------------------------------------------------------------------------------------------

    async def fetch(
        self, wanted: Mapping[IdPartition, TopicPartition], records_max: int, max_wait_ms: int
    ) -> tuple[list[ShareFetched], list[Acknowledged]]:
        """Return records of the wanted partitions, and the outcome of the acknowledgements that
        went with the request.
        """
        async with self._turn:
            self._names.update(wanted)
            outcomes: list[Acknowledged] = []
            while self._must_go_alone(wanted):  # more may be added while the first are in flight
                outcomes += await self._acknowledge()
            acks, self.pending = self.pending, {}
            request = self._fetch_request(wanted, acks, records_max, max_wait_ms)
            answer = await self._exchange(request, acks, outcomes, max_wait_ms)
            if answer is None:
                return [], outcomes
            self._reading = dict.fromkeys(wanted)
            found: list[ShareFetched] = []
            errors: dict[IdPartition, ApiError] = {}
            for topic in answer.responses:
                for each in topic.partitions:
                    name = (topic.topic_id, each.partition_index)
                    if each.acknowledge_error_code:
                        code = error_code(each.acknowledge_error_code)
                        errors[name] = ApiError(code, each.acknowledge_error_message)
                    if name in self._names:
                        found.append(ShareFetched(name, self._names[name], each, answer.acquisition_lock_timeout_ms))
            return found, outcomes + self._outcomes(acks, errors)

    async def send_pending(self) -> list[Acknowledged]:
        """Send the pending acknowledgements."""
        async with self._turn:
            return await self._acknowledge()

    async def close(self) -> list[Acknowledged]:
        """Send the last acknowledgements and close the session; the broker releases all other records."""
        async with self._turn:
            try:
                if self._connection is None or self.lost is not None:
                    return await self._acknowledge()
                return await self._acknowledge(final=True)
            finally:
                self.lost = self.lost or ClientError("the share session is closed")
                self._cluster.disconnect(self)

    def _must_go_alone(self, wanted: Mapping[IdPartition, TopicPartition]) -> bool:
        return any(name not in wanted or acks.renews for name, acks in self.pending.items())

    async def _acknowledge(self, *, final: bool = False) -> list[Acknowledged]:
        acks, self.pending = self.pending, {}
        if not acks and not final:
            return []
        outcomes: list[Acknowledged] = []
        request = ShareAcknowledgeRequest(
            group_id=self._options.group_id,
            member_id=self._member_id,
            share_session_epoch=FINAL_EPOCH if final else self._epoch,
            is_renew_ack=any(each.renews for each in acks.values()),
            topics=_ack_topics(acks),
        )
        answer = await self._exchange(request, acks, outcomes)
        if answer is None:
            return outcomes
        errors: dict[IdPartition, ApiError] = {}
        for topic in answer.responses:
            for each in topic.partitions:
                if each.error_code:
                    error = ApiError(error_code(each.error_code), each.error_message)
                    errors[topic.topic_id, each.partition_index] = error
        return self._outcomes(acks, errors)

    async def _exchange(
        self,
        request: Request[R],
        acks: Acks,
        outcomes: list[Acknowledged],
        max_wait_ms: int = 0,
    ) -> R | None:
        """Return the answer; None if the session is (or gets) lost, with the acknowledgements among the `outcomes`."""
        try:
            if self.lost is not None:
                raise self.lost
            connection = self._connection
            if connection is None:
                connection = self._connection = await self._cluster.connection(self.node_id, self)
            timeout_ms = max_wait_ms + self._cluster.options.request_timeout_ms
            reply: R = await connection.request(request, timeout_ms=timeout_ms)
            check(reply.error_code, reply.error_message)
        except (ClientError, ApiError) as error:
            if self.lost is None:
                self.lost = error
                self._cluster.disconnect(self)
            lost = error if isinstance(error, ApiError) else ApiError(ErrorCode.SHARE_SESSION_NOT_FOUND, str(error))
            outcomes += self._outcomes(acks, dict.fromkeys(acks, lost))
            return None
        except asyncio.CancelledError:
            # The broker may or may not have processed it: the epoch is unknown now.
            self.lost = self.lost or ClientError("a request of the share session was given up")
            self._cluster.disconnect(self)
            raise
        self._epoch = next_epoch(self._epoch)
        return reply

    def _outcomes(self, acks: Acks, errors: Mapping[IdPartition, ApiError]) -> list[Acknowledged]:
        found = []
        for name, each in acks.items():
            if each.offsets:
                found.append(Acknowledged(self._names[name], tuple(sorted(each.offsets)), errors.get(name)))
        return found

    def _fetch_request(
        self, wanted: Mapping[IdPartition, TopicPartition], acks: Acks, records_max: int, max_wait_ms: int
    ) -> ShareFetchRequest:
        """Return a request that names only partitions that were added, removed, or have acknowledgements."""
        options = self._options
        topics: dict[bytes, _Topic] = {}
        for topic_id, index in wanted:
            said = acks.get((topic_id, index))
            if said is None and (topic_id, index) in self._reading:
                continue
            topic = topics.setdefault(topic_id, _Topic(topic_id=topic_id, partitions=[]))
            batch = _Topic.FetchPartition.AcknowledgementBatch
            batches = [
                batch(first_offset=first, last_offset=last, acknowledge_types=types)
                for first, last, types in (said.runs() if said is not None else ())
            ]
            topic.partitions.append(
                _Topic.FetchPartition(partition_index=index, acknowledgement_batches=batches),
            )
        return ShareFetchRequest(
            group_id=options.group_id,
            member_id=self._member_id,
            share_session_epoch=self._epoch,
            max_wait_ms=max_wait_ms,
            min_bytes=options.fetch_min_bytes,
            max_bytes=options.fetch_max_bytes,
            max_records=records_max,
            batch_size=records_max,
            share_acquire_mode=options.acquire_mode_number,
            topics=list(topics.values()),
            forgotten_topics_data=_forgotten(each for each in self._reading if each not in wanted),
        )


def _ack_topics(acks: Acks) -> list[_AckTopic]:
    topics: dict[bytes, _AckTopic] = {}
    for (topic_id, index), said in acks.items():
        batches = [
            _AckTopic.AcknowledgePartition.AcknowledgementBatch(
                first_offset=first, last_offset=last, acknowledge_types=types
            )
            for first, last, types in said.runs()
        ]
        topic = topics.setdefault(topic_id, _AckTopic(topic_id=topic_id, partitions=[]))
        topic.partitions.append(_AckTopic.AcknowledgePartition(partition_index=index, acknowledgement_batches=batches))
    return list(topics.values())


def _forgotten(partitions: Iterable[IdPartition]) -> list[ShareFetchRequest.ForgottenTopic]:
    found: dict[bytes, ShareFetchRequest.ForgottenTopic] = {}
    for topic_id, index in partitions:
        kind = ShareFetchRequest.ForgottenTopic
        found.setdefault(topic_id, kind(topic_id=topic_id, partitions=[])).partitions.append(index)
    return list(found.values())
