"""The simulated event loop: asyncio on virtual time, where one seed decides everything that may vary.

Rules:
- The ready queue is FIFO, as asyncio promises; only times vary (latencies, delays, faults), all drawn from `rng`.
- Time moves only when nothing is ready, to the next timer.
- Every callback belongs to a host: the `HOST` context variable, inherited by everything that a host's code schedules.
  Callbacks of a dead host never run again, those of a paused one wait. That is how a node crashes at any await without
  its cooperation.
- Suspended coroutines of a dead host are kept until `bury`, so that the garbage collector does not run their `finally`
  blocks at arbitrary times.
- Simulated sockets are watched by file number, level-triggered, through the `Pollable` that registered for the number.
- The trace hash covers every step and everything network and disk report; the same seed must give the same hash in any
  process.

An exception that reaches the loop's handler is recorded in `errors`: it is a bug of the code under test.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import random
import struct
import zlib
from asyncio import events, transports
from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from typing import Any, Protocol, TypeVar, cast

T = TypeVar("T")
_TURN = struct.Struct("<dq")
_CLOSES_MAX = 100  # how often one coroutine may await something while it is being closed


class SimulationError(Exception):
    """The simulation cannot go on: deadlock, livelock, or a limit was exceeded."""


class Pollable(Protocol):
    def readable(self) -> bool: ...
    def writable(self) -> bool: ...


class Dialler(Protocol):
    """The source of outgoing connections: the simulated network."""

    async def connect(
        self, loop: SimLoop, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int
    ) -> tuple[transports.Transport, asyncio.BaseProtocol]: ...


class SimHost:
    """One simulated machine or process: the owner of callbacks, sockets and disks."""

    WORKER_DELAY_SECONDS = (0.0001, 0.002)

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self.alive = True
        self.paused = False
        self.off = False  # without power: its kernel does not answer either
        self.parked: list[events.Handle] = []  # callbacks that wait until it is resumed
        self.touched: dict[int, None] = {}  # its sockets that became ready while it was paused
        self.worker_delay_seconds = self.WORKER_DELAY_SECONDS

    def __repr__(self) -> str:
        return f"SimHost({self.name})"


HOST: ContextVar[SimHost | None] = ContextVar("ottla_sim_host", default=None)


class SimTask(asyncio.Task[Any]):
    """A task that knows its host; the C implementation of tasks hides its context."""

    def __init__(self, coroutine: Any, *, loop: SimLoop, context: Context | None = None, **options: Any) -> None:
        self.host = HOST.get() if context is None else context.get(HOST)
        super().__init__(coroutine, loop=loop, context=context, **options)


def _make_task(loop: Any, coroutine: Any, **options: Any) -> asyncio.Future[Any]:
    return SimTask(coroutine, loop=loop, **options)


def _close(coroutine: Any) -> None:
    """Close a coroutine, which may await again while it is closed; otherwise the garbage collector would end it."""
    for _ in range(_CLOSES_MAX):
        with contextlib.suppress(BaseException):
            coroutine.close()
        if coroutine.cr_frame is None:
            return


def _refuse_task(loop: Any, coroutine: Any, **_: Any) -> asyncio.Future[Any]:
    """Refuse a new task: the simulation is over, so nothing that a `finally` starts may run."""
    coroutine.close()
    future: asyncio.Future[Any] = loop.create_future()
    future.cancel()
    return future


class SimLoop(asyncio.BaseEventLoop):
    """See the module. `step_limit` bounds callbacks, `time_limit_seconds` virtual time, `stall_limit` turns at the same
    virtual time.
    """

    def __init__(
        self,
        rng: random.Random,
        *,
        step_limit: int = 5_000_000,
        time_limit_seconds: float = 3600.0,
        stall_limit: int = 10_000,
    ) -> None:
        super().__init__()
        self.rng = rng
        # Queues of BaseEventLoop that the type stubs lack.
        self._ready: deque[events.Handle]
        # Timers by their time, and those of one time in the order in which they were set. (Comparing tuples is much
        # quicker than comparing TimerHandles, whose `_scheduled` the stubs lack, too.)
        self._scheduled: list[tuple[float, int, Any]]
        self._timers_set = 0
        self._timer_cancelled_count: int
        self._stopping: bool
        self.steps = 0
        self.errors: list[dict[str, Any]] = []
        self.dialler: Dialler | None = None
        self.on_step: Callable[[SimHost], None] | None = None  # called for a host whenever its code has run
        self._now = 0.0
        self._step_limit = step_limit
        self._time_limit = time_limit_seconds
        self._stall_limit = stall_limit
        self._turns_at_this_time = 0
        self._trace = 0
        self._pollables: dict[int, Pollable] = {}
        self._readers: dict[int, events.Handle] = {}
        self._writers: dict[int, events.Handle] = {}
        self._touched: dict[int, None] = {}
        self._graveyard: list[Any] = []
        self._over = False
        self.set_exception_handler(lambda _, context: self._note_error(context))
        self.set_task_factory(_make_task)

    # -- time, trace, limits

    def time(self) -> float:
        return self._now

    def note(self, *facts: object) -> None:
        """Add facts to the trace. They must not contain ids, addresses or anything else specific to this process."""
        self._trace = zlib.crc32(repr(facts).encode(), self._trace)

    @property
    def trace(self) -> str:
        return f"{self._trace:08x}-{self.steps}"

    def _note_error(self, context: dict[str, Any]) -> None:
        host = _host_behind(context)
        if self._over or (host is not None and not host.alive):
            return  # errors of a dying host do not count
        self.errors.append({**context, "host": host.name if host else None, "time": self._now})

    # -- the loop itself

    def _run_once(self) -> None:
        self._turns_at_this_time += 1
        self._poll()
        self._wake_timers()
        for _ in range(len(self._ready)):
            handle = self._ready.popleft()
            if handle._cancelled:
                continue
            host: SimHost | None = handle._context.get(HOST)  # type: ignore[attr-defined]
            if host is not None and (host.paused or not host.alive):
                (host.parked if host.alive else self._graveyard).append(handle)
                continue
            self.steps += 1
            handle._run()
            if host is not None and self.on_step is not None:
                self.on_step(host)
        self._trace = zlib.crc32(_TURN.pack(self._now, self.steps), self._trace)
        self._check_limits()

    def _poll(self) -> None:
        """Queue the watchers of ready sockets; a socket is polled again as long as it stays ready."""
        touched, self._touched = self._touched, {}
        for number in touched:
            pollable = self._pollables.get(number)
            if pollable is None:
                continue
            for watchers, ready in ((self._readers, pollable.readable), (self._writers, pollable.writable)):
                handle = watchers.get(number)
                if handle is None or not ready():
                    continue
                host: SimHost | None = handle._context.get(HOST)  # type: ignore[attr-defined]
                if host is not None and host.paused:
                    host.touched[number] = None
                else:
                    self._ready.append(handle)
                    self._touched[number] = None

    def _wake_timers(self) -> None:
        scheduled = self._scheduled
        while scheduled and scheduled[0][2]._cancelled:
            self._timer_cancelled_count -= 1
            heapq.heappop(scheduled)[2]._scheduled = False
        if not self._ready and not self._stopping:
            if not scheduled:
                raise SimulationError(f"deadlock at {self._now:.3f} s: nothing is ready and no timer is set")
            if scheduled[0][0] > self._now:
                self._now = scheduled[0][0]
                self._turns_at_this_time = 0
        while scheduled and scheduled[0][0] <= self._now:
            handle = heapq.heappop(scheduled)[2]
            handle._scheduled = False
            if handle._cancelled:
                self._timer_cancelled_count -= 1
            else:
                self._ready.append(handle)

    def _check_limits(self) -> None:
        if self.steps > self._step_limit:
            raise SimulationError(f"more than {self._step_limit} steps, at {self._now:.3f} s")
        if self._now > self._time_limit:
            raise SimulationError(f"more than {self._time_limit:.0f} virtual seconds")
        if self._turns_at_this_time > self._stall_limit:
            last = self._ready[0] if self._ready else None
            raise SimulationError(f"livelock: {self._stall_limit} turns at {self._now:.3f} s; next is {last}")

    def _process_events(self, event_list: object) -> None:
        """Required by BaseEventLoop; sockets are polled in `_poll`."""

    def _write_to_self(self) -> None:
        """Required by BaseEventLoop; this loop never sleeps, so it needs no waking."""

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> events.Handle:
        handle = events.Handle(callback, args, self, context)
        if not self._over:
            self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer: Any = events.TimerHandle(when, callback, args, self, context)
        self._timers_set += 1
        heapq.heappush(self._scheduled, (when, self._timers_set, timer))
        timer._scheduled = True
        return cast(asyncio.TimerHandle, timer)

    # -- hosts

    def call_as(self, host: SimHost | None, callback: Callable[..., T], *args: Any) -> T:
        """Run a callback so that all it schedules belongs to `host`."""
        context = copy_context()
        context.run(HOST.set, host)
        return context.run(callback, *args)

    def task_of(self, host: SimHost | None, coroutine: Any) -> asyncio.Task[Any]:
        return self.call_as(host, self.create_task, coroutine)

    def kill(self, host: SimHost) -> None:
        """Let no callback of this host run from now on."""
        host.alive = False
        self._graveyard.extend(host.parked)
        host.parked.clear()
        for task in asyncio.all_tasks(self):
            if isinstance(task, SimTask) and task.host is host:
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                self._graveyard.append(task)

    def pause(self, host: SimHost) -> None:
        host.paused = True

    def resume(self, host: SimHost) -> None:
        host.paused = False
        self._ready.extend(host.parked)
        self._touched |= host.touched
        host.parked.clear()
        host.touched.clear()

    def bury(self) -> None:
        """End the simulation: close suspended coroutines quietly, in one place, then the loop."""
        self._over = True
        self.set_task_factory(_refuse_task)
        remains = [*self._graveyard, *asyncio.all_tasks(self)]
        self._graveyard.clear()
        # so that code which asks for the running loop while it is closed does not get a real one
        asyncio._set_running_loop(self)
        for task in remains:
            if isinstance(task, asyncio.Task):
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                _close(task.get_coro())
        asyncio._set_running_loop(None)
        self._ready.clear()
        self._scheduled.clear()
        self.close()

    # -- sockets

    def register(self, number: int, pollable: Pollable) -> None:
        self._pollables[number] = pollable

    def unregister(self, number: int) -> None:
        self._pollables.pop(number, None)
        self._touched.pop(number, None)
        self.remove_reader(number)
        self.remove_writer(number)

    def touch(self, number: int) -> None:
        """Note that the readiness of this socket may have changed."""
        if number in self._readers or number in self._writers:
            self._touched[number] = None

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]
        self._watch(self._readers, fd, callback, args)

    def add_writer(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]
        self._watch(self._writers, fd, callback, args)

    def remove_reader(self, fd: Any) -> bool:
        return _unwatch(self._readers, fd)

    def remove_writer(self, fd: Any) -> bool:
        return _unwatch(self._writers, fd)

    def _watch(self, watchers: dict[int, events.Handle], fd: Any, callback: Callable[..., Any], args: Any) -> None:
        number = _number(fd)
        if number not in self._pollables:
            raise OSError(9, f"no simulated socket has the number {number}")
        _unwatch(watchers, number)
        watchers[number] = events.Handle(callback, args, self, None)
        self._touched[number] = None

    # -- connections and workers

    async def create_connection(
        self, protocol_factory: Callable[[], Any], host: Any = None, port: Any = None, **options: Any
    ) -> tuple[Any, Any]:
        if self.dialler is None:
            raise SimulationError("this loop has no network")
        return await self.dialler.connect(self, protocol_factory, host, int(port))

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Run the function in one piece at some later time; its result arrives at another, still later time.

        So what other code does between these two times is not covered by, say, an fsync, although the fsync has not
        returned yet.
        """
        future: asyncio.Future[T] = self.create_future()
        host = HOST.get()
        low, high = host.worker_delay_seconds if host is not None else (0.0001, 0.001)

        def work() -> None:  # even if the caller was cancelled: a thread cannot be stopped
            try:
                result, error = func(*args), None
            except Exception as exc:
                result, error = None, exc
            self.call_later(self.rng.uniform(low, high), deliver, result, error)

        def deliver(result: Any, error: Exception | None) -> None:
            if future.cancelled():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)

        self.call_later(self.rng.uniform(low, high), work)
        return future


def _number(fd: Any) -> int:
    return fd if isinstance(fd, int) else int(fd.fileno())


def _unwatch(watchers: dict[int, events.Handle], fd: Any) -> bool:
    handle = watchers.pop(_number(fd), None)
    if handle is None:
        return False
    handle.cancel()
    return True


def _host_behind(context: dict[str, Any]) -> SimHost | None:
    """Return the host whose code raised the error that the exception handler got."""
    for key in ("task", "future"):
        if isinstance(context.get(key), SimTask):
            host: SimHost | None = context[key].host
            return host
    handle = context.get("handle")
    return handle._context.get(HOST) if handle is not None else HOST.get()
