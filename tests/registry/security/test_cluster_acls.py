"""The registry's copy of the cluster's ACLs is read again whatever goes wrong."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from tests.support.waiting import until_async

from ottla.client.cluster import Cluster
from ottla.model import limits
from ottla.registry.port import Unavailable
from ottla.registry.security.cluster_acls import ClusterAcls
from ottla.security.principal import Principal

ALICE = Principal.user("alice")


class _Failing(ClusterAcls):
    """As of a cluster without an authorizer, but with a mistake in the code that reads from it."""

    is_wrong = True

    async def _read(self) -> None:
        if self.is_wrong:
            raise ZeroDivisionError("a mistake")


def test_a_failure_that_nobody_expects_does_not_end_the_reading(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(limits, "ACLS_READ_INTERVAL_MS", 5)

    async def test() -> None:
        acls = _Failing(cast("Cluster", None), frozenset(), allow_everyone_if_no_acl_found=False)
        acls.start()
        try:
            assert await until_async(lambda: _why_not(acls)) == "the cluster's ACLs cannot be read: a mistake"
            acls.is_wrong = False

            async def is_read() -> bool:
                return not await _why_not(acls)

            await until_async(is_read)
            assert await acls.rules_for(ALICE) is None
        finally:
            acls.stop()

    asyncio.run(test())
    (told,) = [each for each in caplog.records if "cannot be read: a mistake" in each.getMessage()]
    assert told.exc_info is not None and told.exc_info[0] is ZeroDivisionError


async def _why_not(acls: ClusterAcls) -> str:
    try:
        await acls.rules_for(ALICE)
    except Unavailable as refused:
        return str(refused)
    return ""
