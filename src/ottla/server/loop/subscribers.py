"""Subscribers: callbacks that hear of something, in the order in which they subscribed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Generic, ParamSpec

from ottla.server.loop.slices import Steps

log = logging.getLogger(__name__)

P = ParamSpec("P")


class Subscribers(Generic[P]):
    """`news` says what they hear of, for the log."""

    def __init__(self, news: str) -> None:
        self._news = news
        self._callbacks: dict[object, Callable[P, Iterator[None] | None]] = {}
        self._held: list[Callable[[], Steps]] | None = None

    def add(self, callback: Callable[P, Iterator[None] | None]) -> Callable[[], None]:
        """Subscribes `callback`, which may do its work in slices; the result ends the subscription."""
        key = object()
        self._callbacks[key] = callback
        return lambda: self._remove(key)

    def _remove(self, key: object) -> None:
        self._callbacks.pop(key, None)

    def tell(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Calls them all now. An exception ends the round: the rest do not hear."""
        for callback in tuple(self._callbacks.values()):
            for _ in callback(*args, **kwargs) or ():
                pass

    def telling(self, *args: P.args, **kwargs: P.kwargs) -> Steps:
        """Calls them all in slices, each when the one before has finished. One that fails does not stop the others."""
        if self._held is not None:
            self._held.append(lambda: self._telling(*args, **kwargs))
        else:
            yield from self._telling(*args, **kwargs)

    def _telling(self, *args: P.args, **kwargs: P.kwargs) -> Steps:
        for callback in tuple(self._callbacks.values()):
            try:
                yield from callback(*args, **kwargs) or ()
            except Exception:
                log.exception("%s could not be followed", self._news)

    def hold(self) -> None:
        """From now on nobody hears anything by `telling`; `release` makes up for it."""
        self._held = []

    def drop_held(self) -> None:
        """What was held back is of no interest any more."""
        self._held = []

    def release(self) -> Steps:
        """Tells, in slices, what was held back."""
        held, self._held = self._held or [], None
        for telling in held:
            yield from telling()
