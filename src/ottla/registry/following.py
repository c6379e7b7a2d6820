"""What an instance that does not lead does with a change: it hands it to the one that does.

Rules:
- The group says who should lead, and anybody who may join a group can say so. So nothing is sent to an address that has
  not been announced in the registry's own topic as the leader's, by whoever wrote there (`LeaderEntry`), unless this
  instance was told to trust it (`peers`). A leader announces itself as soon as it is elected (see `store`).
- What surely did not arrive is repeated; what may have arrived is repeated only where that does no harm, which is
  everywhere but with DELETE (its second answer would be that there is nothing to delete).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.registry.forward import (
    FORWARD_HEADER,
    SENT_ON,
    ForwardedCall,
    ForwardedReply,
    NotForwarded,
    RegistryForwarding,
    StrangeAnswer,
)
from ottla.registry.leader import RegistryElection
from ottla.registry.port import ForwardFailed, NotLeader

if TYPE_CHECKING:
    from starlette.requests import Request

log = logging.getLogger(__name__)

_UNSETTLED = (50003, 50004)  # what an instance answers that is not, or not yet, the leader


class Following:
    """Requests on their way to the leader. `is_announced` says whether the topic knows an address as the leader's."""

    def __init__(
        self,
        election: RegistryElection,
        is_announced: Callable[[str], bool],
        peers: tuple[str, ...],
        timeout_ms: int,
        backoff_ms: Callable[[int], float],
    ) -> None:
        self._election = election
        self._is_announced = is_announced
        self._peers = peers
        self._timeout_ms = timeout_ms
        self._backoff_ms = backoff_ms
        self._forwarding = RegistryForwarding()

    async def forward(self, request: Request) -> ForwardedReply:
        """The leader's answer. Raises ForwardFailed, NotLeader(None)."""
        if FORWARD_HEADER.lower() in request.headers:
            raise ForwardFailed("this instance is not the leader either")
        query = request.scope["query_string"].decode("ascii")
        target = request.scope["raw_path"].decode("ascii") + (f"?{query}" if query else "")
        headers = {name: value for name, value in request.headers.items() if name in SENT_ON}
        call = ForwardedCall(request.method, target, headers, await request.body())
        try:
            async with asyncio.timeout(2 * self._timeout_ms / 1000):
                return await self._ask(call)
        except TimeoutError:
            raise ForwardFailed(self._why()) from None
        except StrangeAnswer as strange:
            raise ForwardFailed(str(strange)) from None

    def _why(self) -> str:
        """No leader answered in time: because none that is known as one was named?"""
        leader = self._election.verdict.leader
        if leader is None or self._may_ask(leader.url):
            return "no leader answered in time"
        return f"the group names {leader.url}, which has not announced itself in the registry's topic"

    def _may_ask(self, url: str) -> bool:
        return self._is_announced(url) or url in self._peers

    async def _ask(self, call: ForwardedCall) -> ForwardedReply:
        """Ask whoever leads, and again while that is being found out."""
        tries = 0
        while True:
            verdict = self._election.verdict
            if verdict.leader is None:
                await self._wait_for_leader(verdict.number)
                continue
            url = verdict.leader.url
            try:
                if self._may_ask(url) and url != self._election.identity.url:
                    reply = await self._forwarding.send(url, call, timeout_s=2.5 * self._timeout_ms / 1000)
                    if not _is_unsettled(reply):
                        return reply
            except NotForwarded as error:
                if error.maybe_applied and call.method == "DELETE":
                    raise ForwardFailed(str(error)) from None
                log.info("%s", error)
            tries += 1
            await asyncio.sleep(self._backoff_ms(tries) / 1000)

    async def _wait_for_leader(self, number: int) -> None:
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                await self._election.changed(number)
        except TimeoutError:
            raise NotLeader(None) from None


def _is_unsettled(reply: ForwardedReply) -> bool:
    return reply.status == 500 and any(b'"error_code":%d' % code in reply.body for code in _UNSETTLED)
