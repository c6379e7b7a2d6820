"""All transactional ids with their states; age and partitions of those on the page that is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ottla.client.admin.transactions import TransactionDescription, TransactionListing
from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.html import Content
from ottla.console.pages.transactions.words import (
    LIST_PATH,
    age_badge,
    transaction_link,
    transaction_state,
    transaction_tabs,
)
from ottla.console.parts.choices import choices
from ottla.console.parts.tables import Column, cut, listed
from ottla.console.parts.words import notice
from ottla.console.routing import page
from ottla.operations.failures import message_of
from ottla.operations.held_partitions import OPEN_STATES


@page(LIST_PATH)
async def transaction_list(call: PageCall) -> Page:
    answers = await call.admin.transactions.all_each()
    found = sorted(each for ids in answers.found.values() for each in ids)
    if answers.failed and not found:
        answers.all()  # raises what is wrong
    state = call.query.get("state")
    chosen = [each for each in found if state in (None, each.state)]
    now_ms = call.admin.cluster.options.now_ms()
    shown = cut(call, _columns({}, now_ms), chosen, text=_text, sort="state")
    open_ids = [each.transactional_id for each in shown.shown if each.state in OPEN_STATES]
    described = (await call.admin.transactions.describe_each(open_ids)).found if open_ids else {}
    table = listed(
        call, _columns(described, now_ms), shown, empty="no producer has a transactional id", noun="transactional id"
    )
    missing = [
        notice(f"The transactional ids of broker {node_id} are missing: {message_of(error)}", "fair")
        for node_id, error in answers.failed.items()
    ]
    states = choices(call, "state", Counter(each.state for each in found))
    return Page("Transactions", [transaction_tabs(LIST_PATH), missing, states, table])


def _text(each: TransactionListing) -> str:
    return f"{each.transactional_id} {each.producer_id} {each.state}"


def _rank(each: TransactionListing) -> tuple[bool, str, str]:
    """Open ones come first."""
    return each.state not in OPEN_STATES, each.state, each.transactional_id


def _link(each: TransactionListing) -> Content:
    return transaction_link(each.transactional_id)


def _columns(described: Mapping[str, TransactionDescription], now_ms: int) -> tuple[Column[TransactionListing], ...]:
    def age_ms(each: TransactionListing) -> int | None:
        found = described.get(each.transactional_id)
        return None if found is None or found.started_ms is None else max(now_ms - found.started_ms, 0)

    def partitions(each: TransactionListing) -> Content:
        found = described.get(each.transactional_id)
        return "-" if found is None else len(found.partitions)

    return (
        Column(
            "Transactional id", lambda each: transaction_link(each.transactional_id), lambda each: each.transactional_id
        ),
        Column("State", lambda each: transaction_state(each.state), _rank),
        Column("Producer id", lambda each: each.producer_id, lambda each: each.producer_id, is_number=True),
        Column("Partitions", partitions, is_number=True),
        Column("Open for", lambda each: age_badge(age_ms(each)), is_number=True),
    )
