"""Charge: what one request costs its client: its bytes, its time on the event loop, and the wait that follows.

The time of a request is that of its handler, also of one that works in slices, and of sending the answer
(`ClientQuotas.timed`). It counts whenever it is spent; the client waits when it is answered, if its quota is exceeded
by then.
"""

from __future__ import annotations

from collections.abc import Awaitable
from copy import copy
from typing import TYPE_CHECKING, Protocol, TypeVar, cast, runtime_checkable

from ottla.security.acls import AclOperation
from ottla.security.quotas.client_rates import ClientRates
from ottla.server.loop.later import NO_ANSWER, Answer, Large, Later, Sliced
from ottla.server.loop.runtime import Runtime
from ottla.server.quotas.metered_steps import MeteredSteps
from ottla.server.quotas.throttle_counts import ThrottleCounts
from ottla.server.quotas.throttled_client import Mute, ThrottledClient
from ottla.wire.message import Request, Response
from ottla.wire.messages.records.fetch import FetchRequest

if TYPE_CHECKING:
    from ottla.wire.messages.shares.share_fetch import ShareFetchResponse

T = TypeVar("T")

_PRODUCE, _SHARE_FETCH = "Produce", "ShareFetch"
# Requests of a client that has not authenticated yet.
_BEFORE_AUTHENTICATION = frozenset({"SaslHandshake", "SaslAuthenticate"})
# Requests that only other brokers send, to listeners of clients.
_OF_BROKERS = frozenset(
    {
        "WriteTxnMarkers",
        "InitializeShareGroupState",
        "ReadShareGroupState",
        "ReadShareGroupStateSummary",
        "WriteShareGroupState",
        "DeleteShareGroupState",
    }
)


def is_exempt(request: Request[Response], client: ThrottledClient) -> bool:
    """Return whether a request is never throttled, because it comes from another broker or from a client that has not
    authenticated yet.

    With an authorizer, a broker is who has CLUSTER_ACTION: a client whose request is refused for lack of it is charged.
    """
    if is_of_broker(request):
        decisions = client.decisions
        return decisions is None or decisions.allows_on_cluster(AclOperation.CLUSTER_ACTION)
    return type(request).name in _BEFORE_AUTHENTICATION


def is_of_broker(request: Request[Response]) -> bool:
    """Return whether a request is one that only brokers may send."""
    if isinstance(request, FetchRequest):
        return request.replica_id >= 0 or request.replica_state.replica_id >= 0
    return type(request).name in _OF_BROKERS


@runtime_checkable
class PassedOn(Protocol):
    """An encoded answer of another node, which may tell the client to wait."""

    def throttle(self, throttle_ms: int) -> int:
        """Tell the client to wait for at least this long; return how long it is told to wait."""


class Charge:
    __slots__ = (
        "_begun_s",
        "_client",
        "_client_id",
        "_fetched",
        "_produced",
        "_request",
        "_runtime",
        "_size_bytes",
        "_throttles",
        "_time",
        "_user",
    )

    def __init__(
        self,
        client: ThrottledClient,
        request: Request[Response],
        size_bytes: int,
        runtime: Runtime,
        produced: ClientRates,
        fetched: ClientRates,
        time: ClientRates,
        throttles: ThrottleCounts,
    ) -> None:
        """`size_bytes` is the size of the request; the client is read now, because its next request may change it."""
        self._client = client
        self._user = client.principal.name
        self._client_id = client.client_id
        self._request = request
        self._size_bytes = size_bytes
        self._runtime = runtime
        self._produced = produced
        self._fetched = fetched
        self._time = time
        self._throttles = throttles
        self._begun_s = runtime.clock_s()

    def settled(self, answer: Answer[T]) -> Answer[T]:
        """Return the handler's answer with the wait of its client, now or when it is known."""
        self._spent(self._runtime.clock_s() - self._begun_s)
        if answer is None:
            self._settle(NO_ANSWER)
            return None
        if isinstance(answer, Later):
            return answer.map(self._settle)
        if isinstance(answer, Sliced):
            return Sliced(self._settled_later(answer.making), changes=answer.changes)
        if isinstance(answer, Awaitable):
            return self._settled_later(answer)
        return self._settle(answer)

    async def _settled_later(self, answer: Awaitable[T]) -> T:
        return self._settle(await MeteredSteps(answer, self._runtime.clock_s, self._spent))

    def _spent(self, seconds: float) -> None:
        if self._time:
            self._time.record(self._user, self._client_id, seconds * 100, self._runtime.steady_ms())

    def _settle(self, reply: T) -> T:
        """Return what the client is answered, and mute it if it has to wait."""
        throttle_ms = self._throttle_ms(reply)
        if isinstance(reply, PassedOn):
            throttle_ms = reply.throttle(throttle_ms)
        if throttle_ms <= 0:
            return reply
        self._throttles.note(type(self._request).name, throttle_ms)
        Mute(self._client, throttle_ms, self._runtime.loop)
        if isinstance(reply, Large):
            return cast("T", Large(_told(reply.response, throttle_ms)))
        return cast("T", _told(reply, throttle_ms)) if isinstance(reply, Response) else reply

    def _throttle_ms(self, reply: object) -> int:
        """Count the bytes of a request that is about to be answered; return how long its client has to wait."""
        response = reply.response if isinstance(reply, Large) else reply
        told_ms: int = getattr(response, "throttle_time_ms", 0)  # the handler has asked a quota of its own
        request, user, client_id = self._request, self._user, self._client_id
        if isinstance(request, FetchRequest) and not is_of_broker(request):
            return told_ms  # by `FetchQuota`
        name, now_ms = type(request).name, self._runtime.steady_ms()
        if name == _PRODUCE:
            self._produced.record(user, client_id, self._size_bytes, now_ms)
            told_ms = max(told_ms, self._produced.throttle_ms(user, client_id, now_ms))
        elif name == _SHARE_FETCH:
            self._fetched.record(user, client_id, _records_bytes(cast("ShareFetchResponse", response)), now_ms)
            told_ms = max(told_ms, self._fetched.throttle_ms(user, client_id, now_ms))
        if reply is NO_ANSWER:
            return told_ms  # as with Kafka, acks=0 is exempt from the quota on time
        return max(told_ms, self._time.throttle_ms(user, client_id, now_ms))


def _told(response: Response, throttle_ms: int) -> Response:
    """Return a copy of the response, which may be shared, with this wait."""
    if not hasattr(response, "throttle_time_ms"):
        return response
    told = copy(response)
    told.throttle_time_ms = throttle_ms
    return told


def _records_bytes(response: ShareFetchResponse) -> int:
    return sum(len(data.records or b"") for topic in response.responses for data in topic.partitions)
