"""A node as a process."""

import asyncio
import os
import signal
from typing import NoReturn

import pytest

from ottla.server import process
from ottla.server.node import Node


def never_ready(_: Node) -> NoReturn:
    raise AssertionError("it never started")


def test_a_signal_ends_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    async def start(_: Node) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()

    monkeypatch.setattr(Node, "start", start)
    process.run({}, never_ready)


def test_a_start_that_is_cancelled_from_inside_is_no_clean_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def start(_: Node) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(Node, "start", start)
    with pytest.raises(asyncio.CancelledError):
        process.run({}, never_ready)
