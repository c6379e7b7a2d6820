"""WideFetch: the fetch of a consumer that reads so many partitions that it is done in slices.

Opening a partition takes as long as reading many opened ones, so a fetch of few partitions may be wide, too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from ottla.model import limits
from ottla.server.fetch.answers import TopicData
from ottla.server.fetch.consumer_reads import ConsumerReads
from ottla.server.fetch.engine import Fetch
from ottla.server.fetch.fetch_sessions import AskedPartition, PartitionData, asked_partitions_in_steps
from ottla.server.loop.later import Large
from ottla.server.loop.slices import Slices
from ottla.server.storage.partitions import Partitions
from ottla.wire.messages.records.fetch import FetchResponse

_OPENING = 50  # how many partitions can be read in the time that it takes to open one
_READ_AGAIN = FetchResponse(responses=[])  # set when the wait is over: read everything again, in slices


def is_wide(reads: ConsumerReads, partitions: Partitions) -> bool:
    """Return whether one slice is not enough: there are many partitions, or several that have to be opened."""
    asked = reads.asked
    return reads.is_crowded or (
        len(asked) > limits.PARTITIONS_OPENED_PER_SLICE and next(_slices(asked, partitions)) < len(asked)
    )


class WideFetch(Fetch[AskedPartition, PartitionData, FetchResponse]):
    __slots__ = ()

    reads: ConsumerReads

    async def answer_in(self, slices: Slices) -> FetchResponse | Large[FetchResponse]:
        reads = self.reads
        if reads.is_crowded:
            reads.asked = list((await slices.finish(asked_partitions_in_steps(reads.request, reads.by_id))).values())
        await self._look_at_all(slices)
        keys = self.keys()
        if keys:
            answer = await self.wait(keys)
            if answer is not _READ_AGAIN:
                return answer
            await self._look_at_all(slices)
        return Large(await self._respond_in(slices))

    def again(self, changed: Hashable | None) -> bool:
        if len(self.found) <= limits.PARTITIONS_FETCHED_PER_SLICE:
            return super().again(changed)
        if changed is not None and not self.look_again(changed):
            return False
        assert self.later is not None, "it waits"
        self.later.set(_READ_AGAIN)
        return True

    async def _look_at_all(self, slices: Slices) -> None:
        all_of_them = self.reads.to_read(self, None)
        self.begin_anew()
        begin = 0
        for end in _slices(all_of_them, self.engine.partitions):
            await slices.turn()
            self.look_at(all_of_them[begin:end])
            begin = end

    async def _respond_in(self, slices: Slices) -> FetchResponse:
        reads = self.reads
        throttled = reads.throttled(self)
        if throttled is not None:
            return throttled
        found = list(reads.all_found(self))
        response = FetchResponse(responses=[])
        nodes: dict[int, FetchResponse.NodeEndpoint] = {}
        for begin in range(0, len(found), limits.PARTITIONS_FETCHED_PER_SLICE):
            await slices.turn()
            part = reads.tell(found[begin : begin + limits.PARTITIONS_FETCHED_PER_SLICE])
            _append(response.responses, part.responses)
            nodes.update((node.node_id, node) for node in part.node_endpoints)
        await slices.turn()
        response.node_endpoints = list(nodes.values())
        response.session_id = reads.session_id(found)
        return response


def _slices(asked: Sequence[AskedPartition], partitions: Partitions) -> Iterator[int]:
    """Yield the end index of each slice."""
    weight = 0
    for at, each in enumerate(asked):
        weight += 1 if not partitions.unopened or partitions.if_opened(each.topic, each.index) else _OPENING
        if weight > limits.PARTITIONS_FETCHED_PER_SLICE:
            yield at
            weight = 0
    yield len(asked)


def _append(topics: list[TopicData], more: list[TopicData]) -> None:
    """Append the topics of the next slice; a slice may end within a topic."""
    if topics and more and (topics[-1].topic, topics[-1].topic_id) == (more[0].topic, more[0].topic_id):
        topics[-1].partitions += more[0].partitions
        more = more[1:]
    topics += more
