"""SaslConnection: a connection of a SASL listener, which serves little until its client has authenticated.

Before that, only ApiVersions, SaslHandshake and SaslAuthenticate are served, frames are small and share little memory
(`unproven_clients.py`), and the client has `limits.AUTHENTICATION_S` seconds. When the identity expires, the client has
to authenticate again before its next request (KIP-368).

After a failure no further request is handled. The connection is closed when all its answers are sent, after
`limits.AUTHENTICATION_S` seconds at the latest: an answer before the failure may wait for very long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ottla.model import limits
from ottla.server.api.api_table import SERVED
from ottla.server.api.context import Context, SaslClient
from ottla.server.api.dispatch import Part, Routes
from ottla.server.api.dispatcher import Dispatcher
from ottla.server.api.security.sasl_answers import authenticate_raw
from ottla.server.loop.request_memory import RequestMemory
from ottla.server.loop.runtime import Runtime
from ottla.server.net.connection import ServerConnection
from ottla.server.net.inbound import InboundBuffer
from ottla.server.net.reply_slot import ReplySlot
from ottla.server.net.unproven_clients import UnprovenClients
from ottla.server.ports.sockets import Socket
from ottla.server.security.authentication import Authentication
from ottla.server.storage.cold_reads import ColdReads
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest

# What is served before authentication; the versions are those of every listener.
_KEYS_BEFORE = (ApiVersionsRequest.key, SaslHandshakeRequest.key, SaslAuthenticateRequest.key)
_ROUTES_BEFORE = Routes({key: SERVED[key] for key in _KEYS_BEFORE})


class SaslConnection(ServerConnection):
    def __init__(
        self,
        sock: Socket,
        runtime: Runtime,
        cold: ColdReads,
        dispatcher: Dispatcher,
        new_context: Callable[[ServerConnection], Context],
        memory: RequestMemory,
        max_frame_bytes: int,
        on_close: Callable[[ServerConnection], None],
        authentication: Authentication,
        unproven: UnprovenClients,
    ) -> None:
        self.authentication = authentication
        self._unproven = unproven
        self._proven_memory = memory
        self._began_s = runtime.loop.time()
        self._max_frame_bytes = max_frame_bytes
        self._all_routes = dispatcher.routes
        self._closes_after_answer = False
        limited = dispatcher._replace(routes=_ROUTES_BEFORE)
        self._first_frame_bytes = min(authentication.max_message_bytes, max_frame_bytes)
        super().__init__(sock, runtime, cold, limited, new_context, unproven.memory, self._first_frame_bytes, on_close)
        unproven.entered(self)
        self._deadline: asyncio.TimerHandle = runtime.loop.call_later(limits.AUTHENTICATION_S, self.close)

    @property
    def sasl(self) -> SaslClient:
        return self

    @property
    def address(self) -> str:
        return self.context.connection.remote_address[0]

    @property
    def age_s(self) -> float:
        return self._loop.time() - self._began_s

    @property
    def is_served(self) -> bool:
        return self.context.holds > 0

    @property
    def frame_holder(self) -> InboundBuffer:
        return self._inbound

    def authenticated(self, lifetime_ms: int) -> None:
        if self.closed:
            return
        self._unproven.left(self)
        self.serve(self._all_routes, self._proven_memory, self._max_frame_bytes)
        self._deadline.cancel()
        if lifetime_ms:
            self._deadline = self._loop.call_later(lifetime_ms / 1000, self._expire)

    def close_after_answer(self) -> None:
        if self.closed or self._closes_after_answer:
            return
        self._closes_after_answer = True
        self.context.hold()  # until the connection is closed
        self._deadline.cancel()
        self._deadline = self._loop.call_later(limits.AUTHENTICATION_S, self.close)

    def close(self) -> None:
        self._deadline.cancel()
        self._unproven.left(self)
        super().close()
        if self._closes_after_answer:
            self._closes_after_answer = False
            self.context.let_go()

    def _expire(self) -> None:
        """Serve little, as before authentication; close the connection unless its client authenticates again."""
        self.serve(_ROUTES_BEFORE, self._proven_memory, self._first_frame_bytes)
        self._deadline = self._loop.call_later(limits.AUTHENTICATION_S, self.close)

    def _handle(self, frame: memoryview) -> None:
        if not self.authentication.expects_raw_message:
            super()._handle(frame)
            return
        route = _ROUTES_BEFORE.find(SaslAuthenticateRequest.key, 0)
        assert route is not None, "it is served before authentication"
        self._wait_for(route, 0, authenticate_raw(bytes(frame), self.context, self))
        self._pin()

    def fill(self, slot: ReplySlot, parts: list[Part]) -> None:
        super().fill(slot, parts)
        self._close_if_sent()

    def _sent_on(self, free: bool) -> None:
        super()._sent_on(free)
        self._close_if_sent()

    def _close_if_sent(self) -> None:
        if self._closes_after_answer and not (self._slots or self._sending.blocked):
            self.close()
