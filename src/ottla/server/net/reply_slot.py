"""ReplySlot: the place of one reply in the order of a connection's replies."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ottla.server.api.dispatch import Part, Route
from ottla.server.api.forwarded_answer import Forwarded
from ottla.server.loop.later import Large
from ottla.wire.message import Response

# What an answer that waits is set to; FAILED and NO_ANSWER, too.
Reply: TypeAlias = Response | Large[Response] | Forwarded


class ReplySlot:
    __slots__ = ("correlation_id", "give_up", "parts", "route")

    def __init__(self, route: Route, correlation_id: int) -> None:
        self.route = route
        self.correlation_id = correlation_id
        self.parts: list[Part] | None = None
        self.give_up: Callable[[], object] | None = None  # stops the work for a reply that nobody needs any more
