"""Ask a run to stop, or to start its queries again: each on a page of its own that says what will happen."""

from __future__ import annotations

from ottla.console.answers import Page, Redirect
from ottla.console.call import PageCall
from ottla.console.html import Content, path_to, tag
from ottla.console.pages.pipelines.desk import desk_of
from ottla.console.pages.pipelines.words import mood_of
from ottla.console.parts.forms import form, hidden
from ottla.console.parts.words import badge, card, facts, notice, told
from ottla.console.routing import action, page
from ottla.spark.pipelines.status import LIVE, Board

_STOP = (
    "The run finishes the batches that are running, for a minute at most, and ends. Its checkpoints stay: the next run "
    "goes on from there. The console cannot start it again: that is done where it runs, with `ottla pipeline run`."
)
_RESTART = (
    "The run finishes the batches that are running, stops its queries, and starts them again from their checkpoints. "
    "Its process and its Spark session stay, and the file is not read again."
)


@page("/pipelines/{name}/stop")
async def stop_page(call: PageCall) -> Page:
    return await _asking(call, "Stop", "stop", _STOP, is_dangerous=True)


@action("/pipelines/{name}/stop")
async def stop(call: PageCall) -> Redirect:
    name = call.params["name"]
    await desk_of(call.access).ask(name, call.text("run"), Board.ask_to_stop)
    return Redirect(path_to("pipelines", name), done=f"Pipeline {name} was asked to stop")


@page("/pipelines/{name}/restart")
async def restart_page(call: PageCall) -> Page:
    return await _asking(call, "Restart", "restart", _RESTART, is_dangerous=False)


@action("/pipelines/{name}/restart")
async def restart(call: PageCall) -> Redirect:
    name = call.params["name"]
    await desk_of(call.access).ask(name, call.text("run"), Board.ask_to_restart)
    return Redirect(path_to("pipelines", name), done=f"Pipeline {name} was asked to start its queries again")


async def _asking(call: PageCall, title: str, what: str, text: str, *, is_dangerous: bool) -> Page:
    name = call.params["name"]
    status = await desk_of(call.access).status(name)
    if status.state in LIVE:
        entry: Content = form(
            call, path_to("pipelines", name, what), hidden("run", status.run), submit=title, is_dangerous=is_dangerous
        )
    else:
        entry = notice(["the pipeline does not run: it is ", told(status.state)], "fair")
    queries = ", ".join(str(each["query"]) for each in status.queries[:20]) or "none yet"
    known = facts(
        [
            ("state", badge(told(status.state), mood_of(status))),
            ("queries", told(queries)),
            ("runs on", [told(status.host), f", process {status.pid}"]),
        ]
    )
    trail = (("Pipelines", "/pipelines"), (name, path_to("pipelines", name)))
    return Page(f"{title} pipeline", card(told(name), known, tag("p", text), entry), trail)
