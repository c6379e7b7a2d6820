"""What must be true of topics whatever their settings are changed to, checked against what clients did and saw.

A topic is compacted now and then, shortened by retention and DeleteRecords, deleted and made anew under its name. So
what is claimed is said of a *place*: the offset at which a record is known to be committed. It is known from its
producer (acknowledged; in a transaction: the commit was acknowledged), or from a reader of committed records.

Claims:
1. none invented: every record that a reader of committed records gets was sent, to that partition, with that key, and
   is unharmed; nothing of a topic that was deleted is found in the one made anew;
2. none lost: what has a place at or above the log start is there, unless its topic was ever compacted and a newer
   committed record of the same key is there, or a newer tombstone was;
3. none revived: where a tombstone is gone, so is everything before it that has its key. (A follower that was away
   copies what its leader compacted, behind what it has: there a newer record of the key does as well.)
4. stable: a place never shows another record;
5. none aborted: a record of a transaction whose producer never asked for the commit is never returned;
6. once and in order: the records of one producer are there at most once, and in the order in which they were sent;
7. dense: without compaction and transactions there are no gaps;
8. the log start moves only where somebody asked for that: by DeleteRecords up to there, by a retention that is tight;
9. a loss of power takes nothing below the recovery point of that moment, and of what lies above it the end, from some
   offset on: whatever had a place below that has it still. (Where records are synced before they are acknowledged
   nothing that has a place is lost.)
10. of a topic that was deleted no file is left (`run.TopicSimulation`).

What happened while a topic was being deleted, or over a loss of power, belongs to nobody knows which of two logs: then
nothing is claimed of that record's place, and 1, 5 and 6 hold all the same.
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
    """Which of the logs of a name, and between which losses of power."""

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
    """What is known of one partition since its topic was made."""

    places: dict[int, Payload] = field(default_factory=dict)
    erased_offset: int = 0
    start_offset: int = 0  # the highest that was told


@dataclass(slots=True)
class _Topic:
    partitions: int
    incarnation: int = 0
    id: bytes | None = None  # None: whoever made it was not told
    is_changing: bool = False  # being deleted or made
    compacted: bool = False  # ever, since it was made
    expires: bool = False  # ever, since it was made
    transactional: bool = False  # ever
    logs: list[_Log] = field(default_factory=list)


def content_of(payload: Payload, key: bytes, value: bytes | None) -> bytes:
    """What a record carries in a header: a tombstone has no other place for it."""
    return encode_payload(payload, _digest(key, value))


def _digest(key: bytes, value: bytes | None) -> bytes:
    return hashlib.blake2b(key + b"=" + (b"nothing" if value is None else b"." + value), digest_size=8).digest()


class TopicBook:
    """All topics of a run; see the module."""

    def __init__(self, blame: Callable[[str], None], *, replicated: bool = False) -> None:
        """`replicated`: the next leader may begin further back, up to where it was told to."""
        self._blame = blame
        self._replicated = replicated
        self._topics: dict[str, _Topic] = {}
        self._power_losses = 0
        self.sent: dict[Payload, Sent] = {}
        self.failed: dict[Payload, None] = {}
        self._settled: dict[Payload, Era] = {}  # where it surely was
        self._refused: dict[TransactionName, None] = {}  # nobody asked for the commit
        self.acknowledged = 0
        self.reads = 0
        self.excused = 0  # records that compaction took
        self.committed = 0
        self.made_anew = 0

    # -- what operators report

    def made(self, topic: str, partitions: int, configs: Mapping[str, str], *, topic_id: bytes | None = None) -> None:
        """A topic is there: for the first time, or anew."""
        before = self._topics.get(topic)
        incarnation = 0 if before is None else before.incarnation + 1
        logs = [_Log() for _ in range(partitions)]
        # The marker of a transaction of before may come late, and find its way by the name.
        transactional = before is not None and before.transactional
        self._topics[topic] = _Topic(partitions, incarnation, topic_id, transactional=transactional, logs=logs)
        self.made_anew += before is not None
        self.configuring(topic, configs)

    def deleting(self, topic: str) -> None:
        """From now on, until it is `made`, nobody knows to which of the two something is done."""
        self._topics[topic].is_changing = True

    def configuring(self, topic: str, configs: Mapping[str, str]) -> None:
        """Somebody is about to ask for that; it may count from now on, and what it did is not undone."""
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
        """Of the one that has the name now, if it is known. A broker that is cut off still serves the one before."""
        return self._topics[topic].id

    # -- what machines report

    def power_lost(self) -> None:
        """From now on, until it is known what `survived`, nothing that is told belongs to a log of before."""
        self._power_losses += 1

    def survived(self, partition: TopicPartition, recovery_point: int, end_offset: int, *, may_lose: bool) -> None:
        """What a loss of power left: the log ends here now; below the recovery point it had to be whole."""
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
        """Committed, there."""
        self.acknowledged += 1
        sent = self.sent[payload]
        self._place(sent.partition, offset, payload, sent.era)

    def gave_up(self, payload: Payload) -> None:
        self.failed[payload] = None

    def begin(self, transaction: TransactionName) -> None:
        self._refused[transaction] = None

    def ending(self, transaction: TransactionName) -> None:
        """Its producer is about to ask for the commit: from now on nobody knows until it is said."""
        del self._refused[transaction]

    # -- what readers of committed records report

    def read(self, record: ConsumedRecord, era: Era | None) -> Payload | None:
        """One record, and in which era its reader had begun to ask."""
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
        """All committed records of a partition, read from its start to its end when everything has come to rest."""
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
            copied = self._replicated and newest.get(sent.key, -1) > offset  # by one that never saw it
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
        """The newest tombstone of each key; one that may be anywhere counts as the newest there can be."""
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
                continue  # nobody waited for it, or it was sent to the topic before this one: it may have come late
            before = last.get(payload.writer)
            if before is not None and payload.sequence < before.sequence:
                self._blame(f"{name(partition)}: reordered: {payload} at {offset} comes after {before}")
            last[payload.writer] = payload

    def _log(self, partition: TopicPartition) -> _Log:
        return self._topics[partition.topic].logs[partition.partition]
