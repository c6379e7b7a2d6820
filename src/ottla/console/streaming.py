"""Streams: answers that are sent while they are made, such as a search or a file of rows.

Rules:
- A stream is bounded in time. The time counts while a part is made and while it is sent, but only the making of a part
  is interrupted here, so that the interruption reaches the generator that makes it. `sending.py` bounds the rest.
- An error becomes the last part, for the element `failed`. A file has no such place: its connection is cut instead.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TypeVar

from ottla.console.answers import StreamPart
from ottla.console.call import PageCall
from ottla.console.failures import failed_notice, failure_of
from ottla.console.refusals import RefusedRequest
from ottla.model import limits

P = TypeVar("P")


async def timely(parts: AsyncGenerator[P, None]) -> AsyncGenerator[P, None]:
    """The parts that are made in time. Raises RefusedRequest when there is no time left."""
    loop = asyncio.get_running_loop()
    end_s = loop.time() + limits.CONSOLE_STREAM_S
    async with aclosing(parts):
        while True:
            if loop.time() >= end_s:
                raise _too_long()
            try:
                async with asyncio.timeout_at(end_s) as bound:
                    part = await anext(parts)
            except StopAsyncIteration:
                return
            except TimeoutError:
                if bound.expired():
                    raise _too_long() from None
                raise
            yield part


async def lines(parts: AsyncGenerator[StreamPart, None], call: PageCall) -> AsyncGenerator[bytes, None]:
    """Each part as a line of JSON. An error is a last part, for the element `failed`."""
    try:
        async with aclosing(timely(parts)) as in_time:
            async for each in in_time:
                yield _line(each)
    except Exception as error:
        _, sentence, hint = failure_of(error, call)
        yield _line(StreamPart("failed", failed_notice(sentence, hint)))


def _line(part: StreamPart) -> bytes:
    content = {"into": part.into, "html": part.content, "append": part.append}
    return json.dumps(content).encode() + b"\n"


def _too_long() -> RefusedRequest:
    said = f"this was ended after {limits.CONSOLE_STREAM_S} seconds, the longest that it may take"
    return RefusedRequest(503, said, "ask for less: what is shown is what was found in that time")
