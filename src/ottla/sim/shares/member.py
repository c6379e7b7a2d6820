"""A member of a share group over a bare connection, so that every request and every answer is known.

It sends heartbeats, fetches records and acknowledges them: it accepts most, releases or rejects some, and leaves others
unacknowledged until their acquisition locks time out. Acknowledgements are sent with the next ShareFetch, or in a
ShareAcknowledge.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ottla.client.connection import Connection
from ottla.client.errors import ClientError
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition, random_uuid, uuid_text
from ottla.records.batch import headers
from ottla.records.record import records
from ottla.sim.shares.check import ACCEPT, REJECT, RELEASE, Acknowledging, SentRequest, ShareBook
from ottla.sim.workload import Surroundings
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.shares.share_acknowledge import ShareAcknowledgeRequest
from ottla.wire.messages.shares.share_fetch import ShareFetchRequest, ShareFetchResponse
from ottla.wire.messages.shares.share_group_heartbeat import ShareGroupHeartbeatRequest

BEAT_SECONDS = 1.0
WAIT_MS = 400
LEAVE_EPOCH = FINAL_EPOCH = -1
_FetchTopic = ShareFetchRequest.FetchTopic
_FetchPartition = _FetchTopic.FetchPartition
_AckTopic = ShareAcknowledgeRequest.AcknowledgeTopic
_AckPartition = _AckTopic.AcknowledgePartition

Kinds = dict[int, dict[int, int]]  # kinds of acknowledgement by partition and offset


@dataclass(frozen=True, slots=True)
class AcknowledgementRates:
    """The fractions of records that a member accepts, releases and rejects; it does not acknowledge the others."""

    accept: float
    release: float
    reject: float

    def choose(self, rng: random.Random) -> int | None:
        chance = rng.random()
        for kind, rate in ((ACCEPT, self.accept), (RELEASE, self.release), (REJECT, self.reject)):
            if chance < rate:
                return kind
            chance -= rate
        return None


ACCEPT_ALL = AcknowledgementRates(accept=1.0, release=0.0, reject=0.0)


class SimShareMember:
    """One process. `run` ends when it is cancelled or killed, or, if `quiet_seconds` is given, when no fetch has
    returned a record for that time.
    """

    def __init__(
        self,
        around: Surroundings,
        book: ShareBook,
        rates: AcknowledgementRates,
        rng: random.Random,
        *,
        quiet_seconds: float | None = None,
    ) -> None:
        self._around = around
        self._book = book
        self._rates = rates
        self._rng = rng
        self._quiet_seconds = quiet_seconds
        self._topic = around.partitions[0].topic
        self._member = ""

    async def run(self) -> None:
        while True:
            # A member that starts again has a new id, so it cannot acknowledge what it acquired under the old one.
            self._member = uuid_text(random_uuid(self._rng))
            try:
                await self._live()
                return
            except (ClientError, ApiError) as error:
                self._around.tell(f"share member {self._member} begins anew: {error}")
                await asyncio.sleep(self._rng.uniform(0.1, 1.0))

    def crashed(self) -> None:
        """Note a crash of the process: the records that it had acquired may be released before their locks time out,
        because the broker does so when it sees the connection close.
        """
        self._book.gone(self._member)

    async def _live(self) -> None:
        self._connection = await Connection.open(
            self._around.bootstrap[0], client_id="share", connect_timeout_ms=3_000, request_timeout_ms=6_000
        )
        try:
            await self._join()
            await self._work()
        except asyncio.CancelledError:
            await self._leave()
            raise
        finally:
            self._book.gone(self._member)
            self._connection.close()

    # -- membership

    async def _join(self) -> None:
        self._member_epoch = 0
        self._assigned: dict[bytes, list[int]] = {}
        found = await self._connection.request(FindCoordinatorRequest(key_type=0, coordinator_keys=[self._book.group]))
        _check(found.coordinators[0].error_code)
        while not self._assigned:
            await self._beat()
            if not self._assigned:
                await asyncio.sleep(0.5)
        self._session_epoch = 0
        self._held: Kinds = {}

    async def _beat(self) -> None:
        request = ShareGroupHeartbeatRequest(
            group_id=self._book.group,
            member_id=self._member,
            member_epoch=self._member_epoch,
            subscribed_topic_names=[self._topic] if self._member_epoch == 0 else None,
        )
        answer = await self._connection.request(request)
        _check(answer.error_code)
        self._beaten_at = asyncio.get_running_loop().time()
        self._member_epoch = answer.member_epoch
        if answer.assignment is not None:
            assigned = {each.topic_id: list(each.partitions) for each in answer.assignment.topic_partitions}
            if assigned != self._assigned:
                self._assigned, self._session_epoch = assigned, 0

    async def _leave(self) -> None:
        """Close the share session, which releases all acquired records, and leave the group; errors are ignored."""
        if getattr(self, "_held", None) is None or not self._connection.is_open:
            return
        self._book.gone(self._member)
        leaving = ShareGroupHeartbeatRequest(
            group_id=self._book.group, member_id=self._member, member_epoch=LEAVE_EPOCH
        )
        closing = ShareAcknowledgeRequest(
            group_id=self._book.group, member_id=self._member, share_session_epoch=FINAL_EPOCH, topics=[]
        )
        try:
            await self._connection.request(closing)
            await self._connection.request(leaving)
        except ClientError as error:
            self._around.tell(f"share member {self._member} could not leave: {error}")

    # -- work

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        busy_at = loop.time()
        while self._quiet_seconds is None or loop.time() - busy_at < self._quiet_seconds:
            if loop.time() - self._beaten_at > BEAT_SECONDS:
                await self._beat()
            if not self._assigned:
                await asyncio.sleep(0.5)
                continue
            acks = self._choose() if self._session_epoch > 0 else {}
            if acks and self._rng.random() < 0.4:
                await self._acknowledge(acks)
                acks = {}
            if await self._fetch(acks):
                busy_at = loop.time()
            if self._rng.random() < 0.1:
                await asyncio.sleep(self._rng.expovariate(3))

    def _choose(self) -> Kinds:
        """Choose how to acknowledge each acquired record; those without a choice stay locked until their locks time
        out.
        """
        acks: Kinds = {}
        for partition, offsets in self._held.items():
            for offset in offsets:
                kind = self._rates.choose(self._rng)
                if kind is not None:
                    acks.setdefault(partition, {})[offset] = kind
        self._held = {}
        return acks

    async def _fetch(self, acks: Kinds) -> bool:
        """Fetch records and send these acknowledgements; return whether any record was acquired."""
        first = self._session_epoch == 0
        partitions = next(iter(self._assigned.values())) if first else sorted(acks)
        (topic_id,) = self._assigned
        most = self._rng.choice((1, 10, 100))
        request = ShareFetchRequest(
            group_id=self._book.group,
            member_id=self._member,
            share_session_epoch=self._session_epoch,
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=20_000,
            max_records=most,
            batch_size=most,
            share_acquire_mode=self._rng.choice((0, 1)),
            topics=[
                _FetchTopic(
                    topic_id=topic_id,
                    partitions=[
                        _FetchPartition(
                            partition_index=index,
                            acknowledgement_batches=_batches(_FetchPartition.AcknowledgementBatch, acks.get(index, {})),
                        )
                        for index in partitions
                    ],
                )
            ]
            if partitions
            else [],
            forgotten_topics_data=[],
        )
        sent, asked = self._sending(acks), self._book.asking(self._member)
        answer = await self._connection.request(request)
        self._book.answered(asked)
        _check(answer.error_code)
        self._session_epoch += 1
        return self._take(answer, sent, asked)

    def _take(self, answer: ShareFetchResponse, sent: Acknowledging, asked: SentRequest) -> bool:
        found = False
        connection = self._connection
        for data in (data for topic in answer.responses for data in topic.partitions):
            partition = TopicPartition(self._topic, data.partition_index)
            if partition in sent.acks:
                self._book.acknowledged(sent, partition, data.acknowledge_error_code)
            content = _content(data.records)
            for acquired in data.acquired_records:
                for offset in range(acquired.first_offset, acquired.last_offset + 1):
                    found = True
                    self._book.acquired(
                        asked,
                        partition,
                        offset,
                        acquired.delivery_count,
                        answer.acquisition_lock_timeout_ms / 1000,
                        lambda: connection.is_open,
                    )
                    if offset not in content:
                        self._around.history.blame(f"{partition} at {offset}: acquired without a record")
                    else:
                        self._around.history.read(partition, offset, content[offset], None)
                    self._held.setdefault(data.partition_index, {})[offset] = 0
        return found

    async def _acknowledge(self, acks: Kinds) -> None:
        (topic_id,) = self._assigned
        request = ShareAcknowledgeRequest(
            group_id=self._book.group,
            member_id=self._member,
            share_session_epoch=self._session_epoch,
            topics=[
                _AckTopic(
                    topic_id=topic_id,
                    partitions=[
                        _AckPartition(
                            partition_index=index,
                            acknowledgement_batches=_batches(_AckPartition.AcknowledgementBatch, kinds),
                        )
                        for index, kinds in acks.items()
                    ],
                )
            ],
        )
        sent = self._sending(acks)
        answer = await self._connection.request(request)
        _check(answer.error_code)
        self._session_epoch += 1
        for data in (data for topic in answer.responses for data in topic.partitions):
            self._book.acknowledged(sent, TopicPartition(self._topic, data.partition_index), data.error_code)

    def _sending(self, acks: Kinds) -> Acknowledging:
        named = {TopicPartition(self._topic, index): kinds for index, kinds in acks.items()}
        return self._book.acknowledging(self._member, named)


def _batches(batch: Any, kinds: Mapping[int, int]) -> list[Any]:
    """Return one batch for each run of successive offsets, with one type for all of them if they have the same, else
    with a type for each.
    """
    made = []
    for _, run in groupby(enumerate(sorted(kinds)), lambda each: each[1] - each[0]):
        offsets = [offset for _, offset in run]
        types = [kinds[offset] for offset in offsets]
        made.append(
            batch(
                first_offset=offsets[0],
                last_offset=offsets[-1],
                acknowledge_types=types[:1] if len(dict.fromkeys(types)) == 1 else types,
            )
        )
    return made


def _content(data: Any) -> dict[int, bytes | None]:
    view = memoryview(data or b"")
    return {record.offset: record.value for position, header in headers(view) for record in records(view, position)}


def _check(code: int) -> None:
    if code:
        raise ApiError(ErrorCode(code))
