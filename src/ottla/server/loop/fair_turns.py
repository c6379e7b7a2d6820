"""FairTurns: a queue of work in which clients take turns, so that a client with much work does not delay the others.

Each client has its own queue, and the queues take turns; work that belongs to no client has a queue for itself. A turn
ends when a piece of work is done or at rest (`Steps.at_rest`): until then it holds memory, and all pieces together
should hold little.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from ottla.log.steps import Steps


class WaitingClient(Protocol):
    """The part of a connection's context that this module needs."""

    def has_left(self) -> bool: ...


class Job:
    """One piece of work; `begun` says whether it was started, `client` is the client that waits for it, if any."""

    __slots__ = ("begun", "client", "done", "work")

    def __init__(self, work: Steps, done: Callable[[], None], client: WaitingClient | None = None) -> None:
        self.work = work
        self.done = done
        self.client = client
        self.begun = False

    @property
    def owner(self) -> object:
        return self if self.client is None else self.client


class FairTurns:
    def __init__(self) -> None:
        self._owners: dict[object, deque[Job]] = {}  # in the order of their turns

    def __bool__(self) -> bool:
        return bool(self._owners)

    def add(self, job: Job) -> None:
        self._owners.setdefault(job.owner, deque()).append(job)

    @property
    def first(self) -> Job:
        """The job whose turn it is."""
        return next(iter(self._owners.values()))[0]

    def stepped(self) -> None:
        """Record that the first job has done a step; if its turn is over, the next queue comes first."""
        job = self.first
        if not job.work.done and not job.work.at_rest:
            return
        waiting = self._owners.pop(job.owner)
        if job.work.done:
            waiting.popleft()
        if waiting:
            self._owners[job.owner] = waiting

    def clear(self) -> None:
        self._owners.clear()
