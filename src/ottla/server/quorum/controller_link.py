"""ControllerLink: this node's requests to the active controller, on whichever node it is.

If this node is the active controller, a request goes to its handler without a socket; otherwise it goes to the
controller listener of the quorum's leader. If a controller cannot be reached, or answers NOT_CONTROLLER, the request is
sent to the next leader, until the timeout. `reach` is the one loop that does this.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from ottla.client.address import Address
from ottla.client.errors import ClientError, NotConnected, RequestTimedOut
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import LeaderEpoch
from ottla.server.peers.peers import Peers
from ottla.server.quorum.active_controller import ActiveController
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.quorum.not_controller import NotController
from ottla.server.quorum.quorum import Quorum
from ottla.wire.message import Request, Response

T = TypeVar("T")
ResponseT = TypeVar("ResponseT", bound=Response)


class HandleHere(Protocol):
    def __call__(self, request: Request[ResponseT], /) -> Awaitable[ResponseT | NotController]:
        """Handle a request of this node as its own controller; raise ClientError if that failed."""
        ...


# Sends a request to the node at an address within some milliseconds.
Send: TypeAlias = Callable[[Peers, Address, int], Awaitable[ResponseT | NotController]]


class HasErrorCode(Protocol):
    """A response with an error code for the whole request."""

    error_code: int


class _Leader(NamedTuple):
    """The leader of the quorum (-1 if unknown) and its epoch."""

    id: int
    epoch: LeaderEpoch


def error_of_whole(response: HasErrorCode) -> Iterable[int]:
    """Return the error codes of a response that has one for the whole request."""
    return (response.error_code,)


class ControllerLink:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        quorum: Quorum,
        metadata: MetadataHost,
        controller: ActiveController,
        peers: Peers,
        handle_here: HandleHere,
    ) -> None:
        self._loop = loop
        self._quorum = quorum
        self._metadata = metadata
        self._controller = controller
        self._peers = peers
        self._handle_here = handle_here

    async def ask(
        self,
        request: Request[ResponseT],
        *,
        errors: Callable[[ResponseT], Iterable[int]],
        timeout_ms: int = limits.CONTROLLER_ANSWER_MS,
        send: Send[ResponseT] | None = None,
    ) -> ResponseT:
        """Return the response of the active controller; raise `RequestTimedOut` if there was none in time.

        `send` sends the request to another node, if it is not sent as it is.

        `errors` lists the error codes of a response (often `error_of_whole`): if NOT_CONTROLLER is among them, the next
        controller is asked. The caller handles all other errors.
        """
        name = type(request).name

        async def here(left_ms: int) -> ResponseT | NotController:
            return await within(left_ms, self._handle_here(request), f"{name} was not committed in time")

        async def there(address: Address, left_ms: int) -> ResponseT | NotController:
            if send is not None:
                return await send(self._peers, address, left_ms)
            response = await self._peers.ask(address, request, timeout_ms=left_ms, purpose="controller", patient=False)
            return NotController() if ErrorCode.NOT_CONTROLLER in errors(response) else response

        return await self.reach(here, there, name=name, timeout_ms=timeout_ms)

    async def reach(
        self,
        here: Callable[[int], Awaitable[T | NotController]],
        there: Callable[[Address, int], Coroutine[object, None, T | NotController]],
        *,
        name: str,
        timeout_ms: int,
    ) -> T:
        """Return the first outcome that is not `NotController`: of `here` if this node is the active controller, else
        of `there` with the controller's address. Both get the number of milliseconds that are left.

        A ClientError leads to the next attempt; raise `RequestTimedOut` if there was no outcome in time.
        """
        deadline_s = self._loop.time() + timeout_ms / 1000
        why: object = ""
        while (left_ms := int((deadline_s - self._loop.time()) * 1000)) > 0:
            leader = self._leader()
            try:
                outcome = await self._attempt(here, there, leader, left_ms)
                if not isinstance(outcome, NotController):
                    return outcome
                why = "the node that was asked is not the controller"
            except ClientError as error:
                why = error
            await self._next_leader(leader, deadline_s)
        raise RequestTimedOut(f"no answer to {name} within {timeout_ms} ms: {why}")

    async def _attempt(
        self,
        here: Callable[[int], Awaitable[T | NotController]],
        there: Callable[[Address, int], Coroutine[object, None, T | NotController]],
        leader: _Leader,
        left_ms: int,
    ) -> T | NotController:
        if self._controller.active:
            return await here(left_ms)
        address = self._quorum.leader_address()
        if address is None:
            raise NotConnected("no controller is known")
        return await self._unless_moved(there(address, left_ms), leader)

    def _leader(self) -> _Leader:
        return _Leader(self._quorum.leader_id, self._quorum.epoch)

    async def _unless_moved(self, work: Coroutine[object, None, T], leader: _Leader) -> T:
        """Return the controller's answer; raise `NotConnected` as soon as there is another leader, because a dead
        machine never answers.
        """
        asking = self._loop.create_task(work)
        moving = self._loop.create_task(
            self._metadata.until(lambda: self._leader() != leader and self._quorum.leader_id >= 0)
        )
        try:
            await asyncio.wait((asking, moving), return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
            raise NotConnected("another controller leads")
        finally:
            asking.cancel()
            moving.cancel()

    async def _next_leader(self, leader: _Leader, deadline_s: float) -> None:
        """Pause before the next attempt; the pause ends early if the leader changes."""
        pause_s = min(limits.CONTROLLER_RETRY_MS / 1000, deadline_s - self._loop.time())
        try:
            async with asyncio.timeout(pause_s):
                await self._metadata.until(lambda: self._leader() != leader)
        except TimeoutError:
            return


async def within(timeout_ms: int, work: Awaitable[T], otherwise: str) -> T:
    """Return the result of `work`; raise `RequestTimedOut` with the text `otherwise` if it is not known in time."""
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            return await work
    except TimeoutError:
        raise RequestTimedOut(otherwise) from None


def controller_timed_out() -> ApiError:
    """Return the error for a client whose request did not reach an active controller in time."""
    return ApiError(ErrorCode.REQUEST_TIMED_OUT, "The request timed out before the controller could handle it.")
