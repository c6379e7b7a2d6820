"""`ottla top`: look at a cluster again and again."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, one_of, with_admin

if TYPE_CHECKING:
    from ottla.cli.top.screen import TopScreen
    from ottla.client.admin import Admin
    from ottla.operations.sampling.sample import TopSample, TopSampler

_PANEL = "Nodes"
_SECONDS_MAX = 3_600
_VIEWS = ("brokers", "topics", "groups", "requests")


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel=_PANEL)(top)


def top(
    view: Annotated[
        str, typer.Option("--view", "-v", help=f"One of {', '.join(_VIEWS)}.", callback=one_of(*_VIEWS))
    ] = "brokers",
    sort: Annotated[str | None, typer.Option("--sort", "-s", help="Sort by this column.", show_default=False)] = None,
    pattern: Annotated[
        str, typer.Option("--filter", "-f", help="Only what has this in its name; *, ? and [] are wildcards.")
    ] = "",
    interval: Annotated[
        float, typer.Option("--interval", "-i", min=0.1, max=_SECONDS_MAX, help="Seconds between two looks.")
    ] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Show one table and end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON for each look.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Watch a cluster: brokers, topics, groups or requests, with rates, until `q` or Ctrl-C.

    Keys: `b`, `t`, `g`, `r` choose what is shown, `s` the column to sort by, `/` a filter. Without a terminal one
    table is printed. Topics and groups of a real Kafka are shown, too; only nodes with ottla.metrics.listener tell what
    brokers and requests do.
    """
    from ottla.cli.profile.chosen import security
    from ottla.cli.top.layout import COLUMNS
    from ottla.cli.top.screen import TopScreen
    from ottla.operations.sampling.sample import TopSampler, TopView

    chosen = TopView(view)
    if sort is not None and sort not in COLUMNS[chosen]:
        raise typer.BadParameter(f"{view} have no column {sort!r}: {', '.join(COLUMNS[chosen])}", param_hint="--sort")
    screen = TopScreen(chosen, sort, pattern)

    async def work(admin: Admin) -> None:
        sampler = TopSampler(admin, security())
        if as_json or once or not (sys.stdin.isatty() and sys.stdout.isatty()):
            await _print(screen, sampler, interval, as_json=as_json, once=once or not as_json)
        else:
            await _watch(screen, sampler, interval)

    with suppress(KeyboardInterrupt, asyncio.CancelledError):
        with_admin(bootstrap, work)


async def _print(screen: TopScreen, sampler: TopSampler, interval: float, *, as_json: bool, once: bool) -> None:
    from ottla.cli.terminal.outlet import stop_when_unread

    stop_when_unread()
    before = await sampler.take(screen.view)
    while True:
        await asyncio.sleep(interval)
        now = await sampler.take(screen.view)
        if as_json:
            screen.print_json(before, now)
            sys.stdout.flush()
        else:
            screen.print_once(before, now)
        if once:
            return
        before = now


async def _watch(screen: TopScreen, sampler: TopSampler, interval: float) -> None:
    """Draw the screen after each look and each key. A look that takes long does not hold up the keys."""
    from rich.live import Live

    from ottla.cli.terminal.output import out
    from ottla.cli.top.keys import pressed_keys

    before = now = await sampler.take(screen.view)
    with pressed_keys() as keys, Live(console=out(), auto_refresh=False, screen=True) as live:
        look: asyncio.Task[TopSample] | None = None
        while not screen.is_over:
            live.update(screen.drawn(before, now), refresh=True)
            look = look or asyncio.create_task(_later(screen, sampler, interval))
            key = asyncio.create_task(keys.get())
            await asyncio.wait((look, key), return_when=asyncio.FIRST_COMPLETED)
            if not key.done():
                key.cancel()
            elif screen.press(key.result()):
                await _ended(look)
                look = asyncio.create_task(sampler.take(screen.view))
                before = now = await _found(look, now)
                look = None
            if look is not None and look.done():
                before, now = now, await _found(look, now)
                look = None
        if look is not None:
            await _ended(look)


async def _later(screen: TopScreen, sampler: TopSampler, interval: float) -> TopSample:
    await asyncio.sleep(interval)
    return await sampler.take(screen.view)


async def _found(look: asyncio.Task[TopSample], last: TopSample) -> TopSample:
    """Return what a look found; the last one, with the reason, if no broker answers just now."""
    from ottla.client.errors import ClientError
    from ottla.model.errors import ApiError
    from ottla.operations.failures import message_of

    try:
        return await look
    except (ClientError, ApiError, OSError) as error:
        return replace(last, missing=(f"no look was possible: {message_of(error)}",))


async def _ended(task: asyncio.Task[TopSample]) -> None:
    task.cancel()
    await asyncio.wait((task,))
