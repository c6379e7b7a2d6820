"""ClusterAcls: the cluster's ACLs, read again every few seconds through the registry's own connections.

Rules:
- Brokers without an authorizer say so: then every authenticated client is allowed everything.
- If the ACLs cannot be read for some time, nobody but a super user is allowed anything (`Unavailable`).
- Rules are replaced as a whole, so that one request is decided by one set of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable
from typing import Final

from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.registry.port import Unavailable
from ottla.security.access_rules import AccessRules
from ottla.security.acl_entry import AclEntry
from ottla.security.principal import Principal

log = logging.getLogger(__name__)

_MILLIS: Final = 1_000
_ID_BYTES: Final = 16


class ClusterAcls:
    def __init__(self, cluster: Cluster, super_users: frozenset[str], *, allow_everyone_if_no_acl_found: bool) -> None:
        self._cluster = cluster
        self._super_users = super_users
        self._is_open = allow_everyone_if_no_acl_found
        self._entries: list[AclEntry] = []
        self._rules: AccessRules | None = None  # None: the cluster has no authorizer
        self._read_s: float | None = None  # when the ACLs were read last, by the loop's clock
        self._trouble = "they have not been read yet"
        self._tried = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._running = asyncio.create_task(self._run())

    def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()

    async def rules_for(self, principal: Principal) -> AccessRules | None:
        """Return the rules by which to decide; None if everything is allowed. Raises Unavailable."""
        if str(principal) in self._super_users:
            return None
        if self._read_s is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limits.ACLS_READ_INTERVAL_MS / _MILLIS):
                    await self._tried.wait()
        now_s = asyncio.get_running_loop().time()
        if self._read_s is None or now_s - self._read_s > limits.ACLS_AGE_MS_MAX / _MILLIS:
            raise Unavailable(f"the cluster's ACLs cannot be read: {self._trouble}")
        return self._rules

    async def _run(self) -> None:
        while True:
            began_s = asyncio.get_running_loop().time()
            try:
                await self._read()
                self._read_s = began_s
            except Exception as error:  # of any kind: they must be read again, since nobody is allowed anything before
                trouble = str(error) or type(error).__name__
                if trouble != self._trouble:
                    is_usual = isinstance(error, ApiError | ClientError)
                    log.warning("the cluster's ACLs cannot be read: %s", trouble, exc_info=None if is_usual else error)
                self._trouble = trouble
            self._tried.set()
            await asyncio.sleep(limits.ACLS_READ_INTERVAL_MS / _MILLIS)

    async def _read(self) -> None:
        try:
            entries = await Admin(self._cluster).acls.describe()
        except ApiError as error:
            if error.code != ErrorCode.SECURITY_DISABLED:
                raise
            self._rules, self._entries = None, []
            return
        if self._rules is None or entries != self._entries:
            self._rules = await asyncio.to_thread(self._made, entries)
            self._entries = entries

    def _made(self, entries: Iterable[AclEntry]) -> AccessRules:
        rules = AccessRules(self._super_users, allow_everyone_if_no_acl_found=self._is_open)
        # The ids of entries are not in the brokers' answers, and nothing here needs them but the rules themselves.
        rules.replace_all(each.as_record(number.to_bytes(_ID_BYTES)) for number, each in enumerate(entries))
        return rules
