"""The coordinator of one group, transactional id or share partition: looked up, cached, called, looked up again.

Rules:
- Each `Coordinator` has a connection of its own. A broker answers a connection in order and holds some answers back
  (JoinGroup waits for the other members), so two members that shared one would wait for each other. Only callers that
  send no such requests, and use many keys, may use the shared connection.
- The coordinator's address is forgotten when the broker says that it is not the coordinator (any more), and when the
  connection is lost; the next attempt sends FindCoordinator again.
- Attempts are repeated as `Cluster.retry` does, within `api_timeout_ms` of the cluster's options.
"""

import asyncio
from collections.abc import Callable, Hashable
from enum import IntEnum
from typing import TypeVar

from ottla.client.checks import checked_name
from ottla.client.cluster import Cluster, Purpose
from ottla.client.connection import Address, Connection
from ottla.client.errors import ClientError, UnsupportedApi, check, error_code
from ottla.model.errors import ApiError, ErrorCode
from ottla.wire.message import Request, Response
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest

R = TypeVar("R", bound=Response)

_MANY_KEYS_SINCE = FindCoordinatorRequest.since("coordinator_keys")
# The end of a transaction is written in the background; a request that comes too early for the next one has to wait
# only for a moment.
_CONCURRENT_WAIT_MS, _CONCURRENT_WAITS = 20, 10
_MOVED = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)


class CoordinatorKind(IntEnum):
    """The kind of key that is coordinated; FindCoordinator's key type."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


# The first version of FindCoordinator that supports the kind; share coordinators came without a new field (KIP-932).
_SINCE = {
    CoordinatorKind.GROUP: 0,
    CoordinatorKind.TRANSACTION: FindCoordinatorRequest.since("key_type"),
    CoordinatorKind.SHARE: 6,
}

_KEYS = {
    CoordinatorKind.GROUP: "the id of a group",
    CoordinatorKind.TRANSACTION: "the transactional id",
    CoordinatorKind.SHARE: "the key of a share partition",
}


class Coordinator:
    """Finds the broker that coordinates `key`, and sends requests to it."""

    def __init__(self, cluster: Cluster, key: str, kind: CoordinatorKind, *, shared: bool = False) -> None:
        self.key = checked_name(key, _KEYS[kind])
        self.kind = kind
        self._cluster = cluster
        self._purpose: Hashable = Purpose.GENERAL if shared else self
        self._address: Address | None = None

    def close(self) -> None:
        """Close the connection (unless it is shared); requests in flight fail."""
        if self._purpose is self:
            self._cluster.disconnect(self)

    def forget(self) -> None:
        """Forget the coordinator's address, so that the next call looks it up again."""
        self._address = None

    async def call(
        self,
        request: Request[R],
        *,
        error_of: Callable[[R], int] | None = None,
        timeout_ms: int | None = None,
        repeatable: bool = True,
        at_most: int | None = None,
        again: Callable[[], Request[R]] | None = None,
    ) -> R:
        """Send a request to the coordinator and return its answer, with retries where they are allowed.

        `again` makes the request of a repeated attempt, where it differs: the coordinator may have processed the first
        one, and its lost answer may have said what it does not say a second time.

        `error_of` finds the error code that decides whether to retry (retriable errors are not returned); any other
        error is left in the answer for the caller to check. `at_most` bounds the request's version.
        """

        asked = False

        async def ask() -> tuple[R, ErrorCode]:
            nonlocal asked
            connection = await self.connection()
            message = again() if asked and again is not None else request
            version = connection.version_of(type(message), at_most=at_most)
            asked = True
            reply = await connection.request(message, version=version, timeout_ms=timeout_ms)
            return reply, error_code(error_of(reply)) if error_of is not None else ErrorCode.NONE

        async def attempt() -> R:
            try:
                reply, code = await ask()
                for _ in range(_CONCURRENT_WAITS):
                    if code != ErrorCode.CONCURRENT_TRANSACTIONS:
                        break
                    await asyncio.sleep(_CONCURRENT_WAIT_MS / 1000)
                    reply, code = await ask()
            except ClientError:
                self.forget()
                raise
            if code in _MOVED:
                self.forget()
            if code.retriable:
                raise ApiError(code)
            return reply

        return await self._cluster.retry(attempt, repeatable=repeatable, seeking=True)

    async def connection(self) -> Connection:
        """Return an open connection to the coordinator, which is looked up if it is not known. Does not retry."""
        if self._address is None:
            self._address = await self._find()
        return await self._cluster.connect(self._address, self._purpose)

    async def _find(self) -> Address:
        connection = await self._cluster.any_connection()
        version = connection.version_of(FindCoordinatorRequest)
        if version < _SINCE[self.kind]:
            raise UnsupportedApi(f"{connection.address} cannot find coordinators of {self.kind.name.lower()}s")
        request = FindCoordinatorRequest(key=self.key, key_type=int(self.kind), coordinator_keys=[self.key])
        answer = await connection.request(request, version=version)
        if version < _MANY_KEYS_SINCE:
            check(answer.error_code, answer.error_message)
            return Address(answer.host, answer.port)
        for found in answer.coordinators:
            if found.key == self.key:
                check(found.error_code, found.error_message)
                return Address(found.host, found.port)
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the answer does not name a coordinator of {self.key!r}")


async def call_once(
    cluster: Cluster,
    key: str,
    kind: CoordinatorKind,
    request: Request[R],
    error_of: Callable[[R], int],
) -> R:
    """Send one request to a coordinator that is not needed afterwards."""
    return await Coordinator(cluster, key, kind, shared=True).call(request, error_of=error_of)
