"""Requests to other brokers, and the batching of questions to the same broker into one request.

A broker answers the requests of one connection in order, and some of these requests wait for replicas: so every purpose
has its own connection.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from typing import Generic, NamedTuple, TypeVar

from ottla.client.errors import ClientError
from ottla.cluster.state import ClusterState
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.loop.current_span import OpenSpan, WorkingFor, current_span
from ottla.server.loop.later import Later, settled
from ottla.server.peers.peers import Peers, broker_address
from ottla.wire.message import Request, Response

log = logging.getLogger(__name__)

T = TypeVar("T")
KeyT = TypeVar("KeyT", bound=Hashable)
ItemT = TypeVar("ItemT")
QuestionT = TypeVar("QuestionT")
ResponseT = TypeVar("ResponseT", bound=Response)
AnswerT = TypeVar("AnswerT")
_BUG = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
_LEFT_OUT = ApiError(ErrorCode.NETWORK_EXCEPTION, "the answer leaves this out")


class PeerRequests:
    """Sends requests to other brokers by their node id, over the inter-broker listener."""

    def __init__(self, peers: Peers, state: Callable[[], ClusterState], inter_broker_listener: str) -> None:
        self._peers = peers
        self._state = state
        self._listener = inter_broker_listener
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, node_id: int, request: Request[ResponseT], purpose: str) -> Later[ResponseT | ApiError]:
        """Return the broker's answer. An ApiError is set as a value: NETWORK_EXCEPTION if the broker does
        not answer.
        """
        later: Later[ResponseT | ApiError] = Later()
        address = broker_address(self._state(), node_id, self._listener)
        if address is None:
            later.set(ApiError(ErrorCode.NETWORK_EXCEPTION, f"the address of node {node_id} is not known"))
            return later

        async def asked() -> None:
            answer: ResponseT | ApiError
            try:
                answer = await self._peers.ask(
                    address, request, timeout_ms=limits.COORDINATOR_REQUEST_MS, purpose=purpose
                )
            except ClientError as error:
                answer = ApiError(ErrorCode.NETWORK_EXCEPTION, str(error))
            except Exception:  # a bug: the caller must not wait for ever
                log.exception("node %d could not be asked", node_id)
                answer = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
            give(later, answer)

        task = asyncio.get_running_loop().create_task(asked())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return later

    def close(self) -> None:
        """Cancel all requests under way."""
        for task in tuple(self._tasks):
            task.cancel()


def give(later: Later[T], answer: T) -> None:
    """Set an answer. An exception of its callback is logged, so that the other questions of the request get their
    answers.
    """
    try:
        later.set(answer)
    except Exception:
        log.exception("an answer of another node could not be given")


class Outbox(Generic[KeyT, ItemT]):
    """A queue per key (a node, say), with one request per key under way; items that arrive meanwhile go with the next
    request.

    `send(key, items)` sets its answer when all items are handled; if it raises, the items of that request are dropped.
    Items with the same `identity` go in separate requests, one after the other.
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
        self._queues: dict[KeyT, deque[ItemT]] = {}  # a key is present while a request of it is under way

    def put(self, key: KeyT, item: ItemT) -> None:
        queue = self._queues.get(key)
        if queue is None:
            self._queues[key] = deque([item])
            asyncio.get_running_loop().call_soon(self._next, key)  # together with other items of this turn of the loop
        else:
            queue.append(item)

    def waiting(self, key: KeyT) -> int:
        """Return how many items wait for the request that is under way."""
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
        try:
            sent = self._send(key, list(batch.values()))
        except Exception:  # a bug: the items that wait for the next request must not wait for ever
            log.exception("a request to another node could not be made")
            asyncio.get_running_loop().call_soon(self._next, key)
        else:
            sent.then(lambda _: self._next(key), lambda: self._next(key))


class _Asked(NamedTuple, Generic[QuestionT, AnswerT]):
    question: QuestionT
    later: Later[AnswerT]
    span: OpenSpan | None  # of the request that the question is for


class PeerQuestions(ABC, Generic[KeyT, QuestionT, ResponseT, AnswerT]):
    """Questions to other nodes that are sent together: one request per key at a time, with all questions that wait for
    it.

    A subclass defines the request, and which part of the response answers which question.
    """

    purpose: str

    def __init__(self, requests: PeerRequests) -> None:
        self._requests = requests
        self._outbox: Outbox[KeyT, _Asked[QuestionT, AnswerT]] = Outbox(
            self._send, lambda asked: self.identity(asked.question)
        )

    @abstractmethod
    def node_of(self, key: KeyT) -> int:
        """Return the node to ask."""

    @abstractmethod
    def identity(self, question: QuestionT) -> Hashable:
        """Return the name of the question in the response; a request contains each identity once."""

    @abstractmethod
    def request(self, key: KeyT, questions: list[QuestionT]) -> Request[ResponseT]:
        """Return the request with all of these questions."""

    @abstractmethod
    def answers(self, key: KeyT, response: ResponseT) -> Mapping[Hashable, AnswerT] | ApiError:
        """Return the answers by identity, or the error of the whole response."""

    @abstractmethod
    def refused(self, question: QuestionT, error: ApiError) -> AnswerT:
        """Return the answer to a question that the node did not answer."""

    def ask(self, key: KeyT, question: QuestionT) -> Later[AnswerT]:
        later: Later[AnswerT] = Later()
        self._outbox.put(key, _Asked(question, later, current_span()))
        return later

    def _send(self, key: KeyT, items: list[_Asked[QuestionT, AnswerT]]) -> Later[None]:
        try:
            request = self.request(key, [each.question for each in items])
        except Exception:  # a bug: the callers must not wait for ever
            log.exception("a request to another node could not be made")
            for question, later, _ in items:
                give(later, self.refused(question, _BUG))
            return settled(None)

        def settle(response: ResponseT | ApiError) -> None:
            answers = response if isinstance(response, ApiError) else self._read(key, response)
            for question, later, _ in items:
                if isinstance(answers, ApiError):
                    answer = self.refused(question, answers)
                elif (identity := self.identity(question)) in answers:
                    answer = answers[identity]
                else:
                    answer = self.refused(question, _LEFT_OUT)
                give(later, answer)

        # One request for several is a part of one trace: the first.
        with WorkingFor(next((each.span for each in items if each.span is not None), None)):
            return self._requests.ask(self.node_of(key), request, self.purpose).map(settle)

    def _read(self, key: KeyT, response: ResponseT) -> Mapping[Hashable, AnswerT] | ApiError:
        try:
            return self.answers(key, response)
        except Exception:  # a bug, here or of the other node: the callers must not wait for ever
            log.exception("an answer of another node could not be read")
            return _BUG
