"""Power: which machines may crash now, and how, if acknowledged records must survive; see `scenario.py` for the rules.

A machine that lost power with a dirty page cache is weak until it is in sync again for all its replicas: its copies may
lack committed records. Meanwhile others may be restarted, but not crash: a controller cannot know that their copies are
complete (KIP-966), and might prefer the weak one. A machine that is to crash inside a coming disk operation counts as
crashed from the decision on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ottla.sim.cluster import SimMachine
from ottla.sim.world.disk import Crash


class Power:
    """`machines` are those with replicas; `in_sync` says whether a machine is in all ISRs that it should be in."""

    def __init__(self, machines: Sequence[SimMachine], in_sync: Callable[[SimMachine], bool], *, limited: bool) -> None:
        self._machines = machines
        self._in_sync = in_sync
        self._limited = limited
        self._weak: dict[SimMachine, int] = {}  # machine → its `ends` when it became weak
        self._armed: dict[SimMachine, None] = {}  # machines that will crash in a coming operation
        self._again: dict[SimMachine, None] = {}  # machines that were weak already when they were to lose power again

    def may_crash(self, machine: SimMachine, kind: Crash) -> bool:
        """Whether the machine may crash; if so, it counts as crashed."""
        if self._limited and machine in self._machines:
            for each in [each for each, ends in self._weak.items() if each.ends > ends and self._in_sync(each)]:
                del self._weak[each]
                self._again.pop(each, None)
            others = [each for each in self._machines if each is not machine]
            if any(each in self._weak for each in others):
                return False
            if kind is Crash.POWER:
                if any(each in self._armed or not self._in_sync(each) for each in others):
                    return False
                if machine in self._weak:
                    self._again[machine] = None
                self._weak[machine] = machine.ends
        return True

    def is_weak(self, machine: SimMachine) -> bool:
        return machine in self._weak

    def arm(self, machine: SimMachine) -> None:
        self._armed[machine] = None

    def disarm(self, machine: SimMachine) -> None:
        """The armed crash has happened, or never will."""
        self._armed.pop(machine, None)
        if self._weak.get(machine) == machine.ends:
            if machine in self._again:
                self._weak[machine] -= 1  # as it was before the crash that did not happen
            else:
                del self._weak[machine]
