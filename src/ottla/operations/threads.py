"""Threads for work that blocks. Each kind of work has a bounded number of its own, so that a registry that is slow, for
example, keeps neither the decoding of records nor the event loop's own threads (names of hosts) from going on. All
clusters and users of a process share them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from functools import partial
from typing import ParamSpec, TypeVar

from ottla.model import limits

A = ParamSpec("A")
T = TypeVar("T")


class BlockingWork(Enum):
    """What the threads are for."""

    registry = "registry"  # requests to the schema registry
    nodes = "nodes"  # what is asked of nodes outside of Kafka's protocol: metrics, certificates
    board = "board"  # the status of pipelines
    decoding = "decoding"  # of records
    examining = "examining"  # the checks of the doctor
    rows = "rows"  # looking through very many


_THREADS = {
    BlockingWork.registry: ThreadPoolExecutor(limits.CONSOLE_REGISTRY_THREADS, "registry"),
    BlockingWork.nodes: ThreadPoolExecutor(limits.CONSOLE_NODE_THREADS, "nodes"),
    BlockingWork.board: ThreadPoolExecutor(limits.CONSOLE_BOARD_THREADS, "board"),
    BlockingWork.decoding: ThreadPoolExecutor(limits.CONSOLE_DECODING_THREADS, "decoding"),
    BlockingWork.examining: ThreadPoolExecutor(limits.CONSOLE_EXAMINING_THREADS, "examining"),
    BlockingWork.rows: ThreadPoolExecutor(limits.CONSOLE_ROWS_THREADS, "rows"),
}


async def in_thread(kind: BlockingWork, do: Callable[A, T], *args: A.args, **kwargs: A.kwargs) -> T:
    """Call a function in a thread of its kind. Cancelled before a thread is free, the call is dropped."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS[kind], partial(do, *args, **kwargs))
