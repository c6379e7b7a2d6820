"""Produces to very many partitions, or of very many bytes, in portions: each is handled like a request of its own, with
other work in between.

The request keeps its turn on its connection until the last portion is appended, so batches of one connection stay in
order. Afterwards all portions wait together for other replicas or a disk.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Generator
from typing import cast

from ottla.model import limits
from ottla.server.api.context import Context
from ottla.server.api.portions import Portions, divided, put_together, weight
from ottla.server.api.turns import keep_turn
from ottla.server.loop.later import Answer, Disconnect, Large, Later, gather
from ottla.wire.messages.records.produce import ProduceRequest, ProduceResponse

TopicData = ProduceRequest.TopicProduceData
Produce = Callable[[ProduceRequest], Answer[ProduceResponse]]

log = logging.getLogger(__name__)


def _weigh(data: TopicData.PartitionProduceData) -> int:
    """Return the weight of a batch: by its bytes, which are checked and written, and at least that of a partition."""
    size_bytes = 0 if data.records is None else len(data.records)
    return max(size_bytes * limits.PARTITIONS_PRODUCED_PER_SLICE // limits.BYTES_PRODUCED_PER_SLICE, 1)


_PORTIONS = Portions(
    "topic_data.partition_data", "responses.partition_responses", limits.PARTITIONS_PRODUCED_PER_SLICE, _weigh
)
_ASKED, _TOLD = ["partition_data"], ["partition_responses"]


def is_wide(topic_data: list[TopicData]) -> bool:
    return len(topic_data) > _PORTIONS.items or weight(topic_data, _ASKED, _PORTIONS) > _PORTIONS.items


def without_duplicates(topic_data: list[TopicData]) -> Generator[None, None, list[TopicData]]:
    """Keep only the last of several batches for one partition, which is answered once, as Kafka does."""
    last: dict[tuple[str, bytes, int], tuple[TopicData, TopicData.PartitionProduceData]] = {}
    count = 0
    for topic in topic_data:
        name, topic_id = topic.name, topic.topic_id
        for data in topic.partition_data:
            last[name, topic_id, data.index] = topic, data
            count += 1
            if not count % limits.ELEMENTS_PER_STEP:
                yield
    if len(last) == count:
        return topic_data
    kept: dict[tuple[str, bytes], TopicData] = {}
    for number, (topic, data) in enumerate(last.values(), 1):
        whole = kept.get((topic.name, topic.topic_id))
        if whole is None:
            kept[topic.name, topic.topic_id] = TopicData(
                name=topic.name, topic_id=topic.topic_id, partition_data=[data]
            )
        else:
            whole.partition_data.append(data)
        if not number % limits.ELEMENTS_PER_STEP:
            yield
    return list(kept.values())


def produce_in_portions(request: ProduceRequest, context: Context, produce: Produce) -> Answer[ProduceResponse]:
    """Call `produce` with one portion after the other and return the merged answer."""
    portions = _Wide(request, context, produce)
    later = keep_turn(context, portions.appended, portions.answer)
    portions.begin()
    return later


class _Wide:
    def __init__(self, request: ProduceRequest, context: Context, produce: Produce) -> None:
        self.appended: Later[None] = Later()
        self._request = request
        self._context = context
        self._produce = produce
        self._answers: list[Later[ProduceResponse]] = []
        self._failed = False
        self._portions = self._divided()

    def _divided(self) -> Generator[list[TopicData] | None, None, None]:
        """Yield the portions; None is a pause."""
        steps = without_duplicates(self._request.topic_data)
        while True:
            try:
                yield next(steps)
            except StopIteration as end:
                found: list[TopicData] = end.value
                break
        for some, _ in divided(found, _ASKED, _PORTIONS):
            yield some

    def begin(self) -> None:
        try:
            some = next(self._portions)
            awaited = None if some is None else self._append(some)
        except StopIteration:
            self.appended.set(None)
        except Exception:
            log.exception("a produce of %s in portions failed", self._context.connection.remote_address)
            self.appended.fail()
        else:
            if awaited is None:
                self._go_on()
            else:
                awaited.then(lambda _: self._go_on(), self._go_on)

    def _go_on(self) -> None:
        self._context.runtime.slices.soon(self.begin)

    def _append(self, some: list[TopicData]) -> Later[None] | None:
        """Append a portion; return None when that is done, or a `Later` if the portion itself keeps the turn and is
        appended later.
        """
        part = copy.copy(self._request)
        part.topic_data = some
        answered: Later[ProduceResponse] = Later()
        self._answers.append(answered)
        turns_kept = self._context.turns_kept
        try:
            answer = self._produce(part)
        except Disconnect:
            self._failed = True
            answer = None
        if not isinstance(answer, Later):
            answered.set(cast("ProduceResponse", answer))  # None if acks=0, and then it is not looked at
            return None
        answered.on_abandon = answer.abandon
        if self._context.turns_kept == turns_kept:
            answer.then(answered.set, answered.fail)
            return None
        appended: Later[None] = Later()

        def settled(response: ProduceResponse) -> None:
            answered.set(response)
            appended.set(None)

        def failed() -> None:
            answered.fail()
            appended.set(None)

        answer.then(settled, failed)
        return appended

    def answer(self, _: None) -> Answer[ProduceResponse]:
        if self._request.acks == 0:
            if self._failed or any(each.failed for each in self._answers):
                raise Disconnect("a produce with acks=0 failed")
            return None
        whole = gather(self._answers).map(_together)
        whole.on_abandon = self._abandon
        return whole

    def _abandon(self) -> None:
        for each in self._answers:
            each.abandon()


def _together(answers: list[ProduceResponse]) -> Large[ProduceResponse]:
    whole = answers[0]
    endpoints = {each.node_id: each for answer in answers for each in answer.node_endpoints or ()}
    for more in answers[1:]:
        put_together(whole.responses, more.responses, _TOLD)
    whole.node_endpoints = list(endpoints.values())
    return Large(whole)
