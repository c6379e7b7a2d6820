"""HeavyTurns: when a connection has its turns on the event loop, by how long its last ones were.

A connection whose turns are short has them as soon as there is something to do. Connections whose turns are long share
them (`Slices`): one of them has its turn in each turn of the loop. So a client that floods a node over many connections
delays other clients no more than it does over one.

The time counts in which a turn computes or waits for a disk, and not the time in which the operating system let another
process run: else a client with short requests would wait among those that flood, whenever the machine was busy. And not
only the last turn counts: a large request arrives in several turns, of which the one that handles it is long, and
connections that flood would be served all at once whenever their last turns happened to be short. A long turn is
forgotten after some turns in which requests were handled, and quickly.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.model import limits
from ottla.server.loop.runtime import Runtime


class HeavyTurns:
    __slots__ = ("_runtime", "begun_s", "heavy")

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.begun_s = 0.0  # when the last turn began, or was judged
        self.heavy = 0  # after a long turn: for how many of its next turns the connection counts as one with long turns

    def begin(self, turn: Callable[[], bool]) -> bool:
        """Begin a turn at once; after long turns, when those of other such connections have been taken. Return whether
        it was at once. `turn` returns whether it has handled a request.
        """
        if not self.heavy:
            self._take(turn)
        elif self._runtime.slices.at_once():
            self._take_exactly(turn)
        else:
            self._runtime.slices.soon(lambda: self._take_exactly(turn))
            return False
        return True

    def soon(self, work: Callable[[], bool]) -> None:
        """Do `work`, a turn, in a later turn of the loop, because the caller is in the middle of its own work."""
        if self.heavy:
            self._runtime.slices.soon(lambda: self._take_exactly(work))
        else:
            self._runtime.loop.call_soon(self._take, work)

    def is_over(self) -> bool:
        """Return whether the turn that is under way has taken so long that the others have theirs first."""
        return self._runtime.clock_s() - self.begun_s > limits.REQUESTS_PER_TURN_S

    def judge(self) -> None:
        """Count the turn that is under way as far as it has come: what is left to do may have to wait."""
        begun_s, self.begun_s = self.begun_s, self._runtime.clock_s()
        self._weigh(self.begun_s - begun_s)

    def _take_exactly(self, turn: Callable[[], bool]) -> None:
        self._runtime.cpu_waits.since_last()
        self._take(turn)

    def _take(self, turn: Callable[[], bool]) -> None:
        clock_s = self._runtime.clock_s
        self.begun_s = begun_s = clock_s()
        has_handled = turn()
        took_s = clock_s() - self.begun_s
        if took_s > limits.LIGHT_TURN_S or (self.heavy and has_handled and self.begun_s == begun_s):  # not judged
            self._weigh(took_s)

    def _weigh(self, took_s: float) -> None:
        if took_s > limits.LIGHT_TURN_S and took_s - self._runtime.cpu_waits.since_last() > limits.LIGHT_TURN_S:
            self.heavy = limits.LIGHT_TURNS_AGAIN if self.heavy else 1
        elif self.heavy:
            self.heavy -= 1
