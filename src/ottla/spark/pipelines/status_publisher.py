"""Publishes the status of a run on its `Board` and reads commands for the run from there. It has a thread of its own,
because calls to a broker that is away block.

Rules:
- The newest status is published when it changes and with every beat; older ones that were not published yet are
  dropped.
- A broker that does not answer counts as away until it answers again; the thread goes on after any error.
- A run that was replaced by another publishes nothing more, because the name belongs to the other run.
"""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import replace

from ottla.client.blocking.blocking import Blocking
from ottla.client.errors import ClientError
from ottla.client.options import wall_clock_ms
from ottla.client.producer.options import ProducerOptions
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.spark.pipelines.status import Board, PipelineStatus

log = logging.getLogger(__name__)

_LISTEN_EVERY_S = 1.0
_LOOK_EVERY_S = 0.02
# How long `close` waits for the thread while the broker is away.
_CLOSE_AWAY_S = 1.0
_AWAY = (ClientError, OSError)


def impatient(client: Blocking) -> Blocking:
    """Another client for the same cluster, which does not wait long for a broker that is away."""
    patience_ms = limits.PIPELINE_STATUS_TIMEOUT_MS
    return Blocking(
        replace(client.cluster.options, api_timeout_ms=patience_ms, request_timeout_ms=patience_ms),
        ProducerOptions(delivery_timeout_ms=patience_ms, request_timeout_ms=patience_ms),
    )


class StatusPublisher:
    """Publishes for one run, from its claim on. `client` is an impatient one. `away` is the reason why the broker
    cannot be reached, None if it can.
    """

    def __init__(
        self,
        client: Blocking,
        status: PipelineStatus,
        on_stop: Callable[[], None],
        on_restart: Callable[[], None] = lambda: None,
    ) -> None:
        self._board = Board(client)
        self._on_stop = on_stop
        self._on_restart = on_restart
        self._status = status
        self._told: PipelineStatus | None = None
        self._told_at_ms = 0
        self._changed = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pipeline-status", daemon=True)
        self.away: str | None = None
        self.replaced_by: str | None = None

    def start(self) -> None:
        """Claim the name, publish the first status and start the thread. Raises the exceptions of the client."""
        self._board.claim(self._status)
        self._tell()
        self._thread.start()

    def tell(self, status: PipelineStatus) -> None:
        """Have this status published as soon as possible; does not wait."""
        self._status = status
        self._changed.set()

    def tell_now(self, status: PipelineStatus) -> bool:
        """Publish this status and wait until it is written; False if that does not succeed in time."""
        self.tell(status)
        deadline_s = time.monotonic() + limits.PIPELINE_STATUS_CLOSE_S
        while self._told is not status and time.monotonic() < deadline_s:
            time.sleep(_LOOK_EVERY_S)
        return self._told is status

    def close(self) -> None:
        """Publish the last status, if that is possible now; then end the thread."""
        self._closing.set()
        self._changed.set()
        if self._thread.is_alive():
            self._thread.join(limits.PIPELINE_STATUS_CLOSE_S if self.away is None else _CLOSE_AWAY_S)
        if self._told is not self._status and self.replaced_by is None:
            log.warning("the last status of the pipeline could not be written: %s", self.away or "no answer")

    def _run(self) -> None:
        while True:
            self._changed.wait(_LISTEN_EVERY_S)
            self._changed.clear()
            is_last = self._closing.is_set()
            try:
                self._listen()
                self._tell()
                self.away = None
            except _AWAY as error:
                self.away = str(error) or type(error).__name__
            except CancelledError:
                return  # the client was closed
            except ApiError as error:
                log.warning("the status cannot be written, or commands cannot be read: %s", error)
            except Exception:
                # Go on: without this thread the run would count as lost, and could not be stopped.
                log.exception("the status cannot be written, or commands cannot be read")
            if is_last:
                return

    def _listen(self) -> None:
        status = self._status
        heard = self._board.listen(status.name, status.run)
        self.replaced_by = self.replaced_by or heard.replaced_by
        if heard.stop or heard.replaced_by:
            self._on_stop()
        elif heard.restart:
            self._on_restart()

    def _tell(self) -> None:
        status, now_ms = self._status, wall_clock_ms()
        if self.replaced_by is not None or (self._told is status and now_ms - self._told_at_ms < status.beat_ms):
            return
        self._board.publish(replace(status, updated_ms=now_ms))
        self._told, self._told_at_ms = status, now_ms
