"""Dead letters: records a share group gives up, copied with their provenance before they count as given up.

A record that was rejected, or delivered too often, is appended to the group's dead-letter topic first; only when that
is as durable as the topic's settings make it is the record archived. A crash in between leaves the record where it was,
so it may come twice, but it is never lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.cluster.entities import NO_LEADER
from ottla.log.files.disk import StorageError
from ottla.log.producers.producers import Origin
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import check_topic_name, is_internal
from ottla.replica.partition import ACKS_ALL, Partition
from ottla.server.dead_letters.given_up import Burial
from ottla.server.dead_letters.letters import Letters
from ottla.server.loop.later import Later, gather
from ottla.server.peers.peer_requests import Outbox
from ottla.server.quorum.internal_topics import create_topics, created, new_topic
from ottla.shares.partition.terms import Dead
from ottla.wire.messages.records.produce import ProduceRequest

if TYPE_CHECKING:
    from ottla.server.api.context import Services


class Away:
    """A batch on its way to a partition that another node leads. To whoever waits for it it looks like a partition of
    which it is the only record."""

    __slots__ = ("cuts", "high_watermark", "index", "topic", "waits_for_disk")

    def __init__(self, topic: str, index: int) -> None:
        self.topic = topic
        self.index = index
        self.cuts = 0
        self.waits_for_disk = False
        self.high_watermark = 0

    def settle(self, answer: Any) -> None:
        codes = [ErrorCode.NETWORK_EXCEPTION] if isinstance(answer, ApiError) else _codes(answer)
        if any(codes):
            self.cuts += 1
        else:
            self.high_watermark = 1


class Placed(NamedTuple):
    """Letters that were appended: safe when the partition, its end never cut off since, has stored up to `end`."""

    partition: Partition | Away
    cuts: int
    end: int


class _Batch(NamedTuple):
    """On its way."""

    batch: bytearray
    away: Away


class _To(NamedTuple):
    node_id: int
    topic_id: bytes
    topic: str
    index: int  # type: ignore[assignment]  # hides tuple.index


class DeadLetters:
    def __init__(self, services: Services) -> None:
        self._services = services
        # One by one: a request has room for one batch of a partition.
        self._outbox: Outbox[_To, _Batch] = Outbox(self._send, lambda each: each.away, items_max=1)

    def write(self, topic: str, group_id: str, source: Partition, dead: Iterable[Dead]) -> Later[ApiError | None]:
        """None when the records are where they should be, else why they are not."""
        services = self._services
        outcome: Later[ApiError | None] = Later()
        stored: list[Later[ApiError | None]] = []

        def make() -> Letters:
            return Letters(source.topic, source.index, services.now_ms(), self.batch_bytes(topic, source.index))

        def place(batches: list[bytearray]) -> None:
            stored.extend(self._durable(each) for each in self._place(topic, source, batches))

        def placed(error: ApiError | None) -> None:
            if error is not None:
                outcome.set(error)
                return
            gather(stored).then(
                lambda errors: outcome.set(next((error for error in errors if error is not None), None))
            )

        def ready(error: ApiError | None) -> None:
            if error is not None:
                outcome.set(error)
            else:
                Burial(source, group_id, dead, make, place, placed).go_on(services.looking)

        self._ensure(topic, source).then(ready)
        return outcome

    def append(self, topic: str, source: Partition, batches: list[bytearray]) -> list[Placed]:
        """Append letters to the dead-letter topic of `source`: where they are. Raises ApiError."""
        ensured = self._ensure(topic, source)
        if not ensured.done:
            raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, f"The dead-letter topic {topic} is being made.")
        error = ensured.taken()
        if error is not None:
            raise error
        return self._place(topic, source, batches)

    def batch_bytes(self, topic: str, source_index: int) -> int:
        """How large a batch of letters may be: where the topic is led here, what it takes."""
        services = self._services
        found = services.metadata.state.topics.get(topic)
        if found is None:
            return limits.DEAD_LETTER_BATCH_BYTES
        index = source_index % len(found.partitions)
        if found.partitions[index].leader != services.node_id:
            return limits.DEAD_LETTER_BATCH_BYTES
        try:
            return min(limits.DEAD_LETTER_BATCH_BYTES, services.partitions.find(topic, index).log.batch_bytes_max)
        except (ApiError, StorageError):  # told when they are to be appended
            return limits.DEAD_LETTER_BATCH_BYTES

    def _ensure(self, topic: str, source: Partition) -> Later[ApiError | None]:
        """None when the topic is there; it is created if that is allowed."""
        services = self._services
        state = services.metadata.state
        ready: Later[ApiError | None] = Later()
        try:
            if is_internal(topic):
                raise ApiError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is the broker's own, and takes no dead letters"
                )
            if topic in state.topics:
                ready.set(None)
                return ready
            if not services.configs.broker.get("auto.create.topics.enable"):
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no dead-letter topic {topic}")
            check_topic_name(topic)
        except ApiError as error:
            ready.set(error)
            return ready
        # A letter is larger than its record was.
        room = source.log.config.max_message_bytes + limits.DEAD_LETTER_PROVENANCE_BYTES
        wanted = new_topic(topic, services.configs.broker, len(state.brokers))
        wanted = replace(wanted, configs=(*wanted.configs, ("max.message.bytes", str(room))))
        return create_topics(services, (wanted,)).map(created)

    def _place(self, topic: str, source: Partition, batches: list[bytearray]) -> list[Placed]:
        """Into the partition for what comes from `source`."""
        services = self._services
        found = services.metadata.state.topics.get(topic)
        if found is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        index = source.index % len(found.partitions)
        leader = found.partitions[index].leader
        if leader == NO_LEADER:
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE)
        if leader != services.node_id:
            to = _To(leader, found.id, topic, index)
            if self._outbox.waiting(to) >= limits.DEAD_LETTER_BATCHES_WAITING_MAX:
                # Not all who write wait for their letters: they must not fill this node's memory with them.
                raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, f"The leader of {topic}-{index} does not keep up.")
            return [self._post(to, batch) for batch in batches]
        target = services.partitions.find(topic, index)
        try:
            return [self._append(target, batch) for batch in batches]
        except StorageError as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def _post(self, to: _To, batch: bytearray) -> Placed:
        away = Away(to.topic, to.index)
        self._outbox.put(to, _Batch(batch, away))
        return Placed(away, 0, 1)

    def _send(self, to: _To, items: list[_Batch]) -> Later[None]:
        (item,) = items
        data = ProduceRequest.TopicProduceData(
            name=to.topic,
            topic_id=to.topic_id,
            partition_data=[
                ProduceRequest.TopicProduceData.PartitionProduceData(index=to.index, records=memoryview(item.batch))
            ],
        )
        request = ProduceRequest(acks=ACKS_ALL, timeout_ms=limits.COORDINATOR_REQUEST_MS, topic_data=[data])

        def answered(answer: Any) -> None:
            item.away.settle(answer)
            self._services.waiters.notify(item.away)

        return self._services.peer_requests.ask(to.node_id, request, "letters").map(answered)

    def _append(self, target: Partition, batch: bytearray) -> Placed:
        services = self._services
        cuts = target.cuts
        appended = target.append(batch, now_ms=services.now_ms(), acks=ACKS_ALL, origin=Origin.COORDINATOR)
        if target.counts_at_once:
            services.waiters.notify(target)
        if target.needs_sync:
            services.syncer.request(target)
        return Placed(target, cuts, appended.last_offset + 1)

    def _durable(self, placed: Placed) -> Later[ApiError | None]:
        services = self._services
        target, cuts, end = placed
        stored: Later[ApiError | None] = Later()

        epoch = target.leader_epoch if isinstance(target, Partition) else 0

        def settle(changed: Partition | Away | None) -> bool:
            if target.cuts != cuts:
                stored.set(ApiError(ErrorCode.KAFKA_STORAGE_ERROR))
            elif isinstance(target, Partition) and not (target.is_leader and target.leader_epoch == epoch):
                stored.set(ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            elif target.high_watermark >= end:
                stored.set(None)
            elif changed is None or (isinstance(target, Partition) and not services.partitions.holds(target)):
                stored.set(ApiError(ErrorCode.REQUEST_TIMED_OUT))
            return stored.done

        if not settle(target):
            services.waiters.watch(stored, [target], settle, limits.WAIT_MS_MAX)
        return stored


def _codes(answer: Any) -> list[int]:
    return [each.error_code for topic in answer.responses for each in topic.partition_responses]
