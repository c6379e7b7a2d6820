"""The client's view of a cluster: connections by broker, requests routed and retried, metadata kept fresh.

`Producer`, `Admin` and `RangeReader` are built on one `Cluster`, which several of them may share.

Rules:
- One connection per (broker, purpose). Long polls get their own (`Purpose.FETCH`), because a broker answers a
  connection in order and a waiting fetch would hold up everything behind it. An object that needs a connection for
  itself alone is its own purpose, and closes the connection with `disconnect`.
- A request that any broker may answer is also sent to a second broker if the first one takes long and a repetition
  does no harm.
- A call is repeated within `api_timeout_ms` if it was certainly not applied, or if it is safe to repeat
  (`repeatable`), or if the broker returned a retriable error. Calls that are part of a longer operation use the time
  that the operation has left (`patience`), and have no time-out of their own.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from functools import partial
from typing import TypeVar

from ottla.client.closing import Closing
from ottla.client.connection import Address, Connection
from ottla.client.errors import ClientError, LastingError, LoginPutOff, NotConnected, UnlikeListener, check, error_code
from ottla.client.first_of import first_of
from ottla.client.metadata import Metadata, TopicInfo
from ottla.client.options import ClientOptions, GivenSecurity, options_of
from ottla.client.outcomes import Outcomes
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.message import Request, Response
from ottla.wire.messages.topics.metadata import MetadataRequest, MetadataResponse

R = TypeVar("R", bound=Response)
T = TypeVar("T")

# A broker that has not answered, or not accepted a connection, for so long may be dead: another one is asked as well.
_STAGGER_MS = 1_000
# A client that knows no broker yet gives up after so many hang-ups at the first request.
_HANGUPS_MAX = 3
# The deadline of the operation that this call is part of, by the loop's clock.
_OVER_AT_S: ContextVar[float] = ContextVar("over_at_s", default=math.inf)


class Purpose(Enum):
    """The use of a connection; requests of one purpose share a connection."""

    GENERAL = "general"
    PRODUCE = "produce"
    FETCH = "fetch"


class Cluster(Closing):
    """Connections and metadata of one cluster. Use as `async with Cluster("host:port") as cluster`."""

    def __init__(
        self, bootstrap: str | Sequence[str | Address] | ClientOptions, *, security: GivenSecurity = None
    ) -> None:
        self.options = options_of(bootstrap, security)
        self.metadata = Metadata()
        self._connections: dict[tuple[Address, Hashable], Connection] = {}
        self._opening: dict[tuple[Address, Hashable], asyncio.Task[Connection]] = {}
        self._refreshing: dict[str, asyncio.Task[TopicInfo]] = {}
        self._closed = False
        self._reached = False  # whether any broker ever answered
        self._hangups = 0  # how often a broker hung up as if it wanted another security protocol

    @classmethod
    def of(cls, given: "Cluster | str | Sequence[str | Address] | ClientOptions", security: GivenSecurity) -> "Cluster":
        """Return the cluster that a client's constructor was given, or make it."""
        if not isinstance(given, Cluster):
            return cls(given, security=security)
        if security is not None:
            raise TypeError("security belongs to the Cluster that is shared: pass it to that")
        return given

    async def close(self) -> None:
        """Close every connection; requests in flight fail."""
        self._closed = True
        tasks = [*self._opening.values(), *self._refreshing.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    # --- connections --------------------------------------------------------------------------------------------

    async def connection(self, node_id: int, purpose: Hashable = Purpose.GENERAL) -> Connection:
        """Return the connection to one broker of the cluster, opened when needed."""
        broker = self.metadata.brokers.get(node_id)
        if broker is None:
            await self.refresh()
            broker = self.metadata.brokers.get(node_id)
            if broker is None:
                raise NotConnected(f"broker {node_id} is not in the cluster")
        return await self.connect(broker.address, purpose)

    async def any_connection(self, avoid: Address | None = None) -> Connection:
        """Return a connection to any reachable broker (except `avoid`): an open one, preferably without requests in
        flight; else the first that opens to a known broker or a bootstrap address.
        """
        open_ones = [
            connection
            for (address, purpose), connection in self._connections.items()
            if purpose is Purpose.GENERAL and connection.is_open and address != avoid
        ]
        if open_ones:
            return min(open_ones, key=lambda each: each.in_flight)
        known = [broker.address for broker in self.metadata.brokers.values()]
        self.options.rng.shuffle(known)
        addresses = [each for each in dict.fromkeys([*known, *self.options.bootstrap]) if each != avoid]
        if not addresses:
            raise NotConnected(f"there is no broker but {avoid}")
        return await first_of([partial(self.connect, each, Purpose.GENERAL) for each in addresses], _STAGGER_MS)

    async def connect(self, address: Address, purpose: Hashable) -> Connection:
        """Return the connection to an address for one purpose, opened when needed."""
        key = (address, purpose)
        connection = self._connections.get(key)
        if connection is not None and connection.is_open:
            return connection
        if self._closed:
            raise NotConnected("the client is closed")
        opening = self._opening.get(key)
        if opening is None:
            opening = self._opening[key] = asyncio.create_task(self._open(key))
            opening.add_done_callback(_ignore_result)
        # Shielded: if one caller is cancelled, the others that wait for the same connection must still get it.
        return await asyncio.shield(opening)

    async def _open(self, key: tuple[Address, Hashable]) -> Connection:
        try:
            connection = await Connection.open(
                key[0],
                client_id=self.options.client_id,
                connect_timeout_ms=self.options.connect_timeout_ms,
                request_timeout_ms=self.options.request_timeout_ms,
                max_response_bytes=self.options.max_response_bytes,
                security=self.options.known_security,
            )
            self._connections[key] = connection
            self._reached = True
            return connection
        finally:
            del self._opening[key]

    def disconnect(self, purpose: Hashable) -> None:
        """Close the connections of one purpose; requests in flight on them fail."""
        for key in [each for each in self._opening if each[1] is purpose]:
            self._opening[key].cancel()
        for key in [each for each in self._connections if each[1] is purpose]:
            self._connections.pop(key).close()

    # --- requests -----------------------------------------------------------------------------------------------

    async def call(
        self,
        message: Request[R],
        *,
        node_id: int | None = None,
        timeout_ms: int | None = None,
        repeatable: bool = True,
        error_of: Callable[[R], int] | None = None,
    ) -> R:
        """Send a request to one broker (default: any broker) and return the answer, with retries where they are
        allowed.

        `error_of` finds the error code in the answer that decides whether to retry; the caller checks all other errors
        in the answer.
        """

        async def ask(connection: Connection) -> R:
            reply = await connection.request(message, timeout_ms=timeout_ms)
            if error_of is not None and error_code(error_of(reply)).retriable:
                check(error_of(reply))
            return reply

        async def attempt() -> R:
            if node_id is not None:
                return await ask(await self.connection(node_id))
            first = await self.any_connection()
            if not repeatable:
                return await ask(first)

            async def ask_another() -> R:
                return await ask(await self.any_connection(avoid=first.address))

            return await first_of([lambda: ask(first), ask_another], _STAGGER_MS)

        return await self.retry(attempt, repeatable=repeatable)

    async def ask_leader(self, node_id: int, topics: Iterable[str], message: Request[R]) -> R:
        """Send a request once to the broker that led these topics; if it does not answer, mark their metadata as
        stale.
        """
        try:
            return await (await self.connection(node_id)).request(message)
        except ClientError:
            for topic in topics:
                self.metadata.mark_stale(topic)
            raise

    async def retry(self, attempt: Callable[[], Awaitable[T]], *, repeatable: bool = True, seeking: bool = False) -> T:
        """Run `attempt` until it succeeds, fails for good, or `api_timeout_ms` is over; `seeking`: the failure may be
        an election in progress, which does not take long, so retry sooner.

        If no broker of the cluster was ever reached, fail at once: a wrong address, or a wrong security protocol, is
        likelier than a broker that starts late.
        """
        tries = 0
        with self.patience() as over_at_s:
            while True:
                try:
                    return await attempt()
                except (ClientError, ApiError) as error:
                    self._hangups += isinstance(error, UnlikeListener)
                    if not self.passes(error, repeatable=repeatable):
                        raise
                    failure = error
                tries += 1
                wait_s = (self.options.seeking_ms(tries) if seeking else self.options.backoff_ms(tries)) / 1000
                if asyncio.get_running_loop().time() + wait_s >= over_at_s:
                    raise failure
                await asyncio.sleep(wait_s)

    @contextmanager
    def patience(self) -> Iterator[float]:
        """Give the deadline (by the loop's clock) for retries inside the block: `api_timeout_ms` from now, or the
        deadline of the operation that the block is part of.
        """
        own_s = asyncio.get_running_loop().time() + self.options.api_timeout_ms / 1000
        over_at_s = min(own_s, _OVER_AT_S.get())
        before = _OVER_AT_S.set(over_at_s)
        try:
            yield over_at_s
        finally:
            _OVER_AT_S.reset(before)

    def passes(self, error: Exception, *, repeatable: bool = True) -> bool:
        """Return whether another attempt may succeed after this error; a request that is not `repeatable` must not be
        sent again if it may have been applied.
        """
        if isinstance(error, ApiError):
            return error.code.retriable and not isinstance(error, Absent)
        if not isinstance(error, ClientError) or isinstance(error, LastingError):
            return False
        if isinstance(error, UnlikeListener) and self._hangups >= _HANGUPS_MAX and not self.metadata.brokers:
            return False  # wrong security settings are likelier than a broker that crashes each time
        is_reached = self._reached or isinstance(error, LoginPutOff)
        return is_reached and not self._closed and (repeatable or not error.maybe_applied)

    # --- metadata -----------------------------------------------------------------------------------------------

    async def refresh(
        self, topics: Iterable[str] | None = (), *, auto_create: bool = False
    ) -> tuple[MetadataResponse, dict[str, ErrorCode]]:
        """Request metadata of the brokers and the named topics (None: all topics); return the
        errors of single topics.
        """
        wanted = None if topics is None else [MetadataRequest.Topic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=auto_create)
        answer = await self.call(request)
        check(answer.error_code)
        return answer, self.metadata.update(answer, asyncio.get_running_loop().time())

    def fresh_topic(self, name: str) -> TopicInfo | None:
        """Return the cached metadata of the topic; None if it is stale or too old and has to be requested again."""
        known = self.metadata.fresh(name)
        age_max_s = self.options.metadata_max_age_ms / 1000
        if known is None or asyncio.get_running_loop().time() - known.fetched_at_s >= age_max_s:
            return None
        return known

    async def topic(self, name: str, *, auto_create: bool = False) -> TopicInfo:
        """Return the topic's metadata, from the cache while it is fresh; wait while a new topic gets its leaders."""
        known = self.fresh_topic(name)
        if known is not None:
            return known
        asking = self._refreshing.get(name)
        if asking is None:
            asking = self._refreshing[name] = asyncio.create_task(self._ask_for_topic(name, auto_create))
            asking.add_done_callback(_ignore_result)
        return await asyncio.shield(asking)

    async def _ask_for_topic(self, name: str, auto_create: bool) -> TopicInfo:
        _OVER_AT_S.set(math.inf)  # several operations may wait for this request: it has its own time-out

        async def attempt() -> TopicInfo:
            _, errors = await self.refresh([name], auto_create=auto_create)
            return self._told_of(name, errors, is_coming=auto_create)

        try:
            return await self.retry(attempt, seeking=True)
        finally:
            del self._refreshing[name]

    async def topics(self, names: Iterable[str]) -> Outcomes[str, TopicInfo]:
        """Return the metadata of each topic. One request asks for all that are not fresh; transient errors are not
        retried.
        """
        outcomes: Outcomes[str, TopicInfo] = Outcomes()
        asked: list[str] = []
        for name in names:
            known = self.fresh_topic(name)
            if known is None:
                asked.append(name)
            else:
                outcomes.found[name] = known
        if not asked:
            return outcomes
        try:
            _, errors = await self.refresh(asked)
        except (ClientError, ApiError) as error:
            outcomes.failed.update(dict.fromkeys(asked, error))
            return outcomes
        for name in asked:
            try:
                outcomes.found[name] = self._told_of(name, errors)
            except ApiError as error:
                outcomes.failed[name] = error
        return outcomes

    def _told_of(self, name: str, errors: Mapping[str, ErrorCode], *, is_coming: bool = False) -> TopicInfo:
        """Return a topic's metadata from the last answer, or raise its error; `is_coming`: the
        topic is being created.
        """
        code = errors.get(name, ErrorCode.NONE)
        is_coming = is_coming or self.metadata.is_new(name, asyncio.get_running_loop().time())
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not is_coming:
            # Retriable in Kafka's table (a broker may lag behind); but it is useless to wait a minute for a topic that
            # is not being created.
            raise Absent(code, f"there is no topic {name!r}")
        check(code)
        found = self.metadata.topics.get(name)
        if found is None or not found.partitions:
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"topic {name!r} has no partitions yet")
        return found

    async def leader(self, partition: TopicPartition, *, auto_create: bool = False) -> tuple[int, int]:
        """Return (node id, leader epoch) of the partition's leader; raise LEADER_NOT_AVAILABLE while it has none."""
        topic = await self.topic(partition.topic, auto_create=auto_create)
        try:
            return topic.leader(partition.partition)
        except ApiError:
            self.metadata.mark_stale(partition.topic)
            raise


class Absent(ApiError):
    """UNKNOWN_TOPIC_OR_PARTITION for a topic or partition that is not being created: a retry does not help."""


def _ignore_result(task: "asyncio.Task[object]") -> None:
    """Mark the task's exception as retrieved: a caller that awaits the task gets it, and else it does not matter."""
    if not task.cancelled():
        task.exception()
