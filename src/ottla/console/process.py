"""The console as a process of its own, which runs until a signal, or until its parent ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ottla.console.options import ConsoleOptions
from ottla.console.service import ConsoleService
from ottla.web.lifetime import die_with_parent, end_of_process, loop_factory


def run(options: ConsoleOptions, on_ready: Callable[[ConsoleService], None], *, with_parent: bool = False) -> None:
    """Serve until SIGTERM, SIGINT or the end of the parent. Raises OSError if it cannot listen."""
    if with_parent:
        die_with_parent()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_serve(options, on_ready, with_parent))


async def _serve(options: ConsoleOptions, on_ready: Callable[[ConsoleService], None], with_parent: bool) -> None:
    ended = end_of_process(with_parent=with_parent)
    service = ConsoleService(options)
    await service.start()
    try:
        on_ready(service)
        await ended.wait()
    finally:
        await service.stop()
