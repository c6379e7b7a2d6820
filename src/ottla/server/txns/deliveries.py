"""Deliveries: the markers of prepared transactions, on their way to all partitions that took part.

One `Delivery` per transaction. A partition that cannot be told is tried again, wherever its leader is by then, until it
can, whatever that takes: the transaction is decided, and readers wait for the marker. When all are told, the
coordinator hears `MarkersWritten`.

A transaction may have very many partitions, and a coordinator that loads or sweeps may end very many transactions. A
slice (`server/loop/slices.py`) tells some partitions, of each transaction one after the other, so that a small
transaction never waits for a large one. A delivery that its coordinator wants no more (it lost the lead, it was loaded
anew, the node stops) ends between two partitions: whoever coordinates then begins with all of them.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.server.txns.markers import COST_PER_SLICE, Markers, marker_cost
from ottla.txns.commands.end import MarkersWritten
from ottla.txns.effects import WriteMarkers

if TYPE_CHECKING:
    from ottla.server.api.context import Services
    from ottla.server.coordination.host import Host
    from ottla.txns.machine import TransactionsMachine

log = logging.getLogger(__name__)

# With these there is nobody to tell: the partition has heard of a later transaction, or of this one's end from a later
# coordinator.
_NEEDLESS = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)


class Deliveries:
    """All that are under way on a node."""

    def __init__(self, loop: Any, services: Services) -> None:
        self.loop = loop
        self.markers = Markers(services)
        self._services = services
        self._queue: deque[Delivery] = deque()  # those with partitions to tell
        self._left = COST_PER_SLICE  # what this slice may still cost

    def write(self, effect: WriteMarkers, host: Host[TransactionsMachine]) -> None:
        """Carries out the transaction coordinator's wish; few markers at once."""
        Delivery(self, effect, host).begin()

    def queue(self, delivery: Delivery) -> None:
        self._queue.append(delivery)
        self._tell_some()

    def _tell_some(self) -> None:
        while self._queue and self._left > 0:
            delivery = self._queue.popleft()
            if not delivery.is_wanted:
                continue
            where = delivery.waiting.popleft()
            if delivery.waiting:
                self._queue.append(delivery)
            if self._left == COST_PER_SLICE:
                self._services.slices.soon(self._next_slice)
            self._left -= marker_cost(self._services, where)
            delivery.tell(where)

    def _next_slice(self) -> None:
        self._left = COST_PER_SLICE
        self._tell_some()


class Delivery:
    """The markers of one transaction."""

    def __init__(self, deliveries: Deliveries, effect: WriteMarkers, host: Host[TransactionsMachine]) -> None:
        self.waiting: deque[TopicPartition] = deque()  # to be told as soon as it is their turn
        self._deliveries = deliveries
        self._effect = effect
        self._host = host
        self._machine = host.machine  # a host that loaded anew wants the markers anew, with an effect of its own
        self._untold = 0
        self._failed: list[TopicPartition] = []  # to be told after a pause
        self._complained: set[TopicPartition] = set()

    @property
    def is_wanted(self) -> bool:
        return self._host.active and self._host.machine is self._machine

    def begin(self) -> None:
        self._untold = len(self._effect.partitions)
        if self._untold:
            self._queue(self._effect.partitions)
        else:
            self._complete()

    def _queue(self, partitions: Iterable[TopicPartition]) -> None:
        is_queued = bool(self.waiting)
        self.waiting.extend(partitions)
        if not is_queued:
            self._deliveries.queue(self)

    def tell(self, where: TopicPartition) -> None:
        """Whoever leads the partition."""
        try:
            told = self._deliveries.markers.tell(where, self._effect, self._host.leader_epoch)
        except Exception:  # a mistake of ours: the other partitions are told all the same
            log.exception("the end of %s's transaction could not be written", self._effect.transactional_id)
            self._answered(where, ApiError(ErrorCode.UNKNOWN_SERVER_ERROR))
        else:
            told.then(lambda error: self._answered(where, error))

    def _answered(self, where: TopicPartition, error: ApiError | None) -> None:
        if error is None or error.code in _NEEDLESS:
            self._untold -= 1
            if not self._untold:
                self._complete()
            return
        if where not in self._complained:
            self._complained.add(where)
            log.warning(
                "the end of %s's transaction cannot be written to %s: %s", self._effect.transactional_id, where, error
            )
        self._failed.append(where)
        if len(self._failed) == 1:
            self._after_a_pause(self._retry)

    def _retry(self) -> None:
        failed, self._failed = self._failed, []
        if self.is_wanted:
            self._queue(failed)

    def _complete(self) -> None:
        if self._host.machine is self._machine:
            effect = self._effect
            done = MarkersWritten(effect.transactional_id, effect.producer_id, effect.epoch)
            self._host.submit(done, self._completed)

    def _completed(self, answer: Any) -> None:
        """The journal could not be written: the same again later, markers included."""
        if isinstance(answer, ApiError) and self.is_wanted:
            self._after_a_pause(self.begin)

    def _after_a_pause(self, do: Callable[[], None]) -> None:
        self._deliveries.loop.call_later(limits.MARKERS_RETRY_MS / 1000, do)
