"""A node as a process: it runs until it is told to stop.

A broker of a cluster whose disks have all failed is of no use to anybody; Kafka's ends itself. Here it leaves the
cluster, waits until a disk works again (somebody made room), and comes back as after any other crash.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress

from ottla.model import limits
from ottla.server.loop.garbage_collector import keep_short
from ottla.server.node import Node
from ottla.server.ports.ports import system_ports
from ottla.server.ports.system import is_writable, raise_descriptor_limit
from ottla.server.settings.configs import Configs
from ottla.server.storage.recovery import Watch

log = logging.getLogger(__name__)


def run(values: Mapping[str, str], on_ready: Callable[[Node], None], on_recovery: Watch | None = None) -> None:
    """Runs a node until SIGTERM or SIGINT; returns after a clean stop."""

    async def serve() -> None:
        raise_descriptor_limit()
        tell = on_ready
        while await _loses_its_disks(values, tell, on_recovery) and await _becomes_writable(values):
            tell = _back

    ended = keep_short()
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(serve())
    finally:
        ended()


async def _loses_its_disks(
    values: Mapping[str, str], on_ready: Callable[[Node], None], on_recovery: Watch | None
) -> bool:
    """One life of the node, and whether that is how it ended."""
    node = Node(values, system_ports(values), on_recovery)
    # A node may wait for others for as long as they are not there: it can be told to stop meanwhile.
    starting = asyncio.create_task(node.start())
    told = False

    def end() -> None:
        nonlocal told
        told = True
        # A signal that came during the start may be heard only after it: cancelling would then stop nothing.
        if not starting.cancel():
            node.request_stop()

    _on_signals(end)
    try:
        await starting
    except asyncio.CancelledError:
        if told:
            return False
        raise  # nobody asked for that: a node must not end as if all were well
    # What a start leaves behind lives as long as the node: no collection needs to look at it again.
    gc.freeze()
    on_ready(node)
    await node.stopped()
    return node.storage_lost


async def _becomes_writable(values: Mapping[str, str]) -> bool:
    """Until somebody made room, or told the process to stop."""
    told = asyncio.Event()
    _on_signals(told.set)
    paths = Configs(values).log_dirs()
    while not told.is_set():
        for path in paths:
            if await asyncio.to_thread(is_writable, path):
                return True
        with suppress(TimeoutError):
            await asyncio.wait_for(told.wait(), limits.DISK_PROBE_INTERVAL_MS / 1000)
    return False


def _on_signals(react: Callable[[], object]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, react)


def _back(_: Node) -> None:
    log.info("a data directory works again, and so does the node")


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's where it can be had."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
