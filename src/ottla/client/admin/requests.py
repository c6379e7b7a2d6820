"""The requests of one client, as brokers see them while somebody asks. Only Ottla's brokers tell them (ADR 0054)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from ottla.client.checks import checked_name
from ottla.client.cluster import Cluster
from ottla.client.errors import UnsupportedApi, check, error_code
from ottla.client.outcomes import Outcomes, outcomes_of
from ottla.model.errors import ErrorCode
from ottla.wire.api import API_NAMES
from ottla.wire.messages.cluster.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.cluster.ottla_describe_requests import (
    OttlaDescribeRequestsRequest,
    OttlaDescribeRequestsResponse,
)

T = TypeVar("T")
_NEEDS_OTTLA = "the requests of a client are told by Ottla only: this broker tells none"


class ClientRequest(NamedTuple):
    """One request, as its broker saw it. Times are in milliseconds, as Kafka names them: queue is until the handling
    began, local until the handler returned, remote until the answer was ready. `outcome` is empty if it was answered.
    """

    at_ms: int
    node_id: int
    api: str
    version: int
    client_id: str
    principal: str
    host: str
    size_bytes: int
    queue_ms: float
    local_ms: float
    remote_ms: float
    is_forwarded: bool
    errors: tuple[ErrorCode, ...]
    outcome: str

    @property
    def total_ms(self) -> float:
        return self.queue_ms + self.local_ms + self.remote_ms


@dataclass(frozen=True, slots=True)
class ClientRequests:
    """What one broker saw of a client: the latest requests, the oldest first, and how many there were since then."""

    node_id: int
    since_ms: int
    count: int
    requests: tuple[ClientRequest, ...]


class ConnectedClient(NamedTuple):
    """A client that is connected to a broker."""

    client_id: str
    principal: str
    connections: int


class RequestAdmin:
    """What clients ask of the brokers. A broker watches a client's requests from the first time that they are asked
    for until some seconds after the last time.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def of(self, client_id: str | None = None, *, principal: str | None = None) -> list[ClientRequests]:
        """Return what every broker saw of a client, named by its client id, by its principal (`User:alice`), or both.

        Raises UnsupportedApi if the brokers are not Ottla's.
        """
        return [*(await self.of_each(client_id, principal=principal)).all().values()]

    async def of_each(
        self, client_id: str | None = None, *, principal: str | None = None
    ) -> Outcomes[int, ClientRequests]:
        """Return the same by broker; a broker that cannot be reached has a failed outcome."""
        if client_id is None and principal is None:
            raise ValueError("name the client by its client id or its principal")
        request = OttlaDescribeRequestsRequest(
            client_id=client_id,
            principal=None if principal is None else checked_name(principal, "a principal"),
        )
        return await self._each(lambda node_id: self._asked(node_id, request, _seen))

    async def clients(self) -> list[ConnectedClient]:
        """Return the clients that are connected to any broker."""
        return [each for found in (await self.clients_each()).all().values() for each in found]

    async def clients_each(self) -> Outcomes[int, list[ConnectedClient]]:
        """Return the clients by broker; of very many connections not all are told."""
        request = OttlaDescribeRequestsRequest()
        return await self._each(lambda node_id: self._asked(node_id, request, _clients))

    async def _each(self, ask: Callable[[int], Awaitable[T]]) -> Outcomes[int, T]:
        described = await self._cluster.call(
            DescribeClusterRequest(include_cluster_authorized_operations=False), error_of=lambda each: each.error_code
        )
        check(described.error_code, described.error_message)
        await self._cluster.refresh()
        return await outcomes_of({each.broker_id: ask(each.broker_id) for each in described.brokers})

    async def _asked(
        self,
        node_id: int,
        request: OttlaDescribeRequestsRequest,
        read: Callable[[int, OttlaDescribeRequestsResponse], T],
    ) -> T:
        try:
            answer = await self._cluster.call(request, node_id=node_id)
        except UnsupportedApi as error:
            raise UnsupportedApi(_NEEDS_OTTLA) from error
        check(answer.error_code, answer.error_message)
        return read(node_id, answer)


def _seen(node_id: int, answer: OttlaDescribeRequestsResponse) -> ClientRequests:
    requests = [
        ClientRequest(
            each.at_ms,
            node_id,
            API_NAMES.get(each.request_api_key, str(each.request_api_key)),
            each.request_api_version,
            each.client_id,
            each.principal,
            each.host,
            each.size_bytes,
            each.queue_us / 1000,
            each.local_us / 1000,
            each.remote_us / 1000,
            each.is_forwarded,
            tuple(map(error_code, each.error_codes)),
            each.outcome,
        )
        for each in answer.requests
    ]
    return ClientRequests(node_id, answer.since_ms, answer.request_count, tuple(requests))


def _clients(_: int, answer: OttlaDescribeRequestsResponse) -> list[ConnectedClient]:
    return [ConnectedClient(each.client_id, each.principal, each.connections) for each in answer.clients]
