"""Work of `ottla cluster` on one admin client, which Ctrl-C may interrupt without harm."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import typer

from ottla.cli.options import client_options

if TYPE_CHECKING:
    from ottla.client.admin import Admin

T = TypeVar("T")
_INTERRUPTED = 130


def run(bootstrap: str, work: Callable[[Admin], Awaitable[T]]) -> T:
    from ottla.client.admin import Admin

    async def main() -> T:
        async with Admin(client_options(bootstrap)) as admin:
            return await work(admin)

    try:
        return asyncio.run(main())
    except KeyboardInterrupt:
        from ottla.cli.output import note

        note("Interrupted: what has begun goes on by itself; the same command goes on with the rest.")
        raise typer.Exit(_INTERRUPTED) from None
