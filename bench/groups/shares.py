"""A share group reads a topic to its end: each fetch acknowledges the records of the last one, as in
KafkaShareConsumer.
"""

from __future__ import annotations

import asyncio
from itertools import count
from uuid import uuid4

from bench import probe
from bench.groups.pipe import Pipe, configure_group, drive, open_all, topic_id, wait_for_coordinators
from bench.subject import Cost, Subject
from bench.workloads import Figures, Scale
from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.shares.share_fetch import ShareFetchRequest, ShareFetchResponse
from ottla.wire.messages.shares.share_group_heartbeat import ShareGroupHeartbeatRequest

MEMBERS = 4
PARTITIONS = 4
RECORDS_PER_BATCH = 100
RECORD_BYTES = 100
MAX_RECORDS = 500  # max.poll.records of the Java consumer
PRODUCE, FETCH, HEARTBEAT = 9, 2, 1
ACCEPT = 1
NOT_LEADER = 6
_numbers = count()

Topic = ShareFetchRequest.FetchTopic
Partition = Topic.FetchPartition


def shares(subject: Subject, scale: Scale, round_: int) -> Figures:
    """Four members, four partitions, records of 100 bytes in batches of 100; every record is accepted."""
    topic = f"shares-{next(_numbers)}"
    probe.create_topics(subject.bootstrap, [topic], PARTITIONS)
    probe.until_all_led(subject.bootstrap, [topic], PARTITIONS)

    async def program() -> Figures:
        pipes = await open_all(subject.bootstrap, MEMBERS)
        group = f"group-{topic}"
        await wait_for_coordinators(pipes[0], [group])
        await configure_group(pipes[0], group, share_auto_offset_reset="earliest", share_assignment_interval_ms="0")
        await asyncio.gather(*(_fill(pipe, topic, at, scale.share_records) for at, pipe in enumerate(pipes)))
        crowd = Crowd(group, topic, await topic_id(pipes[0], topic), scale.share_records)
        members = [Member(crowd, pipe) for pipe in pipes]
        try:
            await _settle(members)
            await asyncio.gather(*(member.begin() for member in members))
            with Cost(subject) as cost:
                await asyncio.gather(*(member.run() for member in members))
        finally:
            for pipe in pipes:
                pipe.close()
        return {
            "us_per_record": 1e6 * cost.wall_s / scale.share_records,
            "cpu_us_per_record": 1e6 * cost.cpu_s / scale.share_records,
            "records_per_s": scale.share_records / cost.wall_s,
        }

    return drive(program)


async def _fill(pipe: Pipe, topic: str, partition: int, total: int) -> None:
    records = [Record(at, 0, None, b"v" * RECORD_BYTES, ()) for at in range(RECORDS_PER_BATCH)]
    batch = build_batch(records)
    data = ProduceRequest.TopicProduceData
    part = data.PartitionProduceData(index=partition, records=batch)
    request = ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[data(name=topic, partition_data=[part])])
    left = total // PARTITIONS // RECORDS_PER_BATCH
    while left:
        error = (await pipe.ask(request, PRODUCE)).responses[0].partition_responses[0].error_code
        assert error in (0, NOT_LEADER), error
        left -= error == 0  # Kafka shows a leader some time before that broker knows that it leads


async def _settle(members: list[Member]) -> None:
    """Send heartbeats until every member has a partition of its own."""
    for _ in range(600):
        for member in members:
            await member.beat()
        if sorted(each for member in members for each in member.assigned) == list(range(PARTITIONS)):
            return
        await asyncio.sleep(0.05)
    raise TimeoutError("the assignment does not come to rest")


class Crowd:
    """The common state of the members."""

    def __init__(self, group: str, topic: str, topic_id: bytes, left: int) -> None:
        self.group = group
        self.topic = topic
        self.topic_id = topic_id
        self.left = left  # records that no member has accepted yet


class Member:
    """One consumer with its share session."""

    def __init__(self, crowd: Crowd, pipe: Pipe) -> None:
        self.crowd = crowd
        self.pipe = pipe
        self.id = str(uuid4())
        self.epoch = 0
        self.assigned: list[int] = []
        self.session_epoch = 0
        self.acquired: dict[int, list[Partition.AcknowledgementBatch]] = {}

    async def beat(self) -> None:
        request = ShareGroupHeartbeatRequest(
            group_id=self.crowd.group,
            member_id=self.id,
            member_epoch=self.epoch,
            subscribed_topic_names=[self.crowd.topic] if self.epoch == 0 else None,
        )
        answer = await self.pipe.ask(request, HEARTBEAT)
        assert answer.error_code == 0, answer
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.assigned = [each for part in answer.assignment.topic_partitions for each in part.partitions]

    async def begin(self) -> None:
        """Open the session and wait until the broker has loaded the share partitions."""
        while not self.acquired:
            await self._fetch()

    async def run(self) -> None:
        while self.crowd.left > 0:
            await self._fetch()

    async def _fetch(self) -> None:
        """Accept the records of the last fetch, and fetch the next."""
        accepted = self.acquired
        names = self.assigned if self.session_epoch == 0 else list(accepted)
        partitions = [Partition(partition_index=each, acknowledgement_batches=accepted.get(each, [])) for each in names]
        request = ShareFetchRequest(
            group_id=self.crowd.group,
            member_id=self.id,
            share_session_epoch=self.session_epoch,
            max_wait_ms=100,
            min_bytes=1,
            max_records=MAX_RECORDS,
            batch_size=MAX_RECORDS,
            topics=[Topic(topic_id=self.crowd.topic_id, partitions=partitions)] if partitions else [],
            forgotten_topics_data=[],
        )
        answer: ShareFetchResponse = await self.pipe.ask(request, FETCH)
        assert answer.error_code == 0, answer
        self.session_epoch += 1
        self.crowd.left -= sum(each.last_offset - each.first_offset + 1 for part in accepted.values() for each in part)
        self.acquired = {}
        for topic in answer.responses:
            for part in topic.partitions:
                assert part.error_code == 0, part
                assert part.acknowledge_error_code == 0, part
                if part.acquired_records:
                    self.acquired[part.partition_index] = [
                        Partition.AcknowledgementBatch(
                            first_offset=each.first_offset, last_offset=each.last_offset, acknowledge_types=[ACCEPT]
                        )
                        for each in part.acquired_records
                    ]
