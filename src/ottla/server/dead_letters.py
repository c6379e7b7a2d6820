"""Dead letters: records a share group gives up, copied with their provenance before they count as given up.

A record that was rejected, or delivered too often, is appended to the group's dead-letter topic first; only when that
is as durable as the topic's settings make it is the record archived. A crash in between leaves the record where it was,
so it may come twice, but it is never lost.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ottla.cluster.commands.create_topics import CreateTopics
from ottla.log.disk import StorageError
from ottla.log.producers import Origin
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import check_topic_name, is_internal
from ottla.records.batch import BatchHeader, headers
from ottla.records.build import build_batch
from ottla.records.record import NO_OFFSET, Record, records
from ottla.replica.partition import Partition
from ottla.server.answer import Later, gather
from ottla.server.internal_topics import new_topic
from ottla.shares.partition.terms import Dead, Reason

if TYPE_CHECKING:
    from ottla.server.context import Services

log = logging.getLogger(__name__)

PREFIX = "ottla.dlq."
_REASONS = {Reason.REJECTED: b"rejected", Reason.DELIVERY_LIMIT: b"delivery-limit"}
# What a record's frame, and one header's, take at most (with a share of the batch's own header).
_OVERHEAD_BYTES = 100
_HEADER_OVERHEAD_BYTES = 10


class Placed(NamedTuple):
    """Letters that were appended: safe when the partition, its end never cut off since, has stored up to `end`."""

    partition: Partition
    cuts: int
    end: int


class DeadLetters:
    def __init__(self, services: Services) -> None:
        self._services = services

    def write(self, topic: str, group_id: str, source: Partition, dead: Iterable[Dead]) -> Later[ApiError | None]:
        """None when the records are where they should be, else why they are not."""
        try:
            placed = self.append(topic, source, self._letters(group_id, source, dead))
        except ApiError as error:
            failed: Later[ApiError | None] = Later()
            failed.set(error)
            return failed
        waits = [self._durable(each) for each in placed]
        return gather(waits).map(lambda errors: next((error for error in errors if error is not None), None))

    def append(self, topic: str, source: Partition, letters: Iterable[Record]) -> list[Placed]:
        """Append letters to the dead-letter topic of `source`: where they are. Raises ApiError."""
        target = self._target(topic, source)
        most_bytes = min(limits.DEAD_LETTER_BATCH_BYTES, target.log.batch_bytes_max)
        try:
            return [self._append(target, batch) for batch in _batches(letters, most_bytes)]
        except StorageError as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def _target(self, topic: str, source: Partition) -> Partition:
        """The partition for what comes from `source`; the topic is created if that is allowed."""
        services = self._services
        state = services.metadata.state
        if is_internal(topic):
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is the broker's own, and takes no dead letters")
        if topic not in state.topics:
            if not services.configs.broker.get("auto.create.topics.enable"):
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no dead-letter topic {topic}")
            check_topic_name(topic)
            # A letter is larger than its record was.
            room = source.log.config.max_message_bytes + limits.DEAD_LETTER_PROVENANCE_BYTES
            wanted = new_topic(topic, services.configs.broker, len(state.brokers))
            wanted = replace(wanted, configs=(*wanted.configs, ("max.message.bytes", str(room))))
            (outcome,) = services.metadata.submit(CreateTopics((wanted,)))
            if outcome.error is not None:
                raise outcome.error
        return services.partitions.find(topic, source.index % len(state.topics[topic].partitions))

    def _letters(self, group_id: str, source: Partition, dead: Iterable[Dead]) -> Iterator[Record]:
        now_ms = self._services.now_ms()
        for given_up in dead:
            for record in _read_between(source, given_up.first, given_up.last):
                yield _letter(record, group_id, source, given_up, now_ms)

    def _append(self, target: Partition, batch: bytearray) -> Placed:
        services = self._services
        cuts = target.cuts
        end = target.append(batch, now_ms=services.now_ms(), origin=Origin.COORDINATOR).last_offset + 1
        if not target.durable:
            services.waiters.notify(target)
        if target.needs_sync:
            services.syncer.request(target)
        return Placed(target, cuts, end)

    def _durable(self, placed: Placed) -> Later[ApiError | None]:
        services = self._services
        target, cuts, end = placed
        stored: Later[ApiError | None] = Later()

        def settle(changed: Partition | None) -> bool:
            if target.cuts != cuts:
                stored.set(ApiError(ErrorCode.KAFKA_STORAGE_ERROR))
            elif target.high_watermark >= end:
                stored.set(None)
            elif changed is None or not services.partitions.holds(target):
                stored.set(ApiError(ErrorCode.REQUEST_TIMED_OUT))
            return stored.done

        if not settle(target):
            services.waiters.watch(stored, [target], settle, limits.WAIT_MS_MAX)
        return stored


def _batches(letters: Iterable[Record], most_bytes: int) -> Iterator[bytearray]:
    """Batches of at most that size, unless one letter alone is larger."""
    batch: list[Record] = []
    size_bytes = 0
    for letter in letters:
        own_bytes = len(letter.key or b"") + len(letter.value or b"") + _OVERHEAD_BYTES
        own_bytes += sum(len(name) + len(value or b"") + _HEADER_OVERHEAD_BYTES for name, value in letter.headers)
        if batch and size_bytes + own_bytes > most_bytes:
            yield build_batch(batch)
            batch, size_bytes = [], 0
        batch.append(letter)
        size_bytes += own_bytes
    if batch:
        yield build_batch(batch)


def _read_between(partition: Partition, first: int, last: int) -> Iterator[Record]:
    """The records at these offsets that the log still has."""
    offset = max(first, partition.log.log_start_offset)
    while offset <= last:
        found = partition.log.read(offset, limits.SCAN_READ_BYTES, max_offset=partition.high_watermark)
        if found.slice is None:
            return
        data = found.slice.read()
        for position, header in headers(data):
            if header.base_offset > last:
                return
            yield from (each for each in _readable(partition, data, position, header) if offset <= each.offset <= last)
            offset = max(offset, header.next_offset)


def _readable(partition: Partition, data: bytes, position: int, header: BatchHeader) -> list[Record]:
    """The records of a batch; none if its producer garbled it, so that no letter could hold them."""
    if header.is_control:
        return []
    try:
        return list(records(data, position))
    except ApiError as error:
        log.warning("%s: the batch at %d is given up without a letter: %s", partition.name, header.base_offset, error)
        return []


def _letter(record: Record, group_id: str, source: Partition, dead: Dead, now_ms: int) -> Record:
    """The record as it was, with its provenance; of a letter that died again, the last one."""
    details = (("group", group_id.encode()), ("delivery-count", b"%d" % dead.count))
    return letter(record, source, record.offset, _REASONS[dead.reason], now_ms, details)


def letter(
    record: Record,
    source: Partition,
    offset: int,
    reason: bytes,
    now_ms: int,
    details: Iterable[tuple[str, bytes]] = (),
) -> Record:
    """A record as it was, with headers that say where it comes from (or would have been) and why it is here."""
    provenance = (
        ("topic", source.topic.encode()),
        ("partition", b"%d" % source.index),
        ("offset", b"%d" % offset),
        *details,
        ("reason", reason),
        ("timestamp", b"%d" % record.timestamp),
    )
    own = tuple(header for header in record.headers if not header[0].startswith(PREFIX))
    added = tuple((PREFIX + name, value) for name, value in provenance)
    return Record(NO_OFFSET, now_ms, record.key, record.value, own + added)
