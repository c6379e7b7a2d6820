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
- What is ready is given in order. One command may answer thousands who were parked, and one commit may release as many:
  where the owner says how to go on `soon`, some are given now and the rest in turns of their own. Of timers that are
  due at the same moment `wake` runs some, too; the owner finds the next one due at once.
- Timers measure how long something takes, by a clock that nobody sets (`Moment.steady_ms`). When the time of day is
  set, the machine is told by a note.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

from ottla.machine.kit import ClockSet, ClockSteps, Machine, Moment, Parked, Result
from ottla.model import limits
from ottla.model.errors import ApiError

CommandT = TypeVar("CommandT")
RecordT = TypeVar("RecordT")
Reply = Callable[[Any], None]
_READY = -1  # the offset of what waits for no commit


class Runner(Generic[CommandT, RecordT]):
    """`append(records)` writes one atomic group and returns the offset after it; `observe` hears what changed;
    `perform` carries out effects. `soon` calls what it is given in a turn of its own; without it all is given at once.
    """

    def __init__(
        self,
        machine: Machine[CommandT, RecordT],
        append: Callable[[Sequence[RecordT]], int],
        observe: Callable[[list[Any]], None],
        perform: Callable[[Any], None] | None = None,
        soon: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        self.machine = machine
        self.next_offset = 0
        self.committed_offset = 0
        self.broken = False
        self._append = append
        self._observe = observe
        self._perform = perform or _no_effects
        self._soon = soon
        self._left = limits.ANSWERS_AT_ONCE  # of those that may be given before others have a turn
        self._releasing = False
        # (Offset that must be committed, reply, value, since when it waits), in order. All times here are steady ones.
        self._held: deque[tuple[int, Reply, Any, int]] = deque()
        self._parked: dict[Hashable, Reply] = {}
        self._timers: dict[Hashable, tuple[int, Any]] = {}  # key → deadline, command
        self._deadlines: list[tuple[int, int, Hashable]] = []  # heap
        self._sequence = 0  # breaks ties in the heap in the order of setting
        # A timer that is put off (every heartbeat does that) keeps its one place in the heap until it is met there.
        self._place: dict[Hashable, int] = {}  # key → the deadline it has in the heap
        self._now = Moment(0, 0)
        self._steps: ClockSteps | None = None  # from the first command on
        self._not_before_ms = 0  # timers that timers set are not due before this

    def submit(self, command: CommandT, now: Moment, reply: Reply) -> None:
        """Run a command. `reply` is called once: with the value, or with the ApiError that refused the command."""
        self._follow_clock(now)
        try:
            result = self._decide(command)
        except ApiError as error:
            self._hold(reply, error)
            return
        self._carry_out(result)
        self._reply(result, reply)

    def _reply(self, result: Result[RecordT], reply: Reply) -> None:
        if isinstance(result.reply, Parked):
            assert result.reply.token not in self._parked, f"two commands wait under {result.reply.token!r}"
            self._parked[result.reply.token] = reply
        else:
            self._hold(reply, result.reply)

    def commit(self, offset: int) -> None:
        """Everything below `offset` is committed: release the replies that waited for it."""
        self.committed_offset = max(self.committed_offset, offset)
        self._release()

    def give_up(self, before_ms: int, error: ApiError) -> None:
        """Whoever has waited for a commit since `before_ms` or longer is told `error`."""
        given: deque[tuple[int, Reply, Any, int]] = deque()
        kept: list[tuple[int, Reply, Any, int]] = []
        for held in self._held:
            offset, reply, _, since_ms = held
            if offset <= self.committed_offset:
                given.append(held)
            elif since_ms > before_ms or reply is self._perform:
                kept.append(held)
            else:
                given.append((_READY, reply, error, since_ms))
        given.extend(kept)
        self._held = given
        self._release()

    @property
    def waits_since_ms(self) -> int | None:
        """Since when somebody waits for a commit, or None."""
        committed = self.committed_offset
        return next((held[3] for held in self._held if held[0] > committed and held[1] is not self._perform), None)

    def resign(self, error: ApiError) -> None:
        """This runner will never commit anything again: everybody who waits is told `error`."""
        ready = [held for held in self._held if held[0] <= self.committed_offset]
        waiting = [held[1] for held in self._held if held[0] > self.committed_offset and held[1] is not self._perform]
        self._held = deque(ready)
        self._held.extend((_READY, reply, error, 0) for reply in (*waiting, *self._parked.values()))
        self._parked.clear()
        self._timers.clear()
        self._deadlines.clear()
        self._place.clear()
        self._left = limits.ANSWERS_AT_ONCE
        self._release()

    def wake(self, now: Moment) -> None:
        """Run the commands of timers that are due; if many are, of the first ones. The rest, and those set meanwhile,
        come later, so that others have a turn.

        One whose command fails, or is refused by the machine or the journal, is due again soon; its error is raised.
        """
        self._follow_clock(now)
        self._not_before_ms = now.steady_ms + 1
        try:
            self._run_due(now.steady_ms)
        finally:
            self._not_before_ms = 0

    def _run_due(self, steady_ms: int) -> None:
        for _ in range(limits.TIMERS_AT_ONCE):
            due = self._take_due(steady_ms)
            if due is None:
                break
            key, command = due
            try:
                self._carry_out(self._decide(command))
            except Exception:
                self._put_off(key, steady_ms, command)
                raise

    def _take_due(self, steady_ms: int) -> tuple[Hashable, Any] | None:
        """The next timer that is due, with its command; it is set no longer."""
        deadline_ms = self.next_deadline_ms
        if deadline_ms is None or deadline_ms > steady_ms:
            return None
        _, _, key = heapq.heappop(self._deadlines)
        del self._place[key]
        _, command = self._timers.pop(key)
        return key, command

    def _put_off(self, key: Hashable, steady_ms: int, command: Any) -> None:
        """Its command failed: it is due again soon."""
        if key not in self._timers:
            self._set(key, steady_ms + limits.TIMER_RETRY_MS, command)

    @property
    def next_deadline_ms(self) -> int | None:
        """When, by the steady clock, `wake` has something to do, or None."""
        while self._deadlines:
            place_ms, _, key = self._deadlines[0]
            timer = self._timers.get(key)
            if timer is not None and timer[0] == place_ms == self._place.get(key):
                return place_ms
            heapq.heappop(self._deadlines)
            if self._place.get(key) == place_ms:
                del self._place[key]
                if timer is not None:
                    self._set(key, *timer)
        return None

    def _follow_clock(self, now: Moment) -> None:
        self._now = now
        if self._steps is None:
            self._steps = ClockSteps(now)
        elif by_ms := self._steps.since(now):
            self.machine.note(ClockSet(by_ms))

    def _decide(self, command: CommandT) -> Result[RecordT]:
        """Up to the append: what fails or is refused here has not happened."""
        result = self.machine.decide(command, self._now.now_ms)
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
        self._changed(self.machine.apply_all(result.records) if result.records else (), result)

    def _changed(self, changes: Sequence[Any], result: Result[RecordT]) -> None:
        """Its records are applied, and that changed so much."""
        if changes:
            self._observe(list(changes))
        for note in result.notes:
            self.machine.note(note)
        for key, deadline_ms, command in result.timers:
            if deadline_ms is None:
                self._timers.pop(key, None)
            else:
                self._set(key, deadline_ms - self._now.now_ms + self._now.steady_ms, command)
        if result.effects or result.answers:
            offset, since_ms = self.next_offset, self._now.steady_ms
            self._held.extend((offset, self._perform, effect, since_ms) for effect in result.effects)
            self._held.extend((offset, self._parked.pop(token), value, since_ms) for token, value in result.answers)
            self._release()

    def _set(self, key: Hashable, deadline_ms: int, command: Any) -> None:
        deadline_ms = max(deadline_ms, self._not_before_ms)
        self._timers[key] = deadline_ms, command
        place_ms = self._place.get(key)
        if place_ms is None or place_ms > deadline_ms:
            self._sequence += 1
            self._place[key] = deadline_ms
            heapq.heappush(self._deadlines, (deadline_ms, self._sequence, key))

    def _hold(self, reply: Reply, value: Any) -> None:
        if not self._held and self.next_offset <= self.committed_offset:
            reply(value)
        else:
            self._held.append((self.next_offset, reply, value, self._now.steady_ms))

    def _release(self) -> None:
        """Gives what is ready, or as much of it as others can wait for. Whoever is given something may submit more, and
        make more ready: that comes after it, not within it."""
        if self._releasing:
            return
        self._releasing = True
        try:
            while self._held and self._held[0][0] <= self.committed_offset:
                if self._soon is not None:
                    if not self._left:
                        return
                    if self._left == limits.ANSWERS_AT_ONCE:
                        self._soon(self._next_turn)
                    self._left -= 1
                _, reply, value, _ = self._held.popleft()
                reply(value)
        finally:
            self._releasing = False

    def _next_turn(self) -> None:
        self._left = limits.ANSWERS_AT_ONCE
        self._release()


def _no_effects(effect: Any) -> None:
    raise AssertionError(f"this machine was not expected to want {effect!r}")
