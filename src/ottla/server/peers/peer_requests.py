"""Asking other brokers what this node does not lead itself; and gathering what goes to the same one.

A broker answers one connection in order, and what is asked here may have to wait for replicas: every purpose has its
own connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ottla.client.errors import ClientError
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.loop.later import Later
from ottla.server.peers.peers import broker_address
from ottla.wire.message import Request

if TYPE_CHECKING:
    from ottla.server.api.context import Services

log = logging.getLogger(__name__)

KeyT = TypeVar("KeyT", bound=Hashable)
ItemT = TypeVar("ItemT")


def ask(services: Services, node_id: int, request: Request, purpose: str) -> Later[Any]:
    """The answer of another broker; an ApiError arrives as a value, NETWORK_EXCEPTION where there is no answer."""
    later: Later[Any] = Later()
    address = broker_address(services.metadata.state, node_id, services.inter_broker_listener)
    peers = services.peers
    if address is None:
        later.set(ApiError(ErrorCode.NETWORK_EXCEPTION, f"nobody knows where node {node_id} is"))
        return later

    async def asked() -> None:
        try:
            answer = await peers.ask(address, request, timeout_ms=limits.COORDINATOR_REQUEST_MS, purpose=purpose)
        except ClientError as error:
            answer = ApiError(ErrorCode.NETWORK_EXCEPTION, str(error))
        except Exception:  # a mistake of ours: whoever waits must not wait for ever
            log.exception("node %d could not be asked", node_id)
            answer = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        give(later, answer)

    tasks = services.coordination.tasks
    task = asyncio.get_running_loop().create_task(asked())
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return later


def give(later: Later[Any], answer: Any) -> None:
    """Whoever cannot take an answer hurts nobody else who waits."""
    try:
        later.set(answer)
    except Exception:
        log.exception("an answer of another node could not be given")


class Outbox(Generic[KeyT, ItemT]):
    """For each key (a node, say) one request is under way; what comes meanwhile goes with the next.

    `send(key, items)` sets its answer when all of them are dealt with. Items of which `identity` is the same go one
    after the other.
    """

    def __init__(
        self,
        send: Callable[[KeyT, list[ItemT]], Later[None]],
        identity: Callable[[ItemT], Hashable],
        items_max: int = limits.OUTBOX_ITEMS_MAX,
    ) -> None:
        self._send = send
        self._identity = identity
        self._items_max = items_max
        self._queues: dict[KeyT, deque[ItemT]] = {}  # also those of which all are under way

    def put(self, key: KeyT, item: ItemT) -> None:
        queue = self._queues.get(key)
        if queue is None:
            self._queues[key] = deque([item])
            asyncio.get_running_loop().call_soon(self._next, key)  # with whatever else comes in this turn
        else:
            queue.append(item)

    def waiting(self, key: KeyT) -> int:
        """How many have to wait for the request that is under way."""
        return len(self._queues.get(key, ()))

    def _next(self, key: KeyT) -> None:
        queue = self._queues[key]
        if not queue:
            del self._queues[key]
            return
        batch: dict[Hashable, ItemT] = {}
        left: deque[ItemT] = deque()
        while queue and len(batch) < self._items_max:
            item = queue.popleft()
            if batch.setdefault(self._identity(item), item) is not item:
                left.append(item)
        left.extend(queue)
        self._queues[key] = left
        self._send(key, list(batch.values())).then(lambda _: self._next(key))
