"""Dead letters: copies of records that a share group gives up, or that break a contract, with their provenance.

A record that a share group rejects, or that was delivered too often, is first appended to the group's dead-letter
topic; it is archived only when that append is durable, as the topic's settings define it. After a crash in between, the
letter may be written twice, but a record is never lost.

The rights of whoever names a dead-letter topic are checked when it is named (`server/api/guard/letter_topics.py`). Each
time letters are placed, it is checked again that they do not leave their tenant, and that no server keeps its own
records in the topic. Letters that are refused count as not written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from ottla.cluster.entities import NO_LEADER
from ottla.log.files.disk import StorageError
from ottla.log.inspection import Placed
from ottla.log.producers.producers import Origin
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import check_topic_name, is_reserved
from ottla.model.settings.node import AUTO_CREATE_TOPICS_ENABLE
from ottla.model.topic_settings import MAX_MESSAGE_BYTES
from ottla.records.batch import read_header
from ottla.replica.partition import ACKS_ALL, Partition
from ottla.server.dead_letters.letters import Letters
from ottla.server.dead_letters.remote_letters import RemoteLetters, RemotePartition
from ottla.server.dead_letters.share_group_letters import ShareGroupLetters
from ottla.server.loop.later import Later, gather, settled
from ottla.shares.partition.terms import Dead

if TYPE_CHECKING:
    from ottla.server.loop.runtime import Runtime
    from ottla.server.peers.peer_requests import PeerRequests
    from ottla.server.quorum.metadata_host import MetadataHost
    from ottla.server.settings.configs import Configs
    from ottla.server.storage.storage import Storage


class CreateTopic(Protocol):
    def __call__(self, name: str, /, *configs: tuple[str, str]) -> Later[ApiError | None]:
        """Have the controller create a topic; set to None when it exists."""
        ...


class Admit(Protocol):
    def __call__(self, target: str, /, *sources: str) -> None:
        """Raise ApiError if letters of these sources may not be written to the topic now."""
        ...


class DeadLetters:
    def __init__(
        self,
        runtime: Runtime,
        configs: Configs,
        storage: Storage,
        metadata: MetadataHost,
        peers: PeerRequests,
        *,
        create_topic: CreateTopic,
        admit: Admit,
    ) -> None:
        self._now_ms = runtime.now_ms
        self._configs = configs
        self._storage = storage
        self._partitions = storage.partitions
        self._waiters = storage.waiters
        self._looks = storage.looks
        self._metadata = metadata
        self._create_topic = create_topic
        self._admit = admit
        self.count = 0  # letters that were written here, or handed over to a leader
        self._remote = RemoteLetters(peers, storage.waiters.notify)

    def write(self, topic: str, group_id: str, source: Partition, dead: Iterable[Dead]) -> Later[ApiError | None]:
        """Write letters for records that a share group gives up; set to None when they are stored, else to
        the error.
        """
        outcome: Later[ApiError | None] = Later()
        stored: list[Later[ApiError | None]] = []

        def make() -> Letters:
            return Letters(source.topic, source.index, self._now_ms(), self.batch_bytes(topic, source.index))

        def place(batches: list[bytearray]) -> None:
            stored.extend(self._durable(each) for each in self._place(topic, source, batches, group_id))

        def placed(error: ApiError | None) -> None:
            if error is not None:
                outcome.set(error)
                return
            gather(stored).then(
                lambda errors: outcome.set(next((error for error in errors if error is not None), None)), outcome.fail
            )

        def ready(error: ApiError | None) -> None:
            if error is not None:
                outcome.set(error)
            else:
                ShareGroupLetters(source, group_id, dead, make, place, placed).go_on(self._looks)

        self._ensure(topic, source, group_id).then(ready, outcome.fail)
        return outcome

    def append(self, topic: str, source: Partition, batches: list[bytearray]) -> list[Placed]:
        """Append letters to the dead-letter topic of `source`; return where they are. Raises ApiError."""
        ensured = self._ensure(topic, source)
        if not ensured.done or ensured.failed:
            raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, f"The dead-letter topic {topic} is being made.")
        error = ensured.taken()
        if error is not None:
            raise error
        return self._place(topic, source, batches)

    def batch_bytes(self, topic: str, source_index: int) -> int:
        """Return how large a batch of letters may be: limited by the topic's setting if this node leads it."""
        found = self._metadata.state.topics.get(topic)
        if found is None:
            return limits.DEAD_LETTER_BATCH_BYTES
        index = source_index % len(found.partitions)
        if found.partitions[index].leader != self._metadata.node_id:
            return limits.DEAD_LETTER_BATCH_BYTES
        try:
            return min(limits.DEAD_LETTER_BATCH_BYTES, self._partitions.find(topic, index).log.batch_bytes_max)
        except (ApiError, StorageError):  # the append will raise the error
            return limits.DEAD_LETTER_BATCH_BYTES

    def _check(self, topic: str, source: Partition, group_id: str) -> None:
        """Raise ApiError if the topic may not take letters of `source`. Those of a share group are the group's."""
        if is_reserved(topic):
            raise ApiError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is for the servers' own records, and takes no dead letters"
            )
        self._admit(topic, group_id, source.topic)

    def _ensure(self, topic: str, source: Partition, group_id: str = "") -> Later[ApiError | None]:
        """Create the topic if it does not exist and auto-creation is allowed; set to None when it exists."""
        try:
            self._check(topic, source, group_id)
            if topic in self._metadata.state.topics:
                return settled(None)
            if not self._configs.broker[AUTO_CREATE_TOPICS_ENABLE]:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no dead-letter topic {topic}")
            check_topic_name(topic)
        except ApiError as error:
            return settled(error)
        # A letter is larger than its record, because of its headers.
        room = source.log.config.max_message_bytes + limits.DEAD_LETTER_PROVENANCE_BYTES
        return self._create_topic(topic, (MAX_MESSAGE_BYTES.name, str(room)))

    def _place(self, topic: str, source: Partition, batches: list[bytearray], group_id: str = "") -> list[Placed]:
        """Append the batches to the partition for letters of `source`."""
        self._check(topic, source, group_id)
        found = self._metadata.state.topics.get(topic)
        if found is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        index = source.index % len(found.partitions)
        leader = found.partitions[index].leader
        if leader == NO_LEADER:
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE)
        letters = sum(read_header(batch).count for batch in batches)
        if leader != self._metadata.node_id:
            self.count += letters
            return self._remote.put(RemotePartition(leader, found.id, topic, index), batches)
        target = self._partitions.find(topic, index)
        try:
            placed = [self._append(target, batch) for batch in batches]
        except StorageError as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        self.count += letters
        return placed

    def _append(self, target: Partition, batch: bytearray) -> Placed:
        cuts = target.cuts
        appended = target.append(batch, now_ms=self._now_ms(), acks=ACKS_ALL, origin=Origin.COORDINATOR)
        self._storage.appended(target)
        return Placed(target, cuts, appended.last_offset + 1)

    def _durable(self, placed: Placed) -> Later[ApiError | None]:
        target, cuts, end = placed
        stored: Later[ApiError | None] = Later()
        here = target if isinstance(target, Partition) else None
        epoch = here.leader_epoch if here is not None else 0

        def settle(changed: object) -> bool:
            if target.cuts != cuts:
                stored.set(ApiError(ErrorCode.KAFKA_STORAGE_ERROR))
            elif here is not None and not (here.is_leader and here.leader_epoch == epoch):
                stored.set(ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            elif target.high_watermark >= end:
                stored.set(None)
            elif changed is None or (here is not None and not self._partitions.holds(here)):
                stored.set(ApiError(ErrorCode.REQUEST_TIMED_OUT))
            return stored.done

        if not settle(target):
            self._waiters.watch(stored, [target], settle, limits.WAIT_MS_MAX)
        return stored
