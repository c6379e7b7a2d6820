"""Held partitions: where readers of committed records wait, for whose transaction; those that hang, and ending them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from ottla.console.action_log import note_reason
from ottla.console.answers import Page, PartStream, Redirect, StreamPart
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, path_to, tag
from ottla.console.pages.transactions.words import (
    HELD_PATH,
    TRAIL,
    age_badge,
    place_text,
    transaction_link,
    transaction_tabs,
)
from ottla.console.parts.forms import field, form, hidden
from ottla.console.parts.tables import Column, plain_table
from ottla.console.parts.words import badge, card, facts, link, notice, stream, told
from ottla.console.refusals import WrongInput
from ottla.console.routing import action, page
from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.operations.formats import parse_index, time_text
from ottla.operations.group_lags import readable
from ottla.operations.held_partitions import HeldPartition, OpenInPartition, find_held, held_of

_STEP_S = 0.3
_INTRO = (
    "Readers of committed records see nothing behind the first record of an open transaction. A transaction hangs if a "
    "partition has it open and no coordinator knows it: it never ends by itself."
)
_UNSEEN = (
    "A transactional id that you may not see counts as unknown here: before you abort, be sure that no coordinator has "
    "it."
)


@page(HELD_PATH)
async def held_page(call: PageCall) -> Page:
    run = stream(f"{HELD_PATH}/run", [tag("div", id_="progress"), tag("div", id_="failed"), tag("div", id_="found")])
    return Page("Held partitions", [transaction_tabs(HELD_PATH), tag("p", _INTRO), run], TRAIL)


@page(f"{HELD_PATH}/run")
async def held_run(call: PageCall) -> PartStream:
    return PartStream(_looked(call))


async def _looked(call: PageCall) -> AsyncGenerator[StreamPart, None]:
    seen = [0, 0]

    def tell(done: int, of: int) -> None:
        seen[:] = done, of

    work = asyncio.create_task(find_held(call.admin, tell))
    try:
        while True:
            yield StreamPart("progress", _progress(*seen))
            done, _ = await asyncio.wait({work}, timeout=_STEP_S)
            if done:
                break
        held = work.result()
    finally:
        work.cancel()
    yield StreamPart("progress", tag("p", f"{seen[1]:,} partitions were looked at.", class_="note"))
    yield StreamPart("found", _found(held))


def _progress(done: int, of: int) -> Markup:
    bar = tag("progress", value=done, max=of or 1)
    return tag("div", tag("p", f"Looking at the partitions: {done:,} of {of:,}", role="status"), bar)


def _found(held: list[HeldPartition]) -> Markup:
    hanging = sum(each.transactional_id is None for one in held for each in one.transactions)
    notices = [
        notice(f"{hanging:,} transactions hang.", "bad", _UNSEEN) if hanging else None,
        notice("No partition is held.", "good") if not held else None,
    ]
    rows = sorted(held, key=lambda each: -each.records)
    cut = rows[: limits.CONSOLE_ROWS_MAX]
    more = tag("p", f"and {len(rows) - len(cut):,} more partitions", class_="note") if len(rows) > len(cut) else None
    table = plain_table(_COLUMNS, cut) if rows else None
    return tag("div", notices, table, more)


def _whose(held: HeldPartition) -> Content:
    if held.problem:
        return badge(told(held.problem), "bad")
    return [tag("div", _one(held.at, each)) for each in held.transactions]


def _one(at: TopicPartition, each: OpenInPartition) -> Content:
    if each.transactional_id is not None:
        return transaction_link(each.transactional_id)
    offset = each.producer.current_txn_start_offset
    return [
        badge("hangs", "bad"),
        f" producer id {each.producer.producer_id}, since offset {offset:,}: ",
        link("abort it", _path(at, offset)),
    ]


def _path(at: TopicPartition, offset: int) -> str:
    return path_to("transactions", "in", at.topic, at.partition, offset)


_COLUMNS: tuple[Column[HeldPartition], ...] = (
    Column("Partition", lambda each: link(told(place_text(each.at)), path_to("topics", each.at.topic))),
    Column("Readable up to", lambda each: f"{each.stable_end:,}", is_number=True),
    Column("Written up to", lambda each: f"{each.end:,}", is_number=True),
    Column("Held back", lambda each: f"{each.records:,}", is_number=True),
    Column("Transactions", _whose),
)


@page("/transactions/in/{topic}/{partition}/{offset}")
async def hanging_preview(call: PageCall) -> Page:
    at, offset = _place(call)
    title = "Abort a hanging transaction: what would happen"
    trail = (*TRAIL, ("Held partitions", HELD_PATH))
    held, found = await _hanging(call, at, offset)
    if found.transactional_id is not None:
        known = notice(
            [
                "The coordinator knows this transaction: abort it by its id, ",
                transaction_link(found.transactional_id),
                ".",
            ],
            "bad",
            "an abort in one partition alone would leave the others open",
        )
        return Page(title, known, trail)
    now_ms = call.admin.cluster.options.now_ms()
    last_ms = found.producer.last_timestamp
    pairs: list[tuple[Content, Content]] = [
        ("Partition", told(place_text(at))),
        ("First record", offset),
        ("Producer id", found.producer.producer_id),
        ("Producer epoch", found.producer.producer_epoch),
        ("Last written", time_text(last_ms) if last_ms >= 0 else "unknown"),
        ("Silent for", age_badge(max(now_ms - last_ms, 0)) if last_ms >= 0 else "unknown"),
        ("Held back", f"{held.records:,} records"),
    ]
    said = (
        f"A marker is written into {place_text(at)} that aborts the transaction there: its records are never seen by "
        "readers of committed records, and those that wait behind it go on."
    )
    abort = form(
        call,
        _path(at, offset),
        hidden("producer_id", found.producer.producer_id),
        field("reason", "Reason, for the console's log", hint="who asked for it, or a ticket", required=True),
        submit="Abort it in this partition",
        is_dangerous=True,
    )
    return Page(title, [tag("p", told(said)), card("Transaction", facts(pairs)), notice(_UNSEEN, "fair"), abort], trail)


@action("/transactions/in/{topic}/{partition}/{offset}")
async def abort_hanging(call: PageCall) -> Redirect:
    at, offset = _place(call)
    reason = call.text("reason")
    _, found = await _hanging(call, at, offset)
    if found.transactional_id is not None or found.producer.producer_id != call.number("producer_id"):
        raise WrongInput("this is not the hanging transaction that you have seen", "look at the held partitions again")
    await call.admin.transactions.abort_in(at, offset)
    note_reason(call, f"the transaction that hung in {at} since offset {offset}", reason)
    return Redirect(HELD_PATH, done=f"The transaction that hung in {place_text(at)} is aborted")


def _place(call: PageCall) -> tuple[TopicPartition, int]:
    index, offset = parse_index(call.params["partition"]), call.params["offset"]
    if index is None or not (offset.isascii() and offset.isdecimal() and len(offset) < 20):
        raise WrongInput("that is no place in a partition")
    return TopicPartition(call.params["topic"], index), int(offset)


async def _hanging(call: PageCall, at: TopicPartition, offset: int) -> tuple[HeldPartition, OpenInPartition]:
    for held in await held_of(call.admin, await readable(call.admin, [at])):
        for each in held.transactions:
            if each.producer.current_txn_start_offset == offset:
                return held, each
    raise WrongInput(f"no open transaction of {place_text(at)} begins at {offset}: it has ended meanwhile")
