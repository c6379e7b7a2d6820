"""An instance of the registry as a process of its own, which runs until a signal, or until its parent ends.

Rules:
- `with_parent`: the process ends when its standard input does, and on Linux at the latest by the kernel's parent-death
  signal, so that a killed `ottla up` leaves nothing behind.
- A reason why it cannot start (the port is taken, the topic is unsuitable) is an exception for the caller to report.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable

from ottla.registry.service import Service, ServiceOptions

_PR_SET_PDEATHSIG = 1


def run(options: ServiceOptions, on_ready: Callable[[Service], None], *, with_parent: bool = False) -> None:
    """Serve until SIGTERM, SIGINT or the end of the parent. Raises OSError, WrongTopic and ElectionRefused."""
    if with_parent:
        _die_with_parent()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(options, on_ready, with_parent))


async def _serve(options: ServiceOptions, on_ready: Callable[[Service], None], with_parent: bool) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    if with_parent:
        loop.add_reader(sys.stdin.fileno(), _read_on, ended)
    service = Service(options)
    await service.start()
    ending = asyncio.create_task(ended.wait())
    loading = asyncio.create_task(service.loaded())
    refused = asyncio.create_task(service.refused())
    try:
        await asyncio.wait([ending, loading, refused], return_when=asyncio.FIRST_COMPLETED)
        if loading.done() and not refused.done():
            loading.result()
            on_ready(service)
            await asyncio.wait([ending, refused], return_when=asyncio.FIRST_COMPLETED)
        if refused.done():
            refused.result()
    finally:
        for task in (ending, loading, refused):
            task.cancel()
        await service.stop()


def _read_on(ended: asyncio.Event) -> None:
    """Read and discard standard input; set the event when it has ended."""
    if not os.read(sys.stdin.fileno(), 1024):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        ended.set()


def _die_with_parent() -> None:
    if sys.platform.startswith("linux"):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
