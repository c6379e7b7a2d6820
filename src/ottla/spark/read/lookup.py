"""The driver's requests to the cluster: which partitions exist, their first and last offsets, and offsets by time.

Rules:
- A batch is planned from one snapshot: all its values are of the same topics at the same moment.
- Metadata is requested anew each time: topics and partitions are created and deleted while a query runs.
- A topic that was chosen by name and does not exist is an error that suggests the most similar topic; a pattern may
  match no topic.
"""

import difflib
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ottla.client.blocking.blocking import Blocking
from ottla.client.consumer.epochs import epoch_ends
from ottla.client.consumer.offsets import EARLIEST, LATEST, NOT_FOUND, OffsetAndTime, Time, bounds_each, list_offsets
from ottla.client.errors import ClientError, LastingError
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_LEADER_EPOCH, LeaderEpoch, TopicPartition
from ottla.model.limits import SPARK_SNAPSHOT_TRIES_MAX
from ottla.spark.read.marks import ReachedOffsets
from ottla.spark.read.offsets import Limit, Offsets
from ottla.spark.read.settings import ReadSettings
from ottla.spark.read.snapshot import Snapshot, check_partitions, is_new, times_of

Assigned = dict[TopicPartition, bytes]  # partition -> id of its topic


class TopicMissing(Exception):
    """A topic or partition that the options name does not exist."""

    def __init__(self, topic: str, what: str) -> None:
        self.topic = topic
        super().__init__(what)


class Lookup:
    """The driver's client of the cluster."""

    def __init__(self, settings: ReadSettings, client_id: str) -> None:
        self._settings = settings
        self._client = Blocking(settings.kafka.client_options(settings.kafka.get("client.id") or client_id))

    def close(self) -> None:
        self._client.close()

    def reach(self) -> None:
        """Wait until the cluster can be reached: a stream may be started while the cluster is down."""
        options = self._client.cluster.options
        deadline_s = time.monotonic() + options.api_timeout_ms / 1000
        tries = 0
        while True:
            try:
                self._client.run(self._client.cluster.refresh())
                return
            except ClientError as error:
                tries += 1
                wait_s = options.backoff_ms(tries) / 1000
                if isinstance(error, LastingError) or time.monotonic() + wait_s > deadline_s:
                    raise
                time.sleep(wait_s)

    def assigned(self, *, missing_ok: bool = False) -> Assigned:
        """The chosen partitions that exist now, in order. Raises TopicMissing if one does not exist, unless
        `missing_ok`.
        """
        chosen = self._settings.chosen
        if chosen.pattern is not None:
            pattern = re.compile(chosen.pattern)  # a match anywhere in the name counts, as in Spark's connector
            infos = self._client.admin.topics.all()
            wanted = sorted(each.name for each in infos if not each.is_internal and pattern.search(each.name))
        else:
            wanted = list(chosen.topics) or sorted({each.topic for each in chosen.partitions})
        self._client.run(self._client.cluster.refresh(wanted))
        found: Assigned = {}
        for name in sorted(wanted):
            found |= self._partitions(name, missing_ok=missing_ok or chosen.pattern is not None)
        if chosen.partitions:
            absent = [each for each in chosen.partitions if each not in found]
            if absent and not missing_ok:
                raise TopicMissing(absent[0].topic, f"there is no partition {absent[0]}")
            found = {each: found[each] for each in chosen.partitions if each in found}
        return found

    def _partitions(self, name: str, *, missing_ok: bool) -> Assigned:
        try:
            info = self._client.run(self._client.cluster.topic(name))
        except ApiError as error:
            if error.code not in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION):
                raise
            if missing_ok:
                return {}
            raise TopicMissing(name, f"there is no topic {name!r}{self._alike(name)}") from None
        return {TopicPartition(name, each.index): info.topic_id for each in info.partitions}

    def _alike(self, name: str) -> str:
        others = [each.name for each in self._client.admin.topics.all() if not each.is_internal]
        alike = difflib.get_close_matches(name, others, n=1)
        return f": did you mean {alike[0]!r}?" if alike else ""

    # --- offsets ------------------------------------------------------------------------------------------------

    def snapshot(
        self,
        reached: ReachedOffsets | None = None,
        *,
        limits: Mapping[str, Limit] | None = None,
        since_ms: int | None = None,
        missing_ok: bool = False,
    ) -> Snapshot:
        """The state of all chosen partitions at one moment. With a mark (`reached`), values that are only needed if
        there are new records are only requested then. `limits` are options whose offsets have to be looked up, by side
        ("starting", "ending").

        Offsets are requested by the names of topics. So the topics' ids are requested before and after: if they are the
        same, the offsets belong to these topics.
        """
        for _ in range(SPARK_SNAPSHOT_TRIES_MAX):
            assigned = self.assigned(missing_ok=missing_ok)
            for side, limit in (limits or {}).items():
                check_partitions(limit, assigned, side)
            moments = [times_of(limit, assigned) for limit in (limits or {}).values()]
            if since_ms is not None:
                moments.append(dict.fromkeys(assigned, since_ms))
            try:
                taken = self._take(assigned, reached, moments)
            except ApiError as error:
                if error.code not in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID):
                    raise
                continue  # a topic was deleted meanwhile: try again
            if reached is not None and not _has_news(reached, taken):
                return taken
            if assigned.items() <= self.assigned(missing_ok=True).items():
                return taken
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "topics are deleted and created faster than they can be looked at"
        )

    def _take(
        self, assigned: Assigned, reached: ReachedOffsets | None, moments: Sequence[Mapping[TopicPartition, int]]
    ) -> Snapshot:
        """Request all values of a snapshot. The end offsets are requested last, so that no other offset can lie behind
        them.
        """
        topic_ids = {each.topic: topic_id for each, topic_id in assigned.items()}
        at_times = {
            (partition, moment[partition]): None if found.offset == NOT_FOUND else found.offset
            for moment in moments
            for partition, found in self._offsets({each: Time(time_ms) for each, time_ms in moment.items()}).items()
        }
        unread = assigned if reached is None else [each for each in assigned if is_new(each, reached, topic_ids)]
        beginnings = {each: found.offset for each, found in self._offsets(dict.fromkeys(unread, EARLIEST)).items()}
        latest = self._offsets(dict.fromkeys(assigned, LATEST))
        ends = {each: found.offset for each, found in latest.items()}
        epochs = {each: found.leader_epoch for each, found in latest.items() if found.leader_epoch != NO_LEADER_EPOCH}
        taken = Snapshot(ends, topic_ids, epochs, beginnings, at_times=at_times)
        if reached is None or not _has_news(reached, taken):
            return taken
        return replace(taken, epoch_ends=self._epoch_ends(reached, taken))

    def _epoch_ends(self, reached: ReachedOffsets, taken: Snapshot) -> Offsets:
        changed = {
            each: LeaderEpoch(reached.epochs[each])
            for each, epoch in taken.epochs.items()
            if reached.epochs.get(each, epoch) < epoch and not is_new(each, reached, taken.topic_ids)
        }
        if not changed:
            return {}
        found = self._client.run(epoch_ends(self._client.cluster, changed)).all()
        return {partition: end for partition, end in found.items() if end is not None}

    def _offsets(self, wanted: Mapping[TopicPartition, Time]) -> dict[TopicPartition, OffsetAndTime]:
        if not wanted:
            return {}
        return self._client.run(
            list_offsets(self._client.cluster, wanted, read_committed=self._settings.read_committed)
        )

    def bytes_per_offset(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, float]:
        """The average size of an offset on disk, from the brokers that answer. It only serves to divide work among
        tasks: partitions of brokers that do not answer are left out.
        """
        wanted = dict.fromkeys(partitions)
        sizes_bytes: dict[TopicPartition, int] = {}
        for directories in self._client.admin.nodes.log_dirs_each().found.values():
            for replica in (each for directory in directories for each in directory.replicas):
                partition = TopicPartition(replica.topic, replica.partition)
                if partition in wanted:
                    sizes_bytes[partition] = max(sizes_bytes.get(partition, 0), replica.size_bytes)
        bounds = self._client.run(bounds_each(self._client.cluster, sizes_bytes)).found
        return {each: sizes_bytes[each] / max(end - start, 1) for each, (start, end) in bounds.items()}


def _has_news(reached: ReachedOffsets, taken: Snapshot) -> bool:
    """Whether the snapshot has something that the mark has not, so that a batch may follow."""
    ids = {each.topic: taken.topic_ids[each.topic] for each in taken.ends}
    return taken.ends != reached.offsets or any(ids[topic] != reached.topic_id(topic) for topic in ids)
