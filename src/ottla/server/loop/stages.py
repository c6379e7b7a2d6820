"""Stages: the start of a node as a list of named steps, each with the step that undoes it.

Stages are done one after the other. The undo of each completed stage is kept, and a stop, or a start that fails, undoes
them in reverse order. An undo that fails is logged, and the others go on.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple, TypeAlias

from ottla.log.files.disk import StorageError

log = logging.getLogger(__name__)

Step: TypeAlias = Callable[[], Awaitable[None] | None]


class Stage(NamedTuple):
    name: str
    do: Step | None = None
    undo: Step | None = None


class Stages:
    def __init__(self) -> None:
        self._done: list[Stage] = []

    async def run(self, stages: Iterable[Stage]) -> None:
        """Do all stages. A stage that does not wait runs in the same turn of the loop as the one before it."""
        for stage in stages:
            log.debug("start: %s", stage.name)
            waiting = None if stage.do is None else stage.do()
            if waiting is not None:
                await waiting
            self._done.append(stage)

    async def undo(self) -> None:
        """Undo all completed stages, the last one first."""
        while self._done:
            stage = self._done.pop()
            if stage.undo is None:
                continue
            log.debug("stop: undo %s", stage.name)
            try:
                waiting = stage.undo()
                if waiting is not None:
                    await waiting
            except StorageError as error:
                log.error("the stop goes on, but the next start will have to recover: %s", error)
            except Exception:
                log.exception("the stop goes on, but the next start will have to recover")
