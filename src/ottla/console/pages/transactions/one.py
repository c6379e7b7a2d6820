"""One transactional id: its transaction, what that holds back, and aborting it."""

from __future__ import annotations

from ottla.client.admin.transactions import TransactionDescription
from ottla.console.action_log import note_reason
from ottla.console.answers import Page, Redirect
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, path_to, tag
from ottla.console.named import name_in, named_path
from ottla.console.pages.transactions.words import (
    TRAIL,
    age_badge,
    age_text,
    place_text,
    transaction_state,
)
from ottla.console.parts.forms import field, form, hidden
from ottla.console.parts.tables import Column, listing
from ottla.console.parts.words import card, code, facts, link, notice, told, visible
from ottla.console.refusals import WrongInput
from ottla.console.routing import action, page
from ottla.model.ids import TopicPartition
from ottla.operations.formats import time_text
from ottla.operations.group_lags import readable
from ottla.operations.held_partitions import HeldPartition, held_of

_ABORTABLE = "Ongoing"  # the outcome of a transaction in any other state is decided


@page("/transactions/{id}")
async def one_transaction(call: PageCall) -> Page:
    found = await call.admin.transactions.describe(name_in(call, "id"))
    return Page(
        found.transactional_id,
        [
            card("Transaction", _facts(call, found)),
            card("Its partitions", await _partitions(call, found)),
            card("Abort", _way(found)),
        ],
        TRAIL,
    )


def _facts(call: PageCall, found: TransactionDescription) -> Markup:
    age_ms = None
    if found.started_ms is not None:
        age_ms = max(call.admin.cluster.options.now_ms() - found.started_ms, 0)
    pairs: list[tuple[Content, Content]] = [
        ("State", transaction_state(found.state)),
        ("Producer id", found.producer_id),
        ("Producer epoch", found.producer_epoch),
        ("Ends by itself after", f"{age_text(found.timeout_ms)} (transaction.timeout.ms of its producer)"),
    ]
    if found.started_ms is not None:
        pairs += [("Open since", time_text(found.started_ms)), ("Open for", age_badge(age_ms))]
    return facts(pairs)


async def _partitions(call: PageCall, found: TransactionDescription) -> Markup:
    held = {each.at: each for each in await held_of(call.admin, await readable(call.admin, found.partitions))}

    def records(at: TopicPartition) -> int:
        return held[at].records if at in held else 0

    columns: tuple[Column[TopicPartition], ...] = (
        Column("Partition", lambda at: link(told(place_text(at)), path_to("topics", at.topic)), lambda at: at),
        Column("Readable up to", lambda at: _number(held.get(at), "stable_end"), is_number=True),
        Column("Written up to", lambda at: _number(held.get(at), "end"), is_number=True),
        Column("Held back", lambda at: f"{records(at):,}" if at in held else "-", records, is_number=True),
    )
    empty = "no partition has joined a transaction"
    return listing(call, columns, found.partitions, text=place_text, noun="partition", empty=empty)


def _number(held: HeldPartition | None, name: str) -> str:
    return "-" if held is None else f"{getattr(held, name):,}"


def _way(found: TransactionDescription) -> Content:
    if found.state != _ABORTABLE:
        return tag("p", _refusal(found))
    return tag("p", link("See what an abort would do", named_path("transactions", found.transactional_id, "abort")))


def _refusal(found: TransactionDescription) -> str:
    return f"There is no open transaction to abort: the id is in state {found.state}."


@page("/transactions/{id}/abort")
async def abort_preview(call: PageCall) -> Page:
    found = await call.admin.transactions.describe(name_in(call, "id"))
    name = found.transactional_id
    trail = (*TRAIL, (name, named_path("transactions", name)))
    title = "Abort a transaction: what would happen"
    if found.state != _ABORTABLE or found.started_ms is None:
        return Page(title, notice(_refusal(found), "bad", "nothing can be changed about its outcome"), trail)
    held = await held_of(call.admin, await readable(call.admin, found.partitions))
    count = sum(each.records for each in held)
    effects = [
        f"Its records in {len(found.partitions):,} partitions are never seen by readers of committed records.",
        f"Readers that wait behind it go on: up to {count:,} records of others and of its own are held back now.",
        "Its producer is fenced: its next call fails, and it has to begin anew.",
        "If its application is alive and only slow, it loses its work: look at it first.",
    ]
    deletion = form(
        call,
        named_path("transactions", name, "abort"),
        hidden("started_ms", found.started_ms),
        field("reason", "Reason, for the console's log", hint="who asked for it, or a ticket", required=True),
        field("name", "Type the transactional id", required=True, hint=code(name)),
        submit="Abort the transaction",
        is_dangerous=True,
    )
    content = [tag("ul", [tag("li", each) for each in effects]), card("Transaction", _facts(call, found)), deletion]
    return Page(title, content, trail)


@action("/transactions/{id}/abort")
async def abort_transaction(call: PageCall) -> Redirect:
    found = await call.admin.transactions.describe(name_in(call, "id"))
    name, reason = found.transactional_id, call.text("reason")
    if call.form.get("name", "") not in (name, name.strip(), visible(name)):
        raise WrongInput("the typed name is not the transactional id", "nothing was aborted")
    if found.state != _ABORTABLE or found.started_ms is None:
        raise WrongInput(_refusal(found), "nothing was aborted")
    if found.started_ms != call.number("started_ms"):
        raise WrongInput("the transaction that you have seen is over, and another one has begun", "look at it again")
    await call.admin.transactions.abort(name)
    note_reason(call, f"the transaction of {name}", reason)
    return Redirect(
        named_path("transactions", name), done=f"The transaction of {name} is aborted, and its producer fenced"
    )
