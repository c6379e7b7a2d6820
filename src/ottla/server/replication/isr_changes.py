"""IsrChanges: proposes changes of the in-sync replicas to the controller, for the partitions led here.

One AlterPartition is under way at a time and carries the changes proposed before it was sent, up to a bound. A request
that fails as a whole is sent again a little later, with the proposals that are still valid. A proposal ends with the
controller's answer or with a newer state in the metadata, whichever comes first. A periodic check looks for followers
that fell behind.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from itertools import islice

from ottla.client.errors import ClientError, error_code
from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.model.settings.replication import REPLICA_LAG_TIME_MAX_MS
from ottla.replica.partition import Partition
from ottla.replica.terms import Proposal, Terms
from ottla.server.loop.runtime import Runtime
from ottla.server.quorum.controller_link import ControllerLink
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.replication.session import Key
from ottla.server.settings.configs import Configs
from ottla.server.storage.partitions import Partitions
from ottla.wire.messages.cluster.alter_partition import AlterPartitionRequest, AlterPartitionResponse

log = logging.getLogger(__name__)

_Topic = AlterPartitionRequest.TopicData
_Ask = _Topic.PartitionData
_Answer = AlterPartitionResponse.TopicData.PartitionData
_Proposed = Mapping[Key, tuple[Partition, Proposal]]


class IsrChanges:
    def __init__(
        self,
        runtime: Runtime,
        configs: Configs,
        partitions: Partitions,
        metadata: MetadataHost,
        link: ControllerLink,
    ) -> None:
        self._loop = runtime.loop
        self._steady_ms = runtime.steady_ms
        self._configs = configs
        self._partitions = partitions
        self._metadata = metadata
        self._link = link
        self._due: dict[Partition, None] = {}
        self._sending: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the check for followers that fall behind; called when this node leads a replicated partition."""
        if self._looking is None:
            self._looking = self._loop.create_task(self._look_for_laggards())

    def consider(self, partition: Partition) -> None:
        """Check whether the partition has a change to propose, and send it."""
        self._due[partition] = None
        if self._sending is None:
            self._sending = self._loop.create_task(self._send_all())

    async def close(self) -> None:
        tasks = [each for each in (self._sending, self._looking) if each is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look_for_laggards(self) -> None:
        """Check as often as Kafka: a follower leaves the ISR at most 1.5 times replica.lag.time.max.ms after it
        stopped.
        """
        while True:
            await asyncio.sleep(self._configs.broker[REPLICA_LAG_TIME_MAX_MS] / 2000)
            for number, partition in enumerate(tuple(self._partitions.opened()), start=1):
                if partition.in_sync is not None and partition.in_sync.pending is None:
                    end, now_ms = partition.log.written_offset, self._steady_ms()
                    if partition.in_sync.lagging(end, now_ms, partition.neighbours.lag_ms_max):
                        self.consider(partition)
                if number % limits.PARTITIONS_VISITED_PER_TURN == 0:
                    await asyncio.sleep(0)

    async def _send_all(self) -> None:
        try:
            while self._due:
                proposed = self._take_proposals()
                while proposed:
                    try:
                        proposed = await self._ask(proposed)
                    except ClientError as error:
                        log.info("the controller did not answer about in-sync replicas: %s", error)
                    except Exception:
                        log.exception("changes of in-sync replicas could not be proposed")
                    if proposed:
                        await asyncio.sleep(limits.ALTER_PARTITION_RETRY_MS / 1000)
                        proposed = self._still_proposed(proposed)
        finally:
            self._sending = None

    def _take_proposals(self, had: int = 0) -> _Proposed:
        partitions = self._partitions
        found: dict[Key, tuple[Partition, Proposal]] = {}
        for partition in tuple(islice(self._due, max(0, limits.ISR_CHANGES_PER_REQUEST_MAX - had))):
            del self._due[partition]
            topic_id = partitions.topic_id(partition.topic)
            if topic_id is not None and partitions.holds(partition):
                proposal = partition.isr_proposal(self._steady_ms())
                if proposal is not None:
                    found[Key(topic_id, partition.index)] = partition, proposal
        return found

    def _still_proposed(self, proposed: _Proposed) -> _Proposed:
        """Return the proposals that are not settled meanwhile, and new ones."""
        left = {
            key: (partition, proposal)
            for key, (partition, proposal) in proposed.items()
            if self._is_pending(partition, proposal)
        }
        return {**left, **self._take_proposals(len(left))}

    def _is_pending(self, partition: Partition, proposal: Proposal) -> bool:
        in_sync = partition.in_sync
        return in_sync is not None and in_sync.pending is proposal and self._partitions.holds(partition)

    async def _ask(self, proposed: _Proposed) -> _Proposed:
        """Send the proposals to the controller; return those that have to be sent again."""
        node_id = self._metadata.node_id
        request = AlterPartitionRequest(
            broker_id=node_id,
            broker_epoch=self._metadata.state.broker_epoch(node_id),
            topics=_topics(proposed),
        )
        answer = await self._link.ask(request, errors=_errors)
        if answer.error_code:
            log.info("AlterPartition was refused: %s", error_code(answer.error_code).name)
            return proposed
        told = {Key(topic.topic_id, data.partition_index): data for topic in answer.topics for data in topic.partitions}
        again: dict[Key, tuple[Partition, Proposal]] = {}
        for key, (partition, proposal) in proposed.items():
            data = told.get(key)  # a proposal that the answer leaves out is sent again, as Kafka's brokers do
            if self._is_pending(partition, proposal) and (data is None or self._settle(partition, data)):
                again[key] = partition, proposal
        return again

    def _settle(self, partition: Partition, data: _Answer) -> bool:
        """Apply the controller's answer for one partition; return whether to send the same proposal again."""
        error = error_code(data.error_code)
        if error != ErrorCode.NONE:
            log.info("another ISR of %s was refused: %s", partition.name, error.name)
            return partition.proposal_refused(error, self._steady_ms())
        in_sync = partition.in_sync
        assert in_sync is not None, "it is pending"
        replicas = (partition.node_id, *in_sync.followers)
        terms = Terms(data.leader_id, data.leader_epoch, data.partition_epoch, replicas, tuple(data.isr))
        partition.proposal_accepted(terms, self._steady_ms())
        return False


def _errors(response: AlterPartitionResponse) -> Iterable[int]:
    """Return all error codes: a controller that is behind answers NOT_CONTROLLER for partitions whose state
    it lacks.
    """
    yield response.error_code
    yield from (data.error_code for topic in response.topics for data in topic.partitions)


def _topics(proposed: _Proposed) -> list[_Topic]:
    topics: dict[bytes, list[_Ask]] = {}
    for (topic_id, index), (_, proposal) in proposed.items():
        ask = _Ask(
            partition_index=index,
            leader_epoch=proposal.leader_epoch,
            new_isr=list(proposal.members),
            new_isr_with_epochs=[_Ask.BrokerState(broker_id=id, broker_epoch=epoch) for id, epoch in proposal.isr],
            partition_epoch=proposal.partition_epoch,
        )
        topics.setdefault(topic_id, []).append(ask)
    return [_Topic(topic_id=topic_id, partitions=asks) for topic_id, asks in topics.items()]
