"""An instance of the registry as a process of its own, which runs until a signal, or until its parent ends.

A reason why it cannot start (the port is taken, the topic is unsuitable) is an exception for the caller to report.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ottla.registry.service import Service, ServiceOptions
from ottla.web.lifetime import die_with_parent, end_of_process, loop_factory


def run(options: ServiceOptions, on_ready: Callable[[Service], None], *, with_parent: bool = False) -> None:
    """Serve until SIGTERM, SIGINT or the end of the parent. Raises OSError, WrongTopic and ElectionRefused."""
    if with_parent:
        die_with_parent()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_serve(options, on_ready, with_parent))


async def _serve(options: ServiceOptions, on_ready: Callable[[Service], None], with_parent: bool) -> None:
    ended = end_of_process(with_parent=with_parent)
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
