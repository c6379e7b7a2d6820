"""Runs one machine on one journal: append, apply, hold replies until committed, wake timers.

Rules:
- Append first, apply second: when the append fails, the state never knew, so nothing has to be rolled back. Records
  that the journal refuses (too large together) refuse the command. A writer that loses its journal (a new leader was
  elected) throws the runner away and the next one is rebuilt by replay. So does one whose runner is `broken`: a mistake
  of ours was met after the append, and the state may have only half of what the journal has.
- Commands see the state with all appended records applied, committed or not; only replies wait for the commit. So two
  commands in a row cannot both take the last free name.
- A reply without records waits too, for what was appended before it: it may have read what is not yet committed.
- Who waits too long for the commit may be told so (`give_up`); what was appended may still be committed later, and then
  its effects are carried out all the same.
- Timers measure how long something takes. A clock that is set back takes them along; else whoever is dead by the time
  of the old clock would live for as long as the clocks differ.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

from ottla.machine.kit import Machine, Parked, Result, Timer
from ottla.model.errors import ApiError
from ottla.model.limits import CLOCK_BACK_MS, TIMER_RETRY_MS

CommandT = TypeVar("CommandT")
RecordT = TypeVar("RecordT")
Reply = Callable[[Any], None]


class Runner(Generic[CommandT, RecordT]):
    """`append(records)` writes one atomic group and returns the offset after it; `observe` hears what changed;
    `perform` carries out effects.
    """

    def __init__(
        self,
        machine: Machine[CommandT, RecordT],
        append: Callable[[Sequence[RecordT]], int],
        observe: Callable[[list[Any]], None],
        perform: Callable[[Any], None] | None = None,
    ) -> None:
        self.machine = machine
        self.next_offset = 0
        self.committed_offset = 0
        self.broken = False
        self._append = append
        self._observe = observe
        self._perform = perform or _no_effects
        # (Offset that must be committed, reply, value, since when it waits), in order.
        self._held: deque[tuple[int, Reply, Any, int]] = deque()
        self._parked: dict[Hashable, Reply] = {}
        self._timers: dict[Hashable, Timer] = {}
        self._deadlines: list[tuple[int, int, Hashable]] = []  # heap
        self._sequence = 0  # breaks ties in the heap in the order of setting
        # A timer that is put off (every heartbeat does that) keeps its one place in the heap until it is met there.
        self._place: dict[Hashable, int] = {}  # key → the deadline it has in the heap
        self._clock_ms = 0
        self._not_before_ms = 0  # timers that timers set are not due before this

    def submit(self, command: CommandT, now_ms: int, reply: Reply) -> None:
        """Run a command. `reply` is called once: with the value, or with the ApiError that refused the command."""
        self._follow_clock(now_ms)
        try:
            result = self._decide(command, now_ms)
        except ApiError as error:
            self._hold(reply, error)
            return
        self._carry_out(result)
        if isinstance(result.reply, Parked):
            assert result.reply.token not in self._parked, f"two commands wait under {result.reply.token!r}"
            self._parked[result.reply.token] = reply
        else:
            self._hold(reply, result.reply)

    def commit(self, offset: int) -> None:
        """Everything below `offset` is committed: release the replies that waited for it."""
        self.committed_offset = max(self.committed_offset, offset)
        while self._held and self._held[0][0] <= self.committed_offset:
            _, reply, value, _ = self._held.popleft()
            reply(value)

    def give_up(self, before_ms: int, error: ApiError) -> None:
        """Whoever has waited for a commit since `before_ms` or longer is told `error`."""
        late: list[Reply] = []
        kept: deque[tuple[int, Reply, Any, int]] = deque()
        for held in self._held:
            if held[3] > before_ms or held[1] is self._perform:
                kept.append(held)
            else:
                late.append(held[1])
        self._held = kept
        for reply in late:
            reply(error)

    @property
    def waits_since_ms(self) -> int | None:
        """Since when somebody waits for a commit, or None."""
        return next((since_ms for _, reply, _, since_ms in self._held if reply is not self._perform), None)

    def resign(self, error: ApiError) -> None:
        """This runner will never commit anything again: everybody who waits is told `error`."""
        waiting = [*(reply for _, reply, _, _ in self._held if reply is not self._perform), *self._parked.values()]
        self._held.clear()
        self._parked.clear()
        self._timers.clear()
        self._deadlines.clear()
        self._place.clear()
        for reply in waiting:
            reply(error)

    def wake(self, now_ms: int) -> None:
        """Run the commands of all timers that are due; those set meanwhile come later, so that others have a turn.

        One whose command fails, or is refused by the machine or the journal, is due again soon; its error is raised.
        """
        self._follow_clock(now_ms)
        self._not_before_ms = now_ms + 1
        try:
            self._run_due(now_ms)
        finally:
            self._not_before_ms = 0

    def _run_due(self, now_ms: int) -> None:
        while (deadline_ms := self.next_deadline_ms) is not None and deadline_ms <= now_ms:
            _, _, key = heapq.heappop(self._deadlines)
            del self._place[key]
            timer = self._timers.pop(key)
            try:
                self._carry_out(self._decide(timer.command, now_ms))
            except Exception:
                if key not in self._timers:
                    self._set_timer(timer._replace(deadline_ms=now_ms + TIMER_RETRY_MS))
                raise

    @property
    def next_deadline_ms(self) -> int | None:
        """When `wake` has something to do, or None."""
        while self._deadlines:
            place_ms, _, key = self._deadlines[0]
            timer = self._timers.get(key)
            if timer is not None and timer.deadline_ms == place_ms == self._place.get(key):
                return place_ms
            heapq.heappop(self._deadlines)
            if self._place.get(key) == place_ms:
                del self._place[key]
                if timer is not None:
                    self._set_timer(timer)
        return None

    def _follow_clock(self, now_ms: int) -> None:
        back_ms, self._clock_ms = self._clock_ms - now_ms, now_ms
        if back_ms <= CLOCK_BACK_MS:
            return
        timers = list(self._timers.values())
        for pending in (self._timers, self._deadlines, self._place):
            pending.clear()
        for timer in timers:
            assert timer.deadline_ms is not None, "it is set"
            self._set_timer(timer._replace(deadline_ms=timer.deadline_ms - back_ms))

    def _decide(self, command: CommandT, now_ms: int) -> Result[RecordT]:
        """Up to the append: what fails or is refused here has not happened."""
        result = self.machine.decide(command, now_ms)
        if result.records:
            self.next_offset = self._append(result.records)
        return result

    def _carry_out(self, result: Result[RecordT]) -> None:
        try:
            self._change(result)
        except Exception:
            self.broken = True
            raise

    def _change(self, result: Result[RecordT]) -> None:
        changes: list[Any] = []
        for record in result.records:
            changes.extend(self.machine.apply(record))
        if changes:
            self._observe(changes)
        for note in result.notes:
            self.machine.note(note)
        for timer in result.timers:
            self._set_timer(timer)
        for effect in result.effects:
            self._hold(self._perform, effect)
        for token, value in result.answers:
            self._hold(self._parked.pop(token), value)

    def _set_timer(self, timer: Timer) -> None:
        if timer.deadline_ms is None:
            self._timers.pop(timer.key, None)
            return
        deadline_ms = max(timer.deadline_ms, self._not_before_ms)
        self._timers[timer.key] = timer if deadline_ms == timer.deadline_ms else timer._replace(deadline_ms=deadline_ms)
        place_ms = self._place.get(timer.key)
        if place_ms is None or place_ms > deadline_ms:
            self._sequence += 1
            self._place[timer.key] = deadline_ms
            heapq.heappush(self._deadlines, (deadline_ms, self._sequence, timer.key))

    def _hold(self, reply: Reply, value: Any) -> None:
        if not self._held and self.next_offset <= self.committed_offset:
            reply(value)
        else:
            self._held.append((self.next_offset, reply, value, self._clock_ms))


def _no_effects(effect: Any) -> None:
    raise AssertionError(f"this machine was not expected to want {effect!r}")
