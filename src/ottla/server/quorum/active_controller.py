"""ActiveController: decides changes of the cluster, on the node that leads the quorum and only while it leads.

Commands are decided on a separate state: a copy of the committed state plus the records that are appended and not
committed yet. A reply is sent when its records are committed and this node's `MetadataHost` has applied them. When the
leadership is lost, the copy is dropped and waiting commands are answered with NOT_CONTROLLER: the next active
controller knows whether the command was carried out.

Commands are carried out one after the other. A long one (thousands of partitions) is carried out in slices, and later
commands wait meanwhile: its records are applied to the state that it was decided on. If leadership is lost before its
records are appended, the command had no effect.

While a sole voter starts, an append is committed when it returns, so the reply is known when `submit` returns. Until
the node serves requests it needs no copy either: commands are decided on the committed state itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TypeAlias, TypeVar

from ottla.cluster.commands.start import Activate
from ottla.cluster.entities import Change
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.machine import ClusterCommand, ClusterMachine
from ottla.cluster.view import MetadataView
from ottla.log.files.disk import StorageError
from ottla.machine.kit import Moment
from ottla.machine.stepped import SteppedRunner
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.loop.later import Answer, Later
from ottla.server.loop.runtime import Runtime
from ottla.server.loop.slices import Steps
from ottla.server.loop.subscribers import Subscribers
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.quorum.not_controller import NotController
from ottla.server.quorum.quorum import Quorum
from ottla.server.settings.configs import Configs

log = logging.getLogger(__name__)

T = TypeVar("T")
ReplyT = TypeVar("ReplyT")
_Runner: TypeAlias = SteppedRunner[ClusterCommand[object], MetadataEntry, Change]

# The answer of a handler that submits a command: its response, or the ApiError that refused the request.
Decided: TypeAlias = Answer[T | ApiError]


class ActiveController:
    """If this node does not lead, `active` is False and every command is refused with `NotController`.

    Subscribers of `activity` are called when this node becomes the active controller (True) or stops being it (False).
    """

    def __init__(
        self,
        runtime: Runtime,
        quorum: Quorum,
        metadata: MetadataHost,
        configs: Configs,
        bootstrap: tuple[MetadataEntry, ...],
    ) -> None:
        self.activity: Subscribers[[bool]] = Subscribers("a change of the active controller")
        self._loop = runtime.loop
        self._rng = runtime.rng
        self._quorum = quorum
        self._metadata = metadata
        self._configs = configs
        self._bootstrap = bootstrap
        self._now_ms = quorum.clock_ms
        self._time_of_day_ms = runtime.now_ms
        self._runner: _Runner | None = None
        self._jobs: deque[_Job] = deque()  # the first job is under way
        self._is_waking = False  # whether a job for due timers is among them
        self._carrying_out = 0  # the number of nested commands under way
        self._told: bool | None = None  # a change of leadership that was reported while a command was carried out
        self._changes: list[Change] = []  # changes of the shared state that subscribers have not got yet
        self._view: MetadataView | None = None
        self._follows_timers = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms: int | None = None
        metadata.leaders.add(lambda leader_id: self._led(leader_id == metadata.node_id))
        metadata.commits.add(self._committed)

    @property
    def active(self) -> bool:
        return self._runner is not None

    @property
    def view(self) -> MetadataView:
        """The state that commands see, for read-only requests."""
        if self._view is None:
            raise self._not_controller()
        return self._view

    # --- commands

    def submit(self, command: ClusterCommand[ReplyT]) -> Later[ReplyT | ApiError]:
        """Return the reply, or the ApiError that refused the whole command; it is set at once while a sole voter
        starts.
        """
        later: Later[ReplyT | ApiError] = Later()
        if self._runner is None:
            later.set(self._not_controller())
            return later

        def failed(error: Exception) -> None:
            if isinstance(error, StorageError):
                log.error("the metadata log cannot be written: %s", error)
                error = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
            if isinstance(error, ApiError):  # raised by the quorum, which is about to report another leader
                later.set(error)
            elif is_here:
                raise error
            else:
                log.error("a command of the active controller failed", exc_info=error)
                later.fail()

        is_here = True
        reply = partial(_answer, later)
        self._do(_Job(lambda runner: runner.submitting(command, self._moment(), reply), failed))
        is_here = False
        return later

    def _do(self, job: _Job) -> None:
        self._jobs.append(job)
        if len(self._jobs) == 1:
            self._go_on()

    def _go_on(self) -> None:
        """Run the first job, and those behind it, until a slice ends."""
        while self._jobs and self._runner is not None:
            job = self._jobs[0]
            try:
                with self._undisturbed(self._runner):
                    self._run(job, self._runner)
            except Exception:  # a bug: the other jobs go on
                if self._jobs:
                    self._quorum.next_slice(self._go_on)
                raise
            if self._jobs and self._jobs[0] is job:
                self._quorum.next_slice(self._go_on)
                return

    def _run(self, job: _Job, runner: _Runner) -> None:
        """Do the next slice of a job, or all of it before the node serves requests; remove the job when it is done."""
        try:
            if job.steps is None:
                job.steps = job.begin(runner)
            for _ in job.steps:
                if self._quorum.works_in_slices:
                    return
        except Exception as error:
            self._jobs.popleft()
            job.failed(error)
        else:
            self._jobs.popleft()

    @contextmanager
    def _undisturbed(self, runner: _Runner) -> Iterator[None]:
        """Carry out a command, or a slice of one, without interference: events of the quorum meanwhile (records were
        committed, leadership was lost) are handled afterwards.
        """
        self._split()
        self._metadata.hold()
        self._carrying_out += 1
        try:
            yield
        finally:
            self._carrying_out -= 1
            self._metadata.release()
            if self._told is not None and not self._carrying_out:
                leading, self._told = self._told, None
                self._led(leading)
            self._check(runner)
            self._arm()

    def ask(self, command: ClusterCommand[ReplyT], respond: Callable[[ReplyT], T]) -> Decided[T]:
        """Do `submit` and convert the reply into a response, or return the ApiError; not a `Later` if the reply is
        known at once.
        """
        reply = self.submit(command).map(lambda value: value if isinstance(value, ApiError) else respond(value))
        return reply.soonest()

    # --- for the node

    def start_timers(self) -> None:
        """Run the timers of commands from now on."""
        self._follows_timers = True
        self._arm()

    def begin_to_serve(self) -> None:
        """End the start: from now on appends are not committed at once."""
        self._quorum.begin_to_serve()
        self._split()

    def close(self) -> None:
        self._resign()
        self._follows_timers = False

    # --- inside

    def _led(self, leading: bool) -> None:
        if self._carrying_out:
            self._told = leading
            return
        self._resign()
        if leading:
            self._take_over()
        self.activity.tell(leading)

    def _take_over(self) -> None:
        shares = self._quorum.commits_at_once
        view = MetadataView(
            self._metadata.state if shares else self._metadata.state.copy(),
            self._metadata.node_id,
            lambda: self._configs.node,
            self._rng,
            lambda: self._quorum.end_offset,
            quorum=self._quorum,
            time_of_day_ms=self._time_of_day_ms,
        )
        machine = ClusterMachine(view)
        runner: _Runner = SteppedRunner(
            machine,
            self._quorum.append,
            self._observe,
            next_offset=self._quorum.end_offset,
            committed_offset=self._metadata.end_offset,
        )
        self._view, self._runner = view, runner
        if shares:
            self._metadata.share(self._take_changes)
        self.submit(Activate(self._bootstrap)).then(self._activated, lambda: self._activated(None))

    def _split(self) -> None:
        """Stop sharing the committed state, because records appended from now on are not committed at once."""
        if self._metadata.is_shared and self._view is not None and not self._quorum.commits_at_once:
            self._metadata.end_sharing()
            self._view = replace(self._view, state=self._metadata.state.copy())
            assert self._runner is not None, "it has a view"
            self._runner.continue_with(ClusterMachine(self._view))

    def _observe(self, changes: list[Change]) -> None:
        if self._metadata.is_shared:
            self._changes.extend(changes)

    def _take_changes(self) -> list[Change]:
        changes, self._changes = self._changes, []
        return changes

    def _activated(self, reply: ApiError | None) -> None:
        if isinstance(reply, ApiError) and not isinstance(reply, NotController):
            log.error("the lead cannot be taken: %s", reply)

    def _resign(self) -> None:
        runner, self._runner, self._view = self._runner, None, None
        jobs, self._jobs = self._jobs, deque()
        self._is_waking = False
        self._metadata.end_sharing()
        self._changes.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = self._timer_ms = None
        if runner is not None:
            runner.resign(self._not_controller())
        for job in jobs:
            if job.steps is not None:
                job.steps.close()
            job.failed(self._not_controller())

    def _committed(self, high_watermark: int) -> None:
        if self._runner is not None:
            self._runner.commit(high_watermark)

    def _check(self, runner: _Runner) -> None:
        """Start anew after a bug that occurred after an append: the copy of the state lacks records of the journal.
        Without a copy the node has to stop.
        """
        if runner.broken and runner is self._runner:
            if self._metadata.is_shared:
                self._metadata.fail()
                self._resign()
                return
            log.error("the active controller begins anew")
            self._resign()
            self._quorum.resign()

    def _not_controller(self) -> NotController:
        leader = self._quorum.leader_id
        return NotController(
            f"The active controller appears to be node {leader}." if leader >= 0 else "No controller appears active."
        )

    # --- timers

    def _arm(self) -> None:
        if not self._follows_timers or self._runner is None or self._is_waking:
            return
        deadline_ms = self._runner.next_deadline_ms
        if deadline_ms == self._timer_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms, self._timer = deadline_ms, None
        if deadline_ms is not None:
            delay_ms = max(0, deadline_ms - self._now_ms())
            self._timer = self._loop.call_later(delay_ms / 1000, self._wake)

    def _moment(self) -> Moment:
        """Return the current time by a steady clock. The few commands that store times of day ask their view."""
        now_ms = self._now_ms()
        return Moment(now_ms, now_ms)

    def _wake(self) -> None:
        self._timer = self._timer_ms = None
        if self._runner is not None:
            self._is_waking = True
            self._do(_Job(self._waking, self._put_off))

    def _waking(self, runner: _Runner) -> Steps:
        try:
            yield from runner.waking(self._moment())
        finally:
            self._is_waking = False

    def _put_off(self, error: Exception) -> None:
        if self._runner is None:
            return  # the next controller does the work
        if isinstance(error, StorageError):
            log.error("the metadata log cannot be written: %s", error)
        elif isinstance(error, ApiError):
            log.warning("what was due in the cluster was put off: %s", error)
        else:
            log.error("what was due in the cluster failed", exc_info=error)


class _Job:
    """A command, or the timers that are due: how to run it, and the callback for a failure."""

    __slots__ = ("begin", "failed", "steps")

    def __init__(
        self,
        begin: Callable[[_Runner], Steps],
        failed: Callable[[Exception], None],
    ) -> None:
        self.begin = begin
        self.failed = failed
        self.steps: Steps | None = None  # set when the job has begun


def _answer(later: Later[T], value: T) -> None:
    """Set an answer; an exception of its callback is logged, so that the other replies are sent."""
    if later.done:
        return
    try:
        later.set(value)
    except Exception:
        log.exception("an answer of the active controller could not be given")
