"""Run a confined query in a process of its own, which ends with whoever waits for the answer.

Nothing else bounds a query surely: not all functions of DuckDB keep to its bound of memory, or can be interrupted.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import pickle
import sys
from collections.abc import AsyncGenerator

from ottla.model import limits
from ottla.sql.task import HEAD_BYTES, FrameKind, SqlFrame, SqlTask, decoded_frame, frame_head

# The processes that run now.
RUNNING: set[int] = set()
_LAST = (FrameKind.DONE, FrameKind.ERROR)
_FAILED = "the query ended too early: it needed more memory than it may use, or it failed"


def is_installed() -> bool:
    """Whether the packages of the extra `sql` are there."""
    return all(importlib.util.find_spec(name) is not None for name in ("duckdb", "pyarrow"))


async def run_task(task: SqlTask, seconds: float) -> AsyncGenerator[SqlFrame, None]:
    """The frames of a query; the last one is DONE or ERROR. Closing the generator ends the process, and so does the end
    of its time, also while nobody takes a frame.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "ottla.sql.child",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=limits.SQL_READ_AHEAD_BYTES,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    loop = asyncio.get_running_loop()
    until_s = loop.time() + seconds
    end = loop.call_at(until_s, _kill, process)
    RUNNING.add(process.pid)
    try:
        content = pickle.dumps(task)
        process.stdin.write(len(content).to_bytes(4, "big") + content)
        last: FrameKind | None = None
        while last not in _LAST:
            frame = await _frame(process.stdout) if loop.time() < until_s else None
            # The end of its time ended the process: what it had answered until then may be only a part of a frame.
            if frame is None or (loop.time() >= until_s and frame.kind not in _LAST[:1]):
                frame = SqlFrame(FrameKind.ERROR, f"the query took longer than {seconds:.0f} s, and was ended")
            last = frame.kind
            yield frame
    finally:
        end.cancel()
        _kill(process)
        RUNNING.discard(process.pid)
        # Also if this task is being cancelled: the process has been killed, and ends at once.
        await asyncio.shield(_ended(process))


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Wait for the end of a process that was killed. It is told only when its output has been read to the end."""
    assert process.stdout is not None
    while await process.stdout.read(limits.SQL_READ_AHEAD_BYTES):
        pass
    await process.wait()


async def _frame(reader: asyncio.StreamReader) -> SqlFrame:
    try:
        kind, size = frame_head(await reader.readexactly(HEAD_BYTES))
        if size > limits.SQL_FRAME_BYTES_MAX:
            return SqlFrame(FrameKind.ERROR, "a row of the answer is too large")
        return decoded_frame(kind, await reader.readexactly(size))
    except asyncio.IncompleteReadError:
        return SqlFrame(FrameKind.ERROR, _FAILED)
