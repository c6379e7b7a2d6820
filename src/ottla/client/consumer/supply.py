"""Supplies a consumer's assigned partitions: finds their positions, fetches records, and buffers them.

Rules:
- Every partition is supplied by itself: one without a position, without a leader, of a topic that does not exist, or
  with records that cannot be read holds up no other.
- Transient errors are waited out, and the partition's `failure` names them meanwhile. Any other error is raised to the
  caller once each time that it happens (`raise_failure`), after the good records were handed out; then the partition
  is tried again.
- A partition whose next records cannot be read is set aside for a while after every try: a caller that polls in a loop
  waits for the records of the others meanwhile, and lets the event loop run.
- A position that the log does not have is reset, if the options say where to.
"""

import asyncio
import logging
from collections.abc import Callable

from ottla.client.cluster import Cluster
from ottla.client.consumer.assigned_partitions import AssignedPartition
from ottla.client.consumer.fetching import ConsumerFetcher, FetchCursor
from ottla.client.consumer.group_offsets import GroupOffsets
from ottla.client.consumer.options import ConsumerOptions
from ottla.client.consumer.starting_offsets import StartingOffsets
from ottla.client.errors import LogTruncated, OffsetOutOfRange
from ottla.client.outcomes import named
from ottla.model.ids import TopicPartition

log = logging.getLogger(__name__)


class Supply:
    """Keeps the assigned partitions of one consumer supplied."""

    def __init__(
        self,
        cluster: Cluster,
        options: ConsumerOptions,
        group: GroupOffsets | None,
        places: dict[TopicPartition, AssignedPartition],
        wake: Callable[[object], None],
    ) -> None:
        self._cluster = cluster
        self._options = options
        self._places = places
        self._wake = wake
        self._fetcher = ConsumerFetcher(
            cluster, options.read_options(), patient=True, wake=wake, rack_id=options.client_rack or ""
        )
        self._starting_offsets = StartingOffsets(cluster, group, options.reset, self.fail, wake)
        self.has_news = False  # there are failures that were not raised to the caller

    async def close(self) -> None:
        await self._starting_offsets.close()
        await self._fetcher.close()

    def take_in(self) -> None:
        """Put the results of fetches into the assigned partitions."""
        for fetched in self._fetcher.collect():
            place = self._places.get(fetched.cursor.partition)
            if place is None or place.cursor is not fetched.cursor:
                continue  # its position was moved since, or it was revoked
            if fetched.error is None:
                place.add(fetched)
            elif place.has_records:
                place.failure, place.is_told = fetched.error, True  # requested again once these were handed out
            else:
                self._recover(place, fetched.error)

    def start(self) -> None:
        """Look up positions, and fetch the partitions that are not paused and have too little buffered."""
        wanted: list[FetchCursor] = []
        lost: list[AssignedPartition] = []
        full = False
        enough_bytes = self._options.max_partition_fetch_bytes
        for place in self._places.values():
            if place.cursor is None:
                lost.append(place)
            elif place.paused or (place.failure is not None and place.has_records):
                continue
            elif place.buffered_bytes >= enough_bytes:
                full = True
            elif not place.cursor.busy:
                wanted.append(place.cursor)
        if lost:
            self._starting_offsets.start(lost)
            wanted += [place.cursor for place in lost if place.cursor is not None and not place.paused]
        if wanted:
            # A long poll for the others would keep the busy partitions waiting behind it.
            self._fetcher.start(wanted, hurried=full)

    def fail(self, place: AssignedPartition, error: Exception) -> None:
        """Note an error of a partition that has to be raised to the caller."""
        place.failure, place.is_told = error, False
        self.has_news = True

    def set_aside(self, place: AssignedPartition, error: Exception) -> None:
        """Note that the next records of this partition cannot be read, and try again after a while."""
        self.fail(place, error)
        place.is_set_aside = True
        place.tries += 1
        wait_s = self._cluster.options.backoff_ms(place.tries) / 1000
        asyncio.get_running_loop().call_later(wait_s, self._try_again, place)

    def _try_again(self, place: AssignedPartition) -> None:
        place.is_set_aside = False
        self._wake(None)

    def raise_failure(self) -> None:
        """Raise the first failure that was not raised to the caller yet; its text says how many others there are."""
        if not self.has_news:
            return
        self.has_news = False
        untold = [each for each in self._places.values() if each.failure is not None and not each.is_told]
        for place in untold:
            place.is_told = True
        for place in untold:
            assert place.failure is not None
            raise named(place.failure, place.partition, len(untold) - 1)

    def failures(self) -> dict[TopicPartition, Exception]:
        """Return the errors because of which partitions are not read at the moment."""
        found: dict[TopicPartition, Exception] = {}
        for partition, place in sorted(self._places.items()):
            searched = None if place.cursor is None else place.cursor.failure
            if (error := place.failure or searched) is not None:
                found[partition] = error
        return found

    def _recover(self, place: AssignedPartition, error: Exception) -> None:
        reset = self._options.reset
        if isinstance(error, LogTruncated) and reset is not None:
            log.warning("%s; going on from there", error)
            place.move(error.end_offset, topic_id=place.topic_id)
        elif isinstance(error, OffsetOutOfRange) and reset is not None:
            log.warning("%s; going on from %s", error, self._options.auto_offset_reset)
            place.move(reset)
        else:
            self.fail(place, error)
