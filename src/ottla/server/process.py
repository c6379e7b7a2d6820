"""A node as a process, which runs until it is told to stop.

A broker of a cluster whose disks have all failed is useless; Kafka's process exits. Here it leaves the cluster, waits
until a disk is writable again (an operator made room), and starts again as after any other crash.
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
    """Run a node until SIGTERM or SIGINT; return after a clean stop."""

    async def serve() -> None:
        raise_descriptor_limit()
        tell = on_ready
        while True:
            has_lost_disks = await _run_node(values, tell, on_recovery)
            if not has_lost_disks or not await _becomes_writable(values):
                return
            tell = _back

    ended = keep_short()
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(serve())
    finally:
        ended()


async def _run_node(values: Mapping[str, str], on_ready: Callable[[Node], None], on_recovery: Watch | None) -> bool:
    """Run the node until it stops; return whether it stopped because all of its disks failed."""
    node = Node(values, system_ports(values), on_recovery)
    # A start may wait for other nodes without limit: it must be possible to stop it meanwhile.
    starting = asyncio.create_task(node.start())
    told = False

    def end() -> None:
        nonlocal told
        told = True
        # A signal during the start may be handled only after it: cancelling would have no effect then.
        if not starting.cancel():
            node.request_stop()

    _on_signals(end)
    try:
        await starting
    except asyncio.CancelledError:
        if told:
            return False
        raise  # cancelled without a signal: the process must not exit as if all were well
    # Objects made by the start live as long as the node: garbage collections need not visit them.
    gc.freeze()
    on_ready(node)
    await node.stopped()
    return node.storage_lost


async def _becomes_writable(values: Mapping[str, str]) -> bool:
    """Wait until a disk is writable again (True), or the process is told to stop (False)."""
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
    """Return uvloop's factory if uvloop is installed."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
