"""Who may lose power now, so that what was acknowledged must survive; see `scenario.py` for the rules.

A machine that lost power with a dirty page cache is weak until it is in sync again wherever it holds a replica: its own
copies may lack records that count. While one is weak no other may lose power. One that is to lose power inside a
coming disk operation is weak from the moment of the decision.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.sim.cluster import Machine


class Power:
    """`in_sync` says whether a machine is in the in-sync replicas of every partition that it holds."""

    def __init__(self, in_sync: Callable[[Machine], bool], *, limited: bool) -> None:
        self._in_sync = in_sync
        self._limited = limited
        self._weak: dict[Machine, int] = {}  # and how often it had ended when it became so

    def may_lose(self, machine: Machine) -> bool:
        """Whether it may; if so, it is taken to have done it."""
        if self._limited:
            for each in [each for each, ends in self._weak.items() if each.ends > ends and self._in_sync(each)]:
                del self._weak[each]
            if any(each is not machine for each in self._weak):
                return False
        self._weak[machine] = machine.ends
        return True

    def is_weak(self, machine: Machine) -> bool:
        return machine in self._weak

    def spared(self, machine: Machine) -> None:
        """What was to happen did not."""
        if self._weak.get(machine) == machine.ends:
            del self._weak[machine]
