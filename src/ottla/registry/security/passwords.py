"""Passwords: ask the cluster's brokers whether a user's password is right.

Rules:
- A broker is asked: a connection with the registry's own TLS settings, and the user's name and password in a SASL
  exchange (SCRAM or PLAIN). So the registry holds no credentials.
- A confirmed password is remembered for a short time, as one salted hash per user; the password itself is not kept. The
  hash is forgotten when a broker refuses that password. A different password, which anybody can send, leaves it.
- If no broker can be asked, the password is neither right nor wrong: `Unavailable` is raised.
- The number of checks at a time, and of those that wait, is bounded, and clients take turns (`web/password_turns.py`).
- Requests of one client with the same user and password share one check.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ottla.client.address import Address
from ottla.client.cluster import Cluster
from ottla.client.connection import Connection
from ottla.client.errors import AuthenticationError, ClientError, LoginPutOff, LoginRefused
from ottla.client.security.conversation import SaslSession
from ottla.client.security.sasl import PLAIN, Sasl
from ottla.client.security.secret import LiteralSecret
from ottla.client.security.security import Security
from ottla.model import limits
from ottla.registry.port import Unavailable
from ottla.web.password_turns import PasswordTurns

log = logging.getLogger(__name__)

MECHANISMS: Final = (PLAIN, "SCRAM-SHA-256", "SCRAM-SHA-512")
_SALT_BYTES: Final = 16
_MILLIS: Final = 1_000


class ConfirmedPasswords:
    """The last password of each user that was confirmed, hashed, for a short time."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._kept: OrderedDict[str, tuple[float, bytes, bytes]] = OrderedDict()  # until when, salt, hash
        self._key = secrets.token_bytes(_SALT_BYTES)

    def has(self, user: str, password: str) -> bool:
        until_s, salt, digest = self._kept.get(user, (0.0, b"", b""))
        return self._now_s() < until_s and hmac.compare_digest(digest, self._hash(salt, password))

    def add(self, user: str, password: str) -> None:
        salt = secrets.token_bytes(_SALT_BYTES)
        self._kept.pop(user, None)
        self._kept[user] = self._now_s() + limits.PASSWORD_CONFIRMED_MS / _MILLIS, salt, self._hash(salt, password)
        while len(self._kept) > limits.PASSWORDS_CONFIRMED_MAX:
            self._kept.popitem(last=False)

    def drop(self, user: str, password: str) -> None:
        """Forget a password that is no longer right; one that was never confirmed changes nothing."""
        if self.has(user, password):
            del self._kept[user]

    def mark(self, password: str) -> bytes:
        """Return a hash that stands for a password in this process, and means nothing outside of it."""
        return self._hash(b"", password)

    def _hash(self, salt: bytes, password: str) -> bytes:
        return hashlib.blake2b(password.encode(), key=self._key, salt=salt).digest()


class PasswordCheck:
    """Asks brokers with the security of `cluster`, which must have SASL or at least a mechanism to use."""

    def __init__(self, cluster: Cluster, mechanism: str) -> None:
        self._cluster = cluster
        self._mechanism = mechanism
        self._confirmed = ConfirmedPasswords(lambda: asyncio.get_running_loop().time())
        self._turns = PasswordTurns()
        self._under_way: dict[tuple[str, str, bytes], asyncio.Task[bool]] = {}  # by address, user and password

    async def confirms(self, user: str, password: str, host: str) -> bool:
        """Return whether the user has this password. Raises Unavailable if no broker can be asked, and TooBusy."""
        if self._confirmed.has(user, password):
            return True
        question = host, user, self._confirmed.mark(password)
        check = self._under_way.get(question)
        if check is None:
            check = self._under_way[question] = asyncio.create_task(self._check(user, password, host))
            check.add_done_callback(lambda done: self._checked(question, done))
        return await asyncio.shield(check)  # cancelling this request leaves the check, for which others may wait

    async def _check(self, user: str, password: str, host: str) -> bool:
        async with self._turns.turn(host, user):
            # A request from another address may have had the same password confirmed meanwhile.
            is_right = self._confirmed.has(user, password) or await self._ask(user, password)
        if is_right:
            self._confirmed.add(user, password)
        else:
            self._confirmed.drop(user, password)
        return is_right

    def _checked(self, question: tuple[str, str, bytes], done: asyncio.Task[bool]) -> None:
        del self._under_way[question]
        if not done.cancelled():
            done.exception()  # asyncio would log it if no request waits any more

    async def _ask(self, user: str, password: str) -> bool:
        sasl = Sasl(self._mechanism, user, LiteralSecret(password))
        if not _is_possible(sasl):
            return False
        failure: ClientError | None = None
        for address in self._addresses()[: limits.PASSWORD_CHECK_BROKERS_MAX]:
            try:
                return await self._ask_one(address, sasl)
            except ClientError as error:
                failure = error
        log.warning("no broker can be asked whether a password is right: %s", failure)
        raise Unavailable("no broker can be asked whether the password is right")

    async def _ask_one(self, address: Address, sasl: Sasl) -> bool:
        options = self._cluster.options
        own = options.known_security or Security()
        connection = await Connection.open(
            address,
            client_id=options.client_id,
            connect_timeout_ms=options.connect_timeout_ms,
            request_timeout_ms=options.request_timeout_ms,
            security=replace(own, sasl=None),
        )
        session = SaslSession(sasl, connection)
        try:
            await session.begin()
            return True
        except LoginPutOff:  # the password is right, but the user's tenant has no connection left
            return True
        except LoginRefused as refused:
            log.info("a client of the registry is not authenticated: %s", refused)
            return False
        finally:
            session.close()
            connection.close()

    def _addresses(self) -> list[Address]:
        known = [each.address for each in self._cluster.metadata.brokers.values()]
        self._cluster.options.rng.shuffle(known)
        return [*known, *self._cluster.options.bootstrap]


def _is_possible(sasl: Sasl) -> bool:
    """Return whether a user can have this name and this password: no broker is asked about what cannot be sent."""
    try:
        sasl.exchange("")
    except AuthenticationError:
        return False
    return True
