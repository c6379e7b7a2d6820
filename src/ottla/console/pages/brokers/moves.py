"""Moves under way: how far each is, cancelling them, and the throttle that they may have left."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from ottla.client.admin import Admin
from ottla.client.admin.replicas import Reassignment
from ottla.console.answers import Answer, Fragment, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, path_to, tag
from ottla.console.pages.brokers.moving import ReplicaMoves
from ottla.console.pages.brokers.parts import BROKERS, BY_HAND, MOVES, bar, broker_tabs
from ottla.console.parts.forms import form, hidden
from ottla.console.parts.tables import Column, plain_table
from ottla.console.parts.times import ago
from ottla.console.parts.words import card, link, live, notice, told
from ottla.console.refusals import WrongInput
from ottla.console.routing import action, page
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.operations.cluster.throttle import find, take_off
from ottla.operations.cluster.view import disks
from ottla.operations.formats import size_text

_RENEWED_S = 2


class _MoveUnderWay(NamedTuple):
    move: Reassignment
    copied_bytes: int
    size_bytes: int

    @property
    def at(self) -> TopicPartition:
        return self.move.partition

    @property
    def part(self) -> float:
        return self.copied_bytes / self.size_bytes if self.size_bytes else 1.0


@page("/brokers/moves")
async def moves(call: PageCall) -> Page:
    return Page(
        "Moves of replicas",
        [
            broker_tabs("/brokers/moves"),
            tag("p", link("Move a partition", BY_HAND, class_="button plain")) if call.may_change else None,
            live("/brokers/moves/now", _RENEWED_S, await _content(call)),
            await _throttles(call),
        ],
    )


@page("/brokers/moves/now")
async def moves_now(call: PageCall) -> Fragment:
    return Fragment(await _content(call))


@page("/brokers/moves/cancel")
async def cancel_page(call: PageCall) -> Page:
    wanted = await _wanted(call)
    text = notice("Replicas stay where they were before the move; what was copied so far is deleted.", "fair")
    fields = [hidden("topic", call.query.get("topic", "")), hidden("partition", call.query.get("partition", ""))]
    listed = tag("ul", [tag("li", told(str(each))) for each in wanted[: limits.CONSOLE_LISTED_MOVES]])
    content = form(call, "/brokers/moves/cancel", fields, submit=f"Cancel {_counted(len(wanted))}", is_dangerous=True)
    return Page(
        f"Cancel {_counted(len(wanted))}", [text, card("What is cancelled", listed, content)], trail=(BROKERS, MOVES)
    )


@action("/brokers/moves/cancel")
async def cancel(call: PageCall) -> Answer:
    running = ReplicaMoves.of(call.access)
    if not call.form.get("topic"):
        await running.stopped()  # otherwise it would begin the next ones
    outcomes = await call.admin.replicas.cancel_each(await _wanted(call))
    outcomes.answered()
    over = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    failed = [each for each in outcomes.failed.values() if not (isinstance(each, ApiError) and each.code == over)]
    if failed:
        raise failed[0]
    if not await call.admin.replicas.reassignments():
        await call.access.aside(take_off)
    return Redirect("/brokers/moves", done="cancelled")


@action("/brokers/moves/unthrottle")
async def unthrottle(call: PageCall) -> Answer:
    found = await call.access.aside(take_off)
    text = f"took the throttle off {found}" if found.topics else "nothing had a throttle of ours"
    return Redirect("/brokers/moves", done=text)


async def _wanted(call: PageCall) -> list[TopicPartition]:
    """The partitions whose moves are to be cancelled: the one that is named, or all. Raises WrongInput for none."""
    found = [each.partition for each in await call.admin.replicas.reassignments()]
    if call.text("topic", ""):
        named = TopicPartition(call.text("topic"), call.number("partition"))
        found = [each for each in found if each == named]
    if not found:
        raise WrongInput("nothing of that moves any more")
    return found


async def _content(call: PageCall) -> Content:
    running = ReplicaMoves.of(call.access)
    found = await call.admin.replicas.reassignments()
    shown = await _measured(call.admin, found[: limits.CONSOLE_LISTED_MOVES])
    all_of_them = tag("p", link("Cancel all", "/brokers/moves/cancel")) if found and call.may_change else None
    count = f"{len(found):,} partitions are moving" if len(found) != 1 else "One partition is moving"
    table = plain_table(_COLUMNS, shown, empty="Nothing moves.")
    return [_running(running), card(count if found else "Moves under way", table, all_of_them)]


def _running(running: ReplicaMoves) -> Markup | None:
    """The plan that the console carries out for this user, or has."""
    if not running.title:
        return None
    progress = running.progress
    said: list[Content] = [notice(told(each)) for each in running.told]
    said += [notice([told(str(at)), ": ", told(why)], "bad") for at, why in list(running.failed.items())[:10]]
    if running.failure:
        said.append(notice(told(running.failure), "bad"))
    if progress is not None:
        done, total = (
            (progress.done_bytes, progress.size_bytes) if progress.size_bytes else (progress.done_moves, progress.moves)
        )
        copied = (
            f", {size_text(progress.done_bytes)} of {size_text(progress.size_bytes)} copied"
            if progress.size_bytes
            else ""
        )
        said.append(bar(done / total if total else 1.0))
        said.append(tag("p", f"{progress.done_moves:,} of {progress.moves:,} partitions{copied}"))
    if running.is_running:
        said.append(tag("p", f"under way for {ago(time.monotonic() - running.began_s)}", class_="hint"))
    elif running.is_cancelled:
        said.append(notice("It was cancelled.", "fair"))
    elif not running.failure and not running.failed:
        said.append(notice("It is done.", "good"))
    return card(running.title, said, id_="plan")


async def _throttles(call: PageCall) -> Markup | None:
    """The throttles of moves that are set."""
    found = await call.access.aside(find)
    if not found.topics and not found.brokers:
        return None
    text = notice(["A throttle is set on ", told(str(found)), ". It slows down the copying of these replicas."], "fair")
    return card("Throttle", text, form(call, "/brokers/moves/unthrottle", submit="Take it off", class_="inline"))


async def _measured(admin: Admin, found: Sequence[Reassignment]) -> list[_MoveUnderWay]:
    """How many bytes of each move are copied: those of its new replicas, compared with the largest of the others."""
    if not found:
        return []
    nodes = sorted({node for each in found for node in each.replicas})
    sizes = {
        (TopicPartition(replica.topic, replica.partition), directory.node_id): replica.size_bytes
        for directories in (await disks(admin, nodes)).values()
        for directory in directories
        for replica in directory.replicas
        if not replica.is_future
    }

    def measured(each: Reassignment) -> _MoveUnderWay:
        size = max(
            (sizes.get((each.partition, node), 0) for node in each.replicas if node not in each.adding), default=0
        )
        copied = sum(min(sizes.get((each.partition, node), 0), size) for node in each.adding)
        return _MoveUnderWay(each, copied, size * len(each.adding))

    return [measured(each) for each in found]


def _counted(count: int) -> str:
    return f"{count:,} move{'' if count == 1 else 's'}"


def _progress(row: _MoveUnderWay) -> Content:
    return [bar(row.part), tag("small", f"{size_text(row.copied_bytes)} of {size_text(row.size_bytes)}")]


def _nodes(nodes: Sequence[int]) -> str:
    return ", ".join(map(str, nodes))


_COLUMNS: tuple[Column[_MoveUnderWay], ...] = (
    Column("Topic", lambda row: link(told(row.at.topic), path_to("topics", row.at.topic))),
    Column("Partition", lambda row: row.at.partition, is_number=True),
    Column("To", lambda row: _nodes(row.move.target)),
    Column("Coming", lambda row: _nodes(row.move.adding)),
    Column("Going", lambda row: _nodes(row.move.removing)),
    Column("Copied", _progress),
    Column(
        "Cancel",
        lambda row: link(
            "cancel", path_to("brokers", "moves", "cancel", topic=row.at.topic, partition=row.at.partition)
        ),
    ),
)
