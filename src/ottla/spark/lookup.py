"""The driver's questions to the cluster: which partitions there are, where they begin and end, what was written when.

Rules:
- Metadata is asked for anew each time: topics and partitions come and go while a query runs.
- A topic that was chosen by name and is not there is an error that names the most alike topic; what a pattern matches
  may be nothing.
"""

import difflib
import re
import time
from collections.abc import Iterable, Mapping

from ottla.client.blocking import Blocking
from ottla.client.errors import ClientError, UnsupportedApi
from ottla.client.offsets import EARLIEST, LATEST, NOT_FOUND, Time, list_offsets
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.spark.offsets import EARLIEST_OFFSET, LATEST_OFFSET, ByTime, Everywhere, Limit, Offsets, Specific
from ottla.spark.options import OptionError
from ottla.spark.read_settings import ReadSettings

Assigned = dict[TopicPartition, bytes]  # partition -> id of its topic


class TopicMissing(Exception):
    """A topic or partition that the options name does not exist."""

    def __init__(self, topic: str, what: str) -> None:
        self.topic = topic
        super().__init__(what)


class Lookup:
    """One connection to the cluster, for the driver."""

    def __init__(self, settings: ReadSettings, client_id: str) -> None:
        self._settings = settings
        self._client = Blocking(settings.kafka.client_options(settings.kafka.get("client.id") or client_id))

    def close(self) -> None:
        self._client.close()

    def reach(self) -> None:
        """Wait for a cluster that is down now; a stream starts when it is up."""
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
                if isinstance(error, UnsupportedApi) or time.monotonic() + wait_s > deadline_s:
                    raise
                time.sleep(wait_s)

    def assigned(self, *, missing_ok: bool = False) -> Assigned:
        """The chosen partitions as they are now, in order. TopicMissing, unless missing ones are to be left out."""
        chosen = self._settings.chosen
        if chosen.pattern is not None:
            pattern = re.compile(chosen.pattern)  # anywhere in the name, as the connector does
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

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Where partitions begin."""
        return self._offsets(dict.fromkeys(partitions, EARLIEST))

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Where partitions end, as far as they may be read."""
        return self._offsets(dict.fromkeys(partitions, LATEST))

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offsets that are so late; None where nothing is."""
        found = self._offsets({partition: Time(time_ms) for partition, time_ms in times.items()})
        return {partition: None if offset == NOT_FOUND else offset for partition, offset in found.items()}

    def _offsets(self, wanted: Mapping[TopicPartition, Time]) -> Offsets:
        if not wanted:
            return {}
        asked = list_offsets(self._client.cluster, wanted, read_committed=self._settings.read_committed)
        return {partition: answer.offset for partition, answer in self._client.run(asked).items()}

    def resolve(self, limit: Limit, assigned: Assigned, *, starting: bool) -> Offsets:
        """An option's places as offsets of all assigned partitions."""
        side = "starting" if starting else "ending"
        if isinstance(limit, ByTime):
            return self._by_time(limit, assigned, side)
        if isinstance(limit, Everywhere):
            wanted = dict.fromkeys(assigned, limit.offset)
        else:
            _check_same(limit, assigned, side)
            wanted = dict(limit.offsets)
        early = self.earliest(each for each, offset in wanted.items() if offset == EARLIEST_OFFSET)
        late = self.latest(each for each, offset in wanted.items() if offset == LATEST_OFFSET)
        return {each: early.get(each, late.get(each, offset)) for each, offset in wanted.items()}

    def _by_time(self, limit: ByTime, assigned: Assigned, side: str) -> Offsets:
        if isinstance(limit.times, dict):
            _check_same(Specific(limit.times), assigned, side)
        times = limit.times if isinstance(limit.times, dict) else dict.fromkeys(assigned, limit.times)
        found = self.at_times(times)
        nothing = [each for each, offset in found.items() if offset is None]
        if nothing and side == "starting" and self._settings.options["startingOffsetsByTimestampStrategy"] == "error":
            raise OptionError(
                f"nothing in {nothing[0]} is as late as timestamp {times[nothing[0]]}; "
                "set startingOffsetsByTimestampStrategy to latest to begin at its end"
            )
        late = self.latest(nothing)
        return {each: late[each] if offset is None else offset for each, offset in found.items()}

    def sizes_bytes(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """What partitions take on disk, where brokers say."""
        wanted = list(partitions)
        found: dict[TopicPartition, int] = {}
        for directory in self._client.admin.nodes.log_dirs():
            for replica in directory.replicas:
                partition = TopicPartition(replica.topic, replica.partition)
                found[partition] = max(found.get(partition, 0), replica.size_bytes)
        return {each: found[each] for each in wanted if each in found}


def _check_same(limit: Specific, assigned: Assigned, side: str) -> None:
    if limit.offsets.keys() == assigned.keys():
        return
    absent = [str(each) for each in sorted(assigned) if each not in limit.offsets]
    extra = [str(each) for each in sorted(limit.offsets) if each not in assigned]
    wrong = [f"not named: {', '.join(absent)}"] if absent else []
    wrong += [f"not assigned: {', '.join(extra)}"] if extra else []
    raise OptionError(
        f"{side} offsets must name all partitions that are read (-1 is latest, -2 earliest); {'; '.join(wrong)}"
    )
