"""SchemaCache: the registered schemas, read by the broker from the registry's topic `_schemas`.

If this node leads the topic, `catch_up` reads what is new in it, and costs a comparison when nothing is. So a schema is
known from the moment its registration was acknowledged, and a broker without contracts pays nothing.

If another node leads the topic, new records are fetched from there from time to time while there are batches to
inspect. The known schemas may then be a moment old, so no batch is refused because of them alone: `is_certain` says
whether the topic was read to its end after a doubt arose, and makes sure that it is.

Workers inspect records with the known schemas, which change only while no worker is inspecting
(`BatchLooks.when_quiet`).

Rules:
- No record is judged while the topic is only partly read. Whenever it is read from its start (this node became its
  leader, or stopped being it; the topic was created anew, or truncated) `catch_up` is False until the end was reached.
  A new leader whose high watermark is below the start of its epoch does not know the end: records that were
  acknowledged by its predecessor may be above it.
- A long topic is read in slices, and a batch of many records in several, so that other work has its turn.
- A record that cannot be applied is skipped and logged; so is a record, or a batch, that is larger than any registry's
  (`limits.SCHEMAS_BATCH_BYTES_MAX`).
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ottla.cluster.entities import NO_LEADER
from ottla.log.files.disk import StorageError
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_LEADER_EPOCH, LeaderEpoch
from ottla.model.names import SCHEMAS_TOPIC
from ottla.records.batch import BatchHeader, headers
from ottla.records.committed import AbortedFilter
from ottla.records.record import Record as LogRecord
from ottla.records.record import records
from ottla.replica.reading import LATEST, READ_COMMITTED
from ottla.schemas.registry.records import RegistryRecord
from ottla.server.schemas.registered_schema import RegisteredSchemas
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest, ListOffsetsResponse

if TYPE_CHECKING:
    from ottla.replica.partition import Partition
    from ottla.server.loop.runtime import Runtime
    from ottla.server.peers.peer_requests import PeerRequests
    from ottla.server.quorum.metadata_host import MetadataHost
    from ottla.server.storage.storage import Storage

TOPIC = SCHEMAS_TOPIC
_END = object()

log = logging.getLogger(__name__)


class SchemaCache:
    def __init__(self, runtime: Runtime, storage: Storage, metadata: MetadataHost, peers: PeerRequests) -> None:
        self._steady_ms = runtime.steady_ms
        self._loop = runtime.loop
        self._partitions = storage.partitions
        self._looks = storage.looks
        self._metadata = metadata
        self._peers = peers
        self._refreshing = False
        self._reading_on = False
        self.reading = 0  # counts how often the topic was read from its start
        self._steps = 0  # counts doubts and fetches, to order them
        self._doubts: dict[Hashable, int] = {}  # doubt → the step in which it arose
        self._forget(None)

    def _forget(self, source: Partition | bytes | None) -> None:
        """Start anew, with the partition here, or with the topic of this id on another node."""
        self.reading += 1
        self._source = source
        self._is_whole = False  # whether the end of the topic was reached
        self._certain = 0  # everything registered before this step is known
        self._certain_ms = 0
        self._next = 0
        self._epoch = NO_LEADER_EPOCH
        self._cuts = 0
        self.known = RegisteredSchemas()  # as of the last `catch_up`
        self._taking: Generator[None, None, None] | None = None  # the records that were read and are not applied yet

    def catch_up(self) -> bool:
        """Read what is new, or start fetching it. False: the topic is only partly read, and no record can be judged
        yet.
        """
        metadata = self._metadata
        topic = metadata.state.topics.get(TOPIC)
        leader = NO_LEADER if topic is None else topic.partitions[0].leader
        if topic is None:
            if self._source is not None or not self._is_whole:
                self._forget(None)
                self._is_whole = True
        elif leader == metadata.node_id:
            self._read_here()
        else:
            if self._source != topic.id:
                self._forget(topic.id)
            if not self._is_whole or self._steady_ms() - self._certain_ms >= limits.SCHEMAS_STALE_MS:
                self._refresh(topic.id, leader)
        return self._is_whole

    def is_certain(self, doubts: Sequence[Hashable]) -> bool:
        """Return whether everything registered before these doubts arose is known; if not, fetch it, and the caller
        asks again.
        """
        topic = self._metadata.state.topics.get(TOPIC)
        if topic is None or topic.partitions[0].leader == self._metadata.node_id:
            return True
        self._steps += 1
        if max(self._doubts.setdefault(doubt, self._steps) for doubt in doubts) < self._certain:
            for doubt in doubts:
                self._doubts.pop(doubt, None)
            return True
        while len(self._doubts) > limits.SCHEMA_DOUBTS_MAX:
            del self._doubts[next(iter(self._doubts))]
        self._refresh(topic.id, topic.partitions[0].leader)
        return False

    # --- here

    def _read_here(self) -> None:
        try:
            partition = self._partitions.find(TOPIC, 0)
        except ApiError:
            self._forget(None)
            return
        if partition is not self._source or partition.cuts != self._cuts:
            self._forget(partition)  # the partition was deleted, created anew, or truncated
            self._cuts = partition.cuts
        self._next = max(self._next, partition.log.log_start_offset)
        if self._next < partition.last_stable_offset:
            self._is_whole = False
            self._read_slice(partition)
        if not self._is_whole and partition.high_watermark >= partition.epoch_start:
            self._is_whole = self._next >= partition.last_stable_offset

    def _read_slice(self, partition: Partition) -> None:
        """Read a part of the topic; the rest follows in later turns of the loop."""
        if self._taking is None:
            try:
                read = partition.fetch(self._next, limits.SCHEMAS_SLICE_BYTES, isolation=READ_COMMITTED)
                if read.records is None:
                    return
                data = memoryview(read.records.read())
            except ApiError:
                return  # this node is no longer the leader, or its disk fails: the next call handles it
            except StorageError as error:
                self._partitions.storage_failed(partition, error)
                return
            self._taking = self._take(data, read.aborted)
        self._take_some()
        if self._next < partition.last_stable_offset and not self._reading_on:
            self._reading_on = True
            self._loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        self._reading_on = False
        self._looks.when_quiet(self.catch_up)

    def _take_some(self) -> None:
        """Apply a slice of the records that were read."""
        self.known.forget()
        if self._taking is not None and next(self._taking, _END) is _END:
            self._taking = None

    def _take(self, data: memoryview, aborted: Sequence[tuple[int, int]]) -> Generator[None, None, None]:
        filtered = AbortedFilter(aborted)
        for at, header in headers(data):
            batch = data[at : at + header.size_bytes]
            is_aborted = filtered.is_aborted(header, batch)
            if header.next_offset > self._next and not header.is_control and not is_aborted:
                yield from self._apply(batch, header)
            self._next, self._epoch = max(self._next, header.next_offset), header.leader_epoch

    def _apply(self, batch: memoryview, header: BatchHeader) -> Generator[None, None, None]:
        try:
            for number, each in enumerate(records(batch, limit_bytes=limits.SCHEMAS_BATCH_BYTES_MAX), 1):
                if each.offset >= self._next:  # the log may start in the middle of a batch
                    self._apply_one(each)
                if not number % limits.SCHEMAS_TAKEN_AT_ONCE:
                    yield
        except Exception as error:  # brokers do not check the contents of a batch, so they may be anything
            is_defect = not isinstance(error, ApiError)
            what = "the batch at offset %d of %s cannot be read: passed over (%s)"
            log.error(what, header.base_offset, TOPIC, error, exc_info=is_defect)

    def _apply_one(self, each: LogRecord) -> None:
        try:
            self.known.machine.apply(RegistryRecord(each.key or b"", each.value, each.headers, each.timestamp))
        except Exception:
            log.exception("the record at offset %d of %s cannot be taken in: passed over", each.offset, TOPIC)

    # --- elsewhere

    def _refresh(self, topic_id: bytes, leader: int) -> None:
        """Ask for the end of the topic, and fetch new records up to there. A leader that does not know yet how far its
        predecessor had come answers OFFSET_NOT_AVAILABLE.
        """
        if self._refreshing or leader == NO_LEADER:
            return
        self._refreshing = True
        self._steps += 1
        step, source = self._steps, self._source

        def ended(answer: ListOffsetsResponse | ApiError) -> None:
            self._looks.when_quiet(lambda: begin(answer))

        def begin(answer: ListOffsetsResponse | ApiError) -> None:
            self._refreshing = False
            if self._source is source and not isinstance(answer, ApiError):
                found = next((each for topic in answer.topics for each in topic.partitions), None)
                if found is not None and not found.error_code:
                    self._fetch(topic_id, leader, found.offset, step)

        self._peers.ask(leader, _end_wanted(), "schemas").then(ended, lambda: ended(_unanswered()))

    def _fetch(self, topic_id: bytes, leader: int, end: int, step: int) -> None:
        if end < self._next:
            self._forget(self._source)  # truncated
        if self._next >= end:
            self._certain, self._certain_ms = step, self._steady_ms()
            self._is_whole = True
            return
        self._refreshing = True
        source = self._source

        def fetched(answer: FetchResponse | ApiError) -> None:
            self._looks.when_quiet(lambda: take(answer))

        def take(answer: FetchResponse | ApiError) -> None:
            self._refreshing = False
            if self._source is source and not isinstance(answer, ApiError) and not answer.error_code:
                found = next((each for topic in answer.responses for each in topic.partitions), None)
                if found is not None and self._fetched(found):
                    take_on(self._next if self._taking is not None else -1)

        def take_on(before: int) -> None:
            self._refreshing = False
            if self._source is not source:
                return
            self._take_some()
            if self._taking is not None:
                self._refreshing = True
                again = partial(take_on, before)
                self._loop.call_soon(self._looks.when_quiet, again)
            elif self._next > before:
                self._fetch(topic_id, leader, end, step)

        self._peers.ask(leader, _records_wanted(topic_id, self._next, self._epoch), "schemas").then(
            fetched, lambda: fetched(_unanswered())
        )

    def _fetched(self, found: FetchResponse.FetchableTopicResponse.PartitionData) -> bool:
        """Take a fetch response; return whether there is progress: records to be applied, or a new start."""
        if found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE or found.diverging_epoch.end_offset >= 0:
            self._forget(self._source)  # deleted below, or truncated
            self._next = max(found.log_start_offset, 0)
            return True
        if found.error_code:
            return False
        if not found.records:
            return False
        aborted = [(each.producer_id, each.first_offset) for each in found.aborted_transactions or ()]
        self._taking = self._take(memoryview(bytes(found.records)), aborted)
        return True


def _unanswered() -> ApiError:
    return ApiError(ErrorCode.NETWORK_EXCEPTION, "there will be no answer")


def _end_wanted() -> ListOffsetsRequest:
    partition = ListOffsetsRequest.Topic.Partition(partition_index=0, timestamp=LATEST)
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=READ_COMMITTED,
        topics=[ListOffsetsRequest.Topic(name=TOPIC, partitions=[partition])],
    )


def _records_wanted(topic_id: bytes, offset: int, epoch: LeaderEpoch) -> FetchRequest:
    partition = FetchRequest.Topic.Partition(
        partition=0,
        fetch_offset=offset,
        last_fetched_epoch=epoch,
        partition_max_bytes=limits.SCHEMAS_SLICE_BYTES,
    )
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        isolation_level=READ_COMMITTED,
        topics=[FetchRequest.Topic(topic=TOPIC, topic_id=topic_id, partitions=[partition])],
    )
