"""Runs one machine on one journal: appends and applies records, holds replies until the commit, runs timers.

Rules:
- Append first, apply second: when the append fails, the state is unchanged, so nothing has to be rolled back. If the
  journal refuses the records (they are too large together), the command is refused. A host that loses its journal (a
  new leader was elected) discards the runner, and the new leader's runner is rebuilt by replay. A host also discards a
  runner that is `broken`: a bug raised an exception after the append, and the state may have only a part of what the
  journal has.
- Commands see the state with all appended records applied, committed or not; only replies wait for the commit. So two
  commands in a row cannot both take the last free name.
- A reply without records waits too, for all records that were appended before it: the command may have read state that
  is not yet committed.
- A caller that waits too long for the commit may be given an error (`give_up`). The records may still be committed
  later, and then their effects are carried out all the same.
- Replies and effects that are ready are released in order. One command may answer thousands of parked commands, and one
  commit may release as many replies: if the owner passes `soon`, some are released now and the rest in later turns of
  the event loop. `wake` also runs only some of the timers that are due at the same moment; `next_deadline_ms` then says
  that the next one is due at once.
- Timers measure intervals, by a clock that is never set (`Moment.steady_ms`). When the time of day is set, the machine
  is given a note.
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
ChangeT = TypeVar("ChangeT")
# Called with the reply of a command, whose type the caller knows and the runner need not know, or with an ApiError.
Reply = Callable[[Any], None]
_READY = -1  # the offset of replies that wait for no commit


class Runner(Generic[CommandT, RecordT, ChangeT]):
    """Runs the commands and timers of one machine.

    `append(records)` writes one atomic group and returns the offset after it; `observe`, if given, is called with the
    changes; `perform` carries out effects. `soon` calls the given function in a later turn of the event loop; without
    `soon` all replies that are ready are released at once. `next_offset` is the end of the journal that the machine was
    made from, and `committed_offset` how much of that is committed.
    """

    def __init__(
        self,
        machine: Machine[CommandT, RecordT, ChangeT],
        append: Callable[[Sequence[RecordT]], int],
        observe: Callable[[list[ChangeT]], None] | None = None,
        perform: Callable[[object], None] | None = None,
        soon: Callable[[Callable[[], None]], None] | None = None,
        *,
        next_offset: int = 0,
        committed_offset: int = 0,
    ) -> None:
        assert committed_offset <= next_offset, f"{committed_offset} is committed, the journal ends at {next_offset}"
        self.machine = machine
        self.next_offset = next_offset
        self.committed_offset = committed_offset
        self.broken = False
        self._append = append
        self._observe = observe
        self._perform = perform or _no_effects
        self._soon = soon
        self._left = limits.ANSWERS_AT_ONCE  # how many more replies and effects may be released in this turn
        self._releasing = False
        # (Offset that must be committed, reply, value, since when it waits), in order. All times here are by the steady
        # clock.
        self._held: deque[tuple[int, Reply, object, int]] = deque()
        self._parked: dict[Hashable, Reply] = {}
        self._timers: dict[Hashable, tuple[int, CommandT]] = {}  # key → deadline, command
        self._deadlines: list[tuple[int, int, Hashable]] = []  # heap
        self._sequence = 0  # breaks ties in the heap by the order in which timers were set
        # A timer that is put off (as every heartbeat does) keeps its one place in the heap until that place comes to
        # the top.
        self._place: dict[Hashable, int] = {}  # key → the deadline of its place in the heap
        self._now = Moment(0, 0)
        self._steps: ClockSteps | None = None  # created with the first command
        self._not_before_ms = 0  # timers that are set by timers are not due before this

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

    def _reply(self, result: Result[RecordT, object], reply: Reply) -> None:
        if isinstance(result.reply, Parked):
            assert result.reply.token not in self._parked, f"two commands wait under {result.reply.token!r}"
            self._parked[result.reply.token] = reply
        else:
            self._hold(reply, result.reply)

    def follow(self, next_offset: int) -> None:
        """The machine was given all records of the journal below `next_offset`, also those of no command."""
        self.next_offset = next_offset

    def continue_with(self, machine: Machine[CommandT, RecordT, ChangeT]) -> None:
        """Replace the machine by another one with the same state."""
        self.machine = machine

    def commit(self, offset: int) -> None:
        """Everything below `offset` is committed: release the replies that waited for it."""
        self.committed_offset = max(self.committed_offset, offset)
        self._release()

    def give_up(self, before_ms: int, error: ApiError) -> None:
        """Answer `error` to callers that have waited for a commit since `before_ms` or longer."""
        given: deque[tuple[int, Reply, object, int]] = deque()
        kept: list[tuple[int, Reply, object, int]] = []
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
        """The time since which the longest waiting caller waits for a commit, or None."""
        committed = self.committed_offset
        return next((held[3] for held in self._held if held[0] > committed and held[1] is not self._perform), None)

    def resign(self, error: ApiError) -> None:
        """Answer `error` to all waiting callers and drop all timers: this runner will never commit anything again."""
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
        """Run the commands of timers that are due, at most `TIMERS_AT_ONCE` of them.

        The rest, and timers that are set meanwhile, run in a later call, so that other work has a turn. A timer whose
        command fails, or is refused by the machine or the journal, is due again soon; the error is raised.
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

    def _take_due(self, steady_ms: int) -> tuple[Hashable, CommandT] | None:
        """Remove the next timer that is due and return its key and command."""
        deadline_ms = self.next_deadline_ms
        if deadline_ms is None or deadline_ms > steady_ms:
            return None
        _, _, key = heapq.heappop(self._deadlines)
        del self._place[key]
        _, command = self._timers.pop(key)
        return key, command

    def _put_off(self, key: Hashable, steady_ms: int, command: CommandT) -> None:
        """Make a timer whose command failed due again soon."""
        if key not in self._timers:
            self._set(key, steady_ms + limits.TIMER_RETRY_MS, command)

    @property
    def next_deadline_ms(self) -> int | None:
        """The next time, by the steady clock, at which `wake` has something to do, or None."""
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

    def _decide(self, command: CommandT) -> Result[RecordT, object]:
        """Decide and append. If either fails, nothing has changed."""
        self._check_whole()
        result = self.machine.decide(command, self._now.now_ms)
        if result.records:
            self.next_offset = self._append(result.records)
        return result

    def _check_whole(self) -> None:
        """Assert that the state has all records of the journal, which every decision relies on."""
        assert not self.broken, "a runner that failed to apply what it appended must be discarded"

    def _carry_out(self, result: Result[RecordT, object]) -> None:
        try:
            self._change(result)
        except Exception:
            self.broken = True
            raise

    def _change(self, result: Result[RecordT, object]) -> None:
        self._changed(self.machine.apply_all(result.records) if result.records else (), result)

    def _changed(self, changes: Sequence[ChangeT], result: Result[RecordT, object]) -> None:
        """Report the changes of applied records, apply the notes, set the timers, and hold effects and answers."""
        if changes and self._observe is not None:
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
            for token, value in result.answers:
                assert token in self._parked, f"an answer for {token!r}, under which no command waits"
                self._held.append((offset, self._parked.pop(token), value, since_ms))
            self._release()

    def _set(self, key: Hashable, deadline_ms: int, command: CommandT) -> None:
        deadline_ms = max(deadline_ms, self._not_before_ms)
        self._timers[key] = deadline_ms, command
        place_ms = self._place.get(key)
        if place_ms is None or place_ms > deadline_ms:
            self._sequence += 1
            self._place[key] = deadline_ms
            heapq.heappush(self._deadlines, (deadline_ms, self._sequence, key))

    def _hold(self, reply: Reply, value: object) -> None:
        if not self._held and self.next_offset <= self.committed_offset:
            reply(value)
        else:
            self._held.append((self.next_offset, reply, value, self._now.steady_ms))

    def _release(self) -> None:
        """Release replies and effects that are ready, at most `ANSWERS_AT_ONCE` per turn of the event loop.

        A reply may submit further commands, and so make more replies ready: those are released after it, not within it.
        """
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


def _no_effects(effect: object) -> None:
    raise AssertionError(f"this machine was not expected to want {effect!r}")
