"""ControllerChannel: what this node asks of the active controller, wherever that is.

Where it is here, a request goes through its handler without a socket, and a command is answered in the call on a sole
voter. Elsewhere it goes to the leader's controller listener. Nobody who asks has to know: a controller that is gone or
no longer leads is asked for until another one answers or the time is up.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Coroutine, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.client.errors import ClientError, NotConnected, RequestTimedOut
from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.server.api import dispatch
from ottla.server.api.api_table import SERVED_TO_CONTROLLERS
from ottla.server.api.context import Context, Peer
from ottla.server.loop.later import FAILED, Large, Later
from ottla.server.quorum.producer_ids import ProducerIds
from ottla.wire.message import Request, Struct, fields

if TYPE_CHECKING:
    from ottla.cluster.commands.create_topics import NewTopic, TopicOutcome
    from ottla.server.api.context import Services
    from ottla.server.quorum.topic_creation import MissingTopics

log = logging.getLogger(__name__)

T = TypeVar("T")
_HERE = ("127.0.0.1", 0)


class ControllerChannel:
    """`services` is complete before anybody asks."""

    services: Services

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.producer_ids = ProducerIds(self)
        self._loop = loop
        self._tasks: dict[asyncio.Task[Any], None] = {}

    async def ask(self, request: Request, *, timeout_ms: int = limits.CONTROLLER_ANSWER_MS) -> Any:
        """The answer of the active controller; `RequestTimedOut` if none came in time. Its error codes are the
        caller's business, but for NOT_CONTROLLER."""
        services = self.services
        deadline_s = self._loop.time() + timeout_ms / 1000
        why: object = "no controller is known"
        while True:
            left_ms = int((deadline_s - self._loop.time()) * 1000)
            if left_ms <= 0:
                raise RequestTimedOut(f"no answer to {type(request).name} within {timeout_ms} ms: {why}")
            before = (services.quorum.leader_id, services.quorum.epoch)
            try:
                if services.controller.active:
                    answer = await self._ask_here(request, left_ms)
                elif (address := services.quorum.leader_address()) is not None:
                    answer = await self.unless_moved(
                        services.peers.ask(address, request, timeout_ms=left_ms, purpose="controller", patient=False),
                        before,
                    )
                else:
                    answer = None
                if answer is not None:
                    if not is_refused_by_role(answer):
                        return answer
                    why = "the one that was asked is not the controller"
            except ClientError as error:
                why = error
            await self.next_controller(before)

    async def unless_moved(self, work: Coroutine[Any, Any, T], before: tuple[int, int]) -> T:
        """What the controller answers; ClientError as soon as another leads: a machine that is gone never answers."""
        quorum = self.services.quorum
        asking = self._loop.create_task(work)
        moving = self._loop.create_task(
            self.services.metadata.until(lambda: before != (quorum.leader_id, quorum.epoch) and quorum.leader_id >= 0)
        )
        try:
            await asyncio.wait((asking, moving), return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
            raise NotConnected("another controller leads")
        finally:
            asking.cancel()
            moving.cancel()

    async def next_controller(self, before: tuple[int, int]) -> None:
        """A moment, or less if another leads meanwhile than the `before` (id, epoch)."""
        quorum = self.services.quorum
        try:
            async with asyncio.timeout(limits.CONTROLLER_RETRY_MS / 1000):
                await self.services.metadata.until(lambda: before != (quorum.leader_id, quorum.epoch))
        except TimeoutError:
            return

    async def _ask_here(self, request: Request, timeout_ms: int) -> Any:
        key = type(request).key
        high = SERVED_TO_CONTROLLERS[key][1]
        route = dispatch.controller_route(key, high)
        assert route is not None, "the table has it"
        context = Context(self.services, Peer("", _HERE, _HERE, controller=True))
        context.request_version = high
        answer: Any = route.handler(request, context)
        if isinstance(answer, Awaitable):
            try:
                async with asyncio.timeout(timeout_ms / 1000):
                    answer = await answer
            except TimeoutError:
                raise RequestTimedOut(f"{type(request).name} was not committed in time") from None
        if answer is FAILED:
            raise ClientError(f"{type(request).name} failed")
        return answer.response if isinstance(answer, Large) else answer

    def create_topics(self, topics: tuple[NewTopic, ...]) -> Later[list[TopicOutcome]]:
        """What became of them, once this node knows of those that were made."""
        from ottla.server.quorum.topic_creation import create_topics

        return create_topics(self, topics)

    def create_missing(self, topics: Iterable[NewTopic]) -> None:
        """Has topics created that somebody asked for, and does not wait for them."""
        self._missing_topics.create(topics)

    @cached_property
    def _missing_topics(self) -> MissingTopics:
        from ottla.server.quorum.topic_creation import MissingTopics

        return MissingTopics(self)

    # --- tasks

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Runs until it ends or the node stops."""
        task: asyncio.Task[Any] = self._loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("the controller could not be asked", exc_info=error)

    def later(self, work: Coroutine[Any, Any, Any]) -> Later[Any]:
        later: Later[Any] = Later()

        def done(ended: asyncio.Task[Any]) -> None:
            if ended.cancelled() or ended.exception() is not None:
                later.fail()
            else:
                later.set(ended.result())

        self.spawn(work).add_done_callback(done)
        return later

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def is_refused_by_role(answer: Struct) -> bool:
    """Whether an answer says, for all of it or for a part, that this node is not the controller."""
    if getattr(answer, "error_code", 0) == ErrorCode.NOT_CONTROLLER:
        return True
    for field in fields(type(answer)):
        value = getattr(answer, field.name)
        if isinstance(value, list) and value and isinstance(value[0], Struct) and any(map(is_refused_by_role, value)):
            return True
    return False
