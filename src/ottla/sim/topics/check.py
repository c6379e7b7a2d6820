"""Claims about topics whose settings change, checked against what clients did and saw.

A topic is compacted at times, shortened by retention and DeleteRecords, deleted and created again under its name. So
the claims are about a record's *place*: the offset at which it is known to be committed. A place is known from the
producer (the record or its transaction's commit was acknowledged), or from a read_committed reader.

Claims:
1. none invented: every record that a read_committed reader gets was sent, to that partition, with that key, and is
   undamaged; no record of a deleted topic is found in its successor;
2. none lost: a record with a place at or above the log start is there, unless its topic was ever compacted and a newer
   committed record of the same key is there, or a newer tombstone was written;
3. none revived: when a tombstone is gone, all earlier records of its key are gone. (A follower that was offline appends
   what its leader has compacted after its own records: there a newer record of the key is enough.)
4. stable: a place never shows another record;
5. none aborted: a record of a transaction whose producer never asked for the commit is never returned;
6. once and in order: the records of one producer are there at most once, and in the order in which they were sent;
7. dense: without compaction and transactions there are no gaps;
8. the log start moves only on request: by DeleteRecords up to its offset, or by a short retention;
9. a power loss takes nothing below the recovery point of that time, and above it only the end of the log, from some
   offset on: records with a place below that offset keep it. (If records are synced before they are acknowledged, no
   record with a place is lost.)
10. no file of a deleted topic is left (`run.TopicSimulation`).

For a record sent while a topic was being deleted, or across a power loss, it is unknown to which of two logs it
belongs: then nothing is claimed of its place, but 1, 5 and 6 still hold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.client.consumer.fetching import ConsumedRecord
from ottla.model.ids import TopicPartition
from ottla.sim.check import Payload, decode_payload, encode_payload, name
from ottla.sim.ledger import TransactionName

HEADER = "record"
FOREVER = {"retention.ms": "-1", "retention.bytes": "-1"}


class Era(NamedTuple):
    """Identifies a log: the incarnation of its topic, and the number of power losses before."""

    incarnation: int
    power_losses: int


class Sent(NamedTuple):
    """One record as its producer sent it."""

    partition: TopicPartition
    key: bytes
    is_tombstone: bool
    transaction: TransactionName | None
    era: Era | None  # None: its topic was being deleted


@dataclass(slots=True)
class _Log:
    """What is known of one partition since its topic was created."""

    places: dict[int, Payload] = field(default_factory=dict)
    erased_offset: int = 0
    start_offset: int = 0  # the highest that a client was told


@dataclass(slots=True)
class _Topic:
    partitions: int
    incarnation: int = 0
    id: bytes | None = None  # None: the answer to its creation was lost
    is_changing: bool = False  # being deleted or created
    compacted: bool = False  # ever, since it was created
    expires: bool = False  # ever, since it was created
    transactional: bool = False  # ever
    logs: list[_Log] = field(default_factory=list)


def content_of(payload: Payload, key: bytes, value: bytes | None) -> bytes:
    """Return the identity that a record carries in a header, because a tombstone has no value to hold it."""
    return encode_payload(payload, _digest(key, value))


def _digest(key: bytes, value: bytes | None) -> bytes:
    return hashlib.blake2b(key + b"=" + (b"nothing" if value is None else b"." + value), digest_size=8).digest()


class TopicBook:
    """The observations of all topics of a run; see the module."""

    def __init__(self, blame: Callable[[str], None], *, replicated: bool = False) -> None:
        """`replicated`: a new leader's log may start earlier."""
        self._blame = blame
        self._replicated = replicated
        self._topics: dict[str, _Topic] = {}
        self._power_losses = 0
        self.sent: dict[Payload, Sent] = {}
        self.failed: dict[Payload, None] = {}
        self._settled: dict[Payload, Era] = {}  # the era in which it surely was in the log
        self._refused: dict[TransactionName, None] = {}  # the producer has not asked for the commit
        self.acknowledged = 0
        self.reads = 0
        self.excused = 0  # records that compaction removed
        self.committed = 0
        self.made_anew = 0

    # -- what operators report

    def made(self, topic: str, partitions: int, configs: Mapping[str, str], *, topic_id: bytes | None = None) -> None:
        """Note that a topic exists: for the first time, or created again."""
        before = self._topics.get(topic)
        incarnation = 0 if before is None else before.incarnation + 1
        logs = [_Log() for _ in range(partitions)]
        # The marker of a transaction of the former topic may arrive late, as markers name topics by name.
        transactional = before is not None and before.transactional
        self._topics[topic] = _Topic(partitions, incarnation, topic_id, transactional=transactional, logs=logs)
        self.made_anew += before is not None
        self.configuring(topic, configs)

    def deleting(self, topic: str) -> None:
        """From now on, until it is `made`, it is unknown which of the two topics a request reaches."""
        self._topics[topic].is_changing = True

    def configuring(self, topic: str, configs: Mapping[str, str]) -> None:
        """Note settings that are about to be requested; they may take effect from now on, and their effects are
        permanent.
        """
        known = self._topics[topic]
        known.compacted |= "compact" in configs.get("cleanup.policy", "")
        known.expires |= any(configs.get(setting, forever) != forever for setting, forever in FOREVER.items())

    def erasing(self, partition: TopicPartition, before_offset: int) -> None:
        log = self._log(partition)
        log.erased_offset = max(log.erased_offset, before_offset)

    def era(self, topic: str) -> Era | None:
        known = self._topics[topic]
        return None if known.is_changing else Era(known.incarnation, self._power_losses)

    def id_of(self, topic: str) -> bytes | None:
        """Return the id of the present topic of this name, if known. A broker that is cut off still serves the former
        one.
        """
        return self._topics[topic].id

    # -- what machines report

    def power_lost(self) -> None:
        """From now on, until `survived` is called, no answer counts for the log as it was before the power loss."""
        self._power_losses += 1

    def survived(self, partition: TopicPartition, recovery_point: int, end_offset: int, *, may_lose: bool) -> None:
        """Note what a power loss left: the log's new end; everything below the recovery point must be there."""
        if self._topics[partition.topic].is_changing:
            return
        if end_offset < recovery_point:
            self._blame(
                f"{name(partition)}: a loss of power left {end_offset} of {recovery_point} records that were synced"
            )
        log = self._log(partition)
        if may_lose:
            for offset in [each for each in log.places if each >= end_offset]:
                self._settled.pop(log.places.pop(offset), None)

    # -- what producers report

    def sending(
        self,
        payload: Payload,
        partition: TopicPartition,
        key: bytes,
        *,
        is_tombstone: bool,
        transaction: TransactionName | None = None,
    ) -> None:
        if transaction is not None:
            self._topics[partition.topic].transactional = True
        self.sent[payload] = Sent(partition, key, is_tombstone, transaction, self.era(partition.topic))

    def acked(self, payload: Payload, offset: int) -> None:
        """Note that the record is committed at this offset."""
        self.acknowledged += 1
        sent = self.sent[payload]
        self._place(sent.partition, offset, payload, sent.era)

    def gave_up(self, payload: Payload) -> None:
        self.failed[payload] = None

    def begin(self, transaction: TransactionName) -> None:
        self._refused[transaction] = None

    def ending(self, transaction: TransactionName) -> None:
        """The producer is about to ask for the commit: from now on the outcome is unknown until it is reported."""
        del self._refused[transaction]

    # --- what read_committed readers report

    def read(self, record: ConsumedRecord, era: Era | None) -> Payload | None:
        """Note a record that was read, and the era in which its reader had started the request."""
        self.reads += 1
        partition = TopicPartition(record.topic, record.partition)
        payload = self._look_at(partition, record)
        if payload is not None:
            self._place(partition, record.offset, payload, era)
        return payload

    def _look_at(self, partition: TopicPartition, record: ConsumedRecord) -> Payload | None:
        where = f"{name(partition)}: offset {record.offset}"
        content = dict(record.headers).get(HEADER) or b""
        payload = decode_payload(content)
        if payload is None or not content.endswith(_digest(record.key or b"", record.value)):
            self._blame(f"{where}: corrupt record {record.key!r}: {record.value!r:.80}")
            return None
        sent = self.sent.get(payload)
        if sent is None or sent.partition != partition or sent.key != record.key:
            self._blame(f"{where}: invented record: {payload} was never sent there as {record.key!r}")
            return None
        if sent.transaction in self._refused:
            self._blame(f"{where}: aborted record: nobody committed {sent.transaction}, which wrote {payload}")
            return None
        return payload

    def _place(self, partition: TopicPartition, offset: int, payload: Payload, era: Era | None) -> None:
        if era is None or era != self.era(partition.topic):
            return
        before = self._log(partition).places.setdefault(offset, payload)
        if self._settled.setdefault(payload, era).incarnation < era.incarnation:
            self._blame(f"{name(partition)}: {payload} at {offset} is of a topic that was deleted")
        if before != payload:
            self._blame(f"{name(partition)}: offset {offset} was {before} and is now {payload}")

    # -- the end

    def judge(
        self, partition: TopicPartition, start_offset: int, end_offset: int, records: Iterable[ConsumedRecord]
    ) -> None:
        """Check all committed records of a partition, read from start to end when everything has come to rest."""
        topic, log = self._topics[partition.topic], self._log(partition)
        era = self.era(partition.topic)
        if start_offset > log.erased_offset and not topic.expires:
            self._blame(f"{name(partition)}: log start {start_offset}, but only {log.erased_offset} was asked for")
        if start_offset < log.start_offset and not self._replicated:
            self._blame(f"{name(partition)}: log start went back from {log.start_offset} to {start_offset}")
        log.start_offset = max(log.start_offset, start_offset)
        found: dict[int, Payload] = {}
        for record in records:
            payload = self.read(record, era)
            if payload is not None:
                found[record.offset] = payload
        self._check_lost(partition, topic, log, start_offset, found)
        self._check_order(partition, found)
        if not topic.compacted and not topic.transactional:
            gap = next((each for each in range(start_offset, end_offset) if each not in found), None)
            if gap is not None:
                self._blame(f"{name(partition)}: not dense: {gap} is missing between {start_offset} and {end_offset}")

    def _check_lost(
        self, partition: TopicPartition, topic: _Topic, log: _Log, start_offset: int, found: Mapping[int, Payload]
    ) -> None:
        first: dict[bytes, int] = {}
        newest: dict[bytes, int] = {}
        for offset, payload in found.items():
            first.setdefault(self.sent[payload].key, offset)
            newest[self.sent[payload].key] = offset
        tombstones = self._tombstones(partition, log)
        for offset, payload in log.places.items():
            if offset < start_offset or offset in found:
                continue
            sent = self.sent[payload]
            copied = self._replicated and newest.get(sent.key, -1) > offset  # by a follower that never had it
            covered = max(newest.get(sent.key, -1), tombstones.get(sent.key, -1) + 1) > offset
            if not topic.compacted or not covered:
                self._blame(
                    f"{name(partition)}: lost: {payload}, key {sent.key!r}, was committed at offset {offset}; the key's"
                    f" newest record is at {newest.get(sent.key)}"
                )
            elif sent.is_tombstone and first.get(sent.key, offset) < offset and not copied:
                self._blame(
                    f"{name(partition)}: revived: the tombstone of {sent.key!r} at {offset} is gone, but not the record"
                    f" at {first[sent.key]}"
                )
            else:
                self.excused += 1

    def _tombstones(self, partition: TopicPartition, log: _Log) -> dict[bytes, int]:
        """Return the offset of each key's newest tombstone; one whose place is unknown counts as the newest
        possible.
        """
        newest: dict[bytes, int] = {}
        placed = {payload: offset for offset, payload in log.places.items()}
        for payload, sent in self.sent.items():
            if sent.is_tombstone and sent.partition == partition and sent.transaction not in self._refused:
                newest[sent.key] = max(newest.get(sent.key, -1), placed.get(payload, 1 << 60))
        return newest

    def _check_order(self, partition: TopicPartition, found: Mapping[int, Payload]) -> None:
        incarnation = self._topics[partition.topic].incarnation
        last: dict[int, Payload] = {}
        seen: dict[Payload, int] = {}
        for offset, payload in found.items():
            if payload in seen:
                self._blame(f"{name(partition)}: duplicate of {payload} at offsets {seen[payload]} and {offset}")
            seen[payload] = offset
            era = self.sent[payload].era
            if payload in self.failed or era is None or era.incarnation < incarnation:
                continue  # given up by its producer, or sent to the former topic: it may have arrived late
            before = last.get(payload.writer)
            if before is not None and payload.sequence < before.sequence:
                self._blame(f"{name(partition)}: reordered: {payload} at {offset} comes after {before}")
            last[payload.writer] = payload

    def _log(self, partition: TopicPartition) -> _Log:
        return self._topics[partition.topic].logs[partition.partition]
