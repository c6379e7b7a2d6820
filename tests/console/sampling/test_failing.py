"""What is told while the cluster, or its groups, cannot be looked at."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from ottla.client.errors import NotConnected
from ottla.console.access import Access
from ottla.console.options import ConsoleOptions
from ottla.console.pages.groups import history as lags
from ottla.console.sampling import health, history
from ottla.console.sampling.health import ClusterHealth
from ottla.console.sampling.history import ClusterHistory
from ottla.model import limits

IN_CONSOLE = "an error in the console; its log says more"


@asynccontextmanager
async def opened(port: int = 1) -> AsyncIterator[Access]:
    access = Access(ConsoleOptions(f"127.0.0.1:{port}"))
    try:
        yield access
    finally:
        await access.close()


def test_each_visitor_gets_an_error_of_its_own() -> None:
    async def visit() -> None:
        async with opened() as access:
            raised = []
            for _ in range(2):
                with pytest.raises(NotConnected) as told:
                    await ClusterHistory.of(access).look()
                raised.append(told.value)
            first, second = raised
            assert (str(first), first is second) == (str(second), False)
            assert isinstance(first.__cause__, NotConnected), "it has the traceback of the sampling"

    asyncio.run(visit())


def test_the_failure_of_a_former_run_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def visit(place: socket.socket) -> None:
        async with opened(place.getsockname()[1]) as access:
            looked = ClusterHistory.of(access)
            with pytest.raises(NotConnected):
                await looked.look()
            looked.close()
            await asyncio.sleep(0)
            assert not looked.is_sampling
            place.listen()  # connects, and never answers
            monkeypatch.setattr(history, "_FIRST_S", 0.2)
            await looked.look()
            assert looked.is_sampling and looked.now is None

    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        asyncio.run(visit(place))


@pytest.mark.parametrize(
    ("error", "told", "is_logged"),
    [(TimeoutError(), "no answer came in time", False), (PermissionError(13, "no"), IN_CONSOLE, True)],
)
def test_health_and_lag_tell_why_there_is_none(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception, told: str, is_logged: bool
) -> None:
    async def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(health, "_examined", fail)
    monkeypatch.setattr(lags, "_positions", fail)
    monkeypatch.setattr(limits, "CONSOLE_LAG_EVERY_S", 0.01)

    async def visit() -> None:
        async with opened() as access:
            examined = ClusterHealth.of(access)
            await examined.look()
            assert examined.failure == told
            series = lags.LagHistories.of(access).look("shop", "classic")
            while len(series.points) < 3:
                assert series.task is not None and not series.task.done(), "sampling goes on"
                await asyncio.sleep(0.01)
            assert series.problem == told

    asyncio.run(visit())
    logged = {each.name for each in caplog.records if each.levelno == logging.ERROR}
    assert logged == ({health.__name__, lags.__name__} if is_logged else set())
