"""Subscribers: callbacks that are called for each event, in the order in which they subscribed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Generic, ParamSpec

from ottla.server.loop.slices import Steps

log = logging.getLogger(__name__)

P = ParamSpec("P")


class Subscribers(Generic[P]):
    """`news` names the event in the log."""

    def __init__(self, news: str) -> None:
        self._news = news
        self._callbacks: dict[object, Callable[P, Iterator[None] | None]] = {}
        self._held: list[Callable[[], Steps]] | None = None

    def add(self, callback: Callable[P, Iterator[None] | None]) -> Callable[[], None]:
        """Subscribe `callback`, which may do its work in slices; return a callable that ends the subscription."""
        key = object()
        self._callbacks[key] = callback
        return lambda: self._remove(key)

    def _remove(self, key: object) -> None:
        self._callbacks.pop(key, None)

    def tell(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call all callbacks now. An exception ends the round: the remaining callbacks are not called."""
        for callback in tuple(self._callbacks.values()):
            for _ in callback(*args, **kwargs) or ():
                pass

    def telling(self, *args: P.args, **kwargs: P.kwargs) -> Steps:
        """Call all callbacks in slices, each after the one before has finished. One that fails does not stop the
        others.
        """
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
        """Hold back all later calls of `telling` until `release`."""
        self._held = []

    def drop_held(self) -> None:
        """Discard the calls that were held back so far."""
        self._held = []

    def release(self) -> Steps:
        """Make the calls that were held back, in slices."""
        held, self._held = self._held or [], None
        for telling in held:
            yield from telling()
