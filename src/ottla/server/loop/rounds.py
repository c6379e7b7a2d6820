"""Rounds: work that waits for its turn, so that nobody who brings much of it holds up the others.

Each client has a queue of its own, and they take turns; work that is no client's is alone in its queue. A turn ends
when a piece of work is done or at rest (`Steps.at_rest`): until then it holds memory, and all together are to hold
little.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from ottla.log.steps import Steps


class WaitingClient(Protocol):
    """A connection's context, as seen from here."""

    def has_left(self) -> bool: ...


class Job:
    """One piece of work, under way if it has `begun`, for a client if one waits for it."""

    __slots__ = ("begun", "client", "done", "work")

    def __init__(self, work: Steps, done: Callable[[Any], None], client: WaitingClient | None = None) -> None:
        self.work = work
        self.done = done
        self.client = client
        self.begun = False

    @property
    def owner(self) -> object:
        return self if self.client is None else self.client


class Rounds:
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
        """The first job has done a step."""
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
