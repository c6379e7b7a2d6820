"""Run the work of an `ottla cluster` command with an admin client; Ctrl-C and SIGTERM interrupt it without harm."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import typer

from ottla.cli.options import client_options

if TYPE_CHECKING:
    from ottla.client.admin import Admin

T = TypeVar("T")
_INTERRUPTED, _TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM


def run(bootstrap: str, work: Callable[[Admin], Awaitable[T]]) -> T:
    from ottla.client.admin import Admin

    async def main() -> T:
        if threading.current_thread() is threading.main_thread():
            task = asyncio.current_task()
            assert task is not None
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        async with Admin(client_options(bootstrap)) as admin:
            return await work(admin)

    try:
        return asyncio.run(main())
    except (KeyboardInterrupt, asyncio.CancelledError) as stopped:
        from ottla.cli.terminal.output import note

        note("Interrupted: what has begun goes on by itself; the same command goes on with the rest.")
        raise typer.Exit(_INTERRUPTED if isinstance(stopped, KeyboardInterrupt) else _TERMINATED) from None
