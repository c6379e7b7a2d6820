"""Forwarding: an instance that does not lead sends a change to the leader.

Rules:
- The group names the leader, and any client that may join the group can influence that. So nothing is sent to an
  address that was not announced as the leader's in the registry's own topic (`LeaderEntry`), unless this instance was
  configured to trust it (`peers`). A leader announces itself as soon as it is elected (see `store`).
- A request that surely did not arrive is repeated; one that may have arrived is repeated only if that does no harm,
  which is true for all but DELETE (its second answer would be that there is nothing to delete).
- If this instance is elected meanwhile, it processes the request itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.registry.forward import (
    SENT_ON,
    ForwardedCall,
    ForwardedReply,
    NotForwarded,
    RegistryForwarding,
    StrangeAnswer,
)
from ottla.registry.leader import RegistryElection
from ottla.registry.port import ForwardFailed, LeadsNow, NotLeader
from ottla.registry.security.caller import caller_of
from ottla.registry.security.instances import Instances, target_of

if TYPE_CHECKING:
    from starlette.requests import Request

log = logging.getLogger(__name__)

_UNSETTLED = (50003, 50004)  # the error codes of an instance that is not, or not yet, the leader


class Following:
    """Forwards requests to the leader. `is_announced` returns whether the topic has an address as the leader's."""

    def __init__(
        self,
        election: RegistryElection,
        is_announced: Callable[[str], bool],
        peers: tuple[str, ...],
        timeout_ms: int,
        backoff_ms: Callable[[int], float],
        instances: Instances,
    ) -> None:
        self._election = election
        self._is_announced = is_announced
        self._peers = peers
        self._timeout_ms = timeout_ms
        self._backoff_ms = backoff_ms
        self._forwarding = RegistryForwarding(instances)

    async def forward(self, request: Request) -> ForwardedReply:
        """Return the leader's answer. Raises ForwardFailed, NotLeader(None), LeadsNow."""
        headers = {name: value for name, value in request.headers.items() if name in SENT_ON}
        call = ForwardedCall(request.method, target_of(request), headers, await request.body(), caller_of(request))
        try:
            return await self._ask(call, asyncio.get_running_loop().time() + 2 * self._timeout_ms / 1000)
        except StrangeAnswer as strange:
            raise ForwardFailed(str(strange)) from None

    def _why(self) -> str:
        """Return why no leader answered in time: none answered, or the elected one has not announced itself."""
        leader = self._election.verdict.leader
        if leader is None or self._may_ask(leader.url):
            return "no leader answered in time"
        return f"the group names {leader.url}, which has not announced itself in the registry's topic"

    def _may_ask(self, url: str) -> bool:
        return self._is_announced(url) or url in self._peers

    async def _ask(self, call: ForwardedCall, until_s: float) -> ForwardedReply:
        """Send the request to the leader, and again while the leader is not settled."""
        clock_s, tries, doubt = asyncio.get_running_loop().time, 0, ""
        while (left_s := until_s - clock_s()) > 0:
            verdict = self._election.verdict
            if verdict.leader is None:
                await self._wait_for_leader(verdict.number)
                continue
            if verdict.is_self:
                raise LeadsNow
            url = verdict.leader.url
            try:
                if self._may_ask(url) and url != self._election.identity.url:
                    reply = await self._forwarding.send(url, call, timeout_s=left_s)
                    if not _is_unsettled(reply):
                        return reply
            except NotForwarded as error:
                log.info("%s", error)
                if error.maybe_applied:
                    doubt = f"{error}, and may have carried it out"
                    if call.method == "DELETE":
                        break
            tries += 1
            await asyncio.sleep(min(self._backoff_ms(tries) / 1000, max(until_s - clock_s(), 0)))
        raise ForwardFailed(doubt or self._why())

    async def _wait_for_leader(self, number: int) -> None:
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                await self._election.changed(number)
        except TimeoutError:
            raise NotLeader(None) from None


def _is_unsettled(reply: ForwardedReply) -> bool:
    return reply.status == 500 and any(b'"error_code":%d' % code in reply.body for code in _UNSETTLED)
