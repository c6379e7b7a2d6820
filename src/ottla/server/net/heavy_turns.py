"""HeavyTurns: when a connection has its turns on the event loop, by how long its last one was.

A connection whose turns are short has them as soon as there is something to do. Connections whose turns are long share
them (`Slices`): one of them has its turn in each turn of the loop. So a client that floods a node over many connections
delays other clients no more than it does over one.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.model import limits
from ottla.server.loop.runtime import Runtime


class HeavyTurns:
    __slots__ = ("_runtime", "heavy")

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.heavy = False  # whether the last turn was long

    def begin(self, turn: Callable[[], object]) -> None:
        """Begin a turn at once; after a long turn, when those of other such connections have been taken."""
        if self.heavy:
            self._runtime.slices.soon(lambda: self._take(turn))
        else:
            self._take(turn)

    def _take(self, turn: Callable[[], object]) -> None:
        clock_s = self._runtime.clock_s
        begun_s = clock_s()
        turn()
        self.heavy = clock_s() - begun_s > limits.LIGHT_TURN_S

    def soon(self, work: Callable[[], None]) -> None:
        """Do `work` in a later turn of the loop, because the caller is in the middle of its own work."""
        (self._runtime.slices.soon if self.heavy else self._runtime.loop.call_soon)(work)
