"""Deliveries: write the markers of prepared transactions to all partitions that took part.

There is one `MarkerDelivery` per transaction. If a marker cannot be written, the attempt is repeated, at whichever node
leads the partition by then, until it succeeds: the transaction is decided, and consumers wait for the marker. After the
last marker the coordinator gets `MarkersWritten`.

A transaction may have very many partitions, and a coordinator may have to end very many transactions at once when it
loads or expires them. A slice (`server/loop/slices.py`) writes some markers, of each transaction in turn, so that a
small transaction never waits for a large one. Failed attempts are repeated together, one timer per transaction, and
take their turns in the slices, too; that is why they do not use `server/loop/retrying.py`. A delivery whose coordinator
is no longer the leader, was loaded anew or stops ends between two partitions: the next coordinator starts with all of
them.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.server.coordination.host import Host
from ottla.server.loop.current_span import OpenSpan, WorkingFor
from ottla.server.loop.runtime import Runtime
from ottla.server.txns.marker_writer import COST_PER_SLICE
from ottla.server.txns.markers import Markers
from ottla.txns.commands.end import MarkersWritten
from ottla.txns.effects import WriteMarkers
from ottla.txns.view import TxnsView

log = logging.getLogger(__name__)

# With these errors the marker is not needed: the partition knows a later transaction of the producer, or a later
# coordinator has written this one's marker.
_NEEDLESS = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)


class Deliveries:
    """All deliveries of a node."""

    def __init__(self, runtime: Runtime, markers: Markers) -> None:
        self.markers = markers
        self._runtime = runtime
        self._queue: deque[MarkerDelivery] = deque()  # deliveries with markers to write
        self._left = COST_PER_SLICE  # the remaining cost budget of this slice

    def write(self, effect: WriteMarkers, host: Host[TxnsView], span: OpenSpan | None = None) -> None:
        """Carry out the transaction coordinator's effect; a few markers are written before this returns. `span` ends
        with the last one.
        """
        MarkerDelivery(self, effect, host, span).begin()

    def queue(self, delivery: MarkerDelivery) -> None:
        self._queue.append(delivery)
        self._write_some()

    def _write_some(self) -> None:
        while self._queue and self._left > 0:
            delivery = self._queue.popleft()
            if not delivery.is_wanted:
                continue
            where = delivery.waiting.popleft()
            if delivery.waiting:
                self._queue.append(delivery)
            if self._left == COST_PER_SLICE:
                self._runtime.slices.soon(self._next_slice)
            self._left -= self.markers.cost(where)
            delivery.write(where)

    def after_a_pause(self, do: Callable[[], None]) -> None:
        self._runtime.loop.call_later(limits.MARKERS_RETRY_MS / 1000, do)

    def _next_slice(self) -> None:
        self._left = COST_PER_SLICE
        self._write_some()


class MarkerDelivery:
    """The markers of one transaction."""

    def __init__(
        self, deliveries: Deliveries, effect: WriteMarkers, host: Host[TxnsView], span: OpenSpan | None
    ) -> None:
        self.waiting: deque[TopicPartition] = deque()  # markers to be written as soon as it is their turn
        self._deliveries = deliveries
        self._effect = effect
        self._host = host
        self._machine = host.machine  # a host that was loaded anew emits a new effect with all markers
        self._span = span
        self._unwritten = 0
        self._failed: list[TopicPartition] = []  # markers to be written after a pause
        self._complained: set[TopicPartition] = set()

    @property
    def is_wanted(self) -> bool:
        return self._host.active and self._host.machine is self._machine

    def begin(self) -> None:
        self._unwritten = len(self._effect.partitions)
        if self._unwritten:
            self._queue(self._effect.partitions)
        else:
            self._complete()

    def _queue(self, partitions: Iterable[TopicPartition]) -> None:
        is_queued = bool(self.waiting)
        self.waiting.extend(partitions)
        if not is_queued:
            self._deliveries.queue(self)

    def write(self, where: TopicPartition) -> None:
        """Write the marker for one partition."""
        try:
            with WorkingFor(self._span):
                written = self._deliveries.markers.write(where, self._effect, self._host.leader_epoch)
        except Exception:  # a bug: the other partitions get their markers all the same
            log.exception("the end of %s's transaction could not be written", self._effect.transactional_id)
            self._lost(where)
        else:
            written.then(lambda error: self._answered(where, error), lambda: self._lost(where))

    def _lost(self, where: TopicPartition) -> None:
        self._answered(where, ApiError(ErrorCode.UNKNOWN_SERVER_ERROR))

    def _answered(self, where: TopicPartition, error: ApiError | None) -> None:
        if error is None or error.code in _NEEDLESS:
            self._unwritten -= 1
            if not self._unwritten:
                self._complete()
            return
        if where not in self._complained:
            self._complained.add(where)
            log.warning(
                "the end of %s's transaction cannot be written to %s: %s", self._effect.transactional_id, where, error
            )
        self._failed.append(where)
        if len(self._failed) == 1:
            self._deliveries.after_a_pause(self._retry)

    def _retry(self) -> None:
        failed, self._failed = self._failed, []
        if self.is_wanted:
            self._queue(failed)

    def _complete(self) -> None:
        if self._span is not None:
            self._span.end()
        if self._host.machine is self._machine:
            effect = self._effect
            done = MarkersWritten(effect.transactional_id, effect.producer_id, effect.epoch)
            self._host.submit(done, self._completed)

    def _completed(self, answer: object) -> None:
        """Repeat the delivery later, markers included, if the journal could not be written."""
        if isinstance(answer, ApiError) and self.is_wanted:
            self._deliveries.after_a_pause(self.begin)
