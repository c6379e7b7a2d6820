"""Explain my lag: the group is watched for some seconds, then verdicts with evidence and advice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

from ottla.client.explain.facts import GroupState, PartitionFacts
from ottla.client.explain.gather import gather_group
from ottla.client.explain.lag import LagCause, LagVerdict, explain_lag
from ottla.client.explain.words import rate, some
from ottla.console.answers import Page, PartStream, StreamPart
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, markup_of, path_to, tag
from ottla.console.named import name_in, named_path
from ottla.console.pages.groups.words import at_text, count_text, of_group, state_badge, waited_text
from ottla.console.parts.forms import field, hidden, query_form
from ottla.console.parts.tables import Column, plain_table
from ottla.console.parts.words import Mood, badge, card, link, stream, told
from ottla.console.routing import page
from ottla.model import limits

_STEP_S = 0.5
_MOODS: dict[LagCause, Mood] = {LagCause.KEEPS_UP: "good", LagCause.CATCHING_UP: "good", LagCause.UNKNOWN: "plain"}
_SLOW: frozenset[LagCause] = frozenset({LagCause.SLOW_CONSUMER, LagCause.REBALANCING, LagCause.HOT_PARTITION})


@page("/groups/{group}/lag")
async def explain_lag_page(call: PageCall) -> Page:
    group_id = name_in(call, "group")
    seconds = _seconds(call)
    await call.admin.groups.describe(group_id)  # raises if there is no such group
    run = stream(
        named_path("groups", group_id, "lag", "run", seconds=seconds),
        [tag("div", id_="progress"), tag("div", id_="failed"), tag("div", id_="found")],
    )
    again = query_form(
        named_path("groups", group_id, "lag"),
        field("seconds", "Watch the group for so many seconds", seconds, type_="number"),
        hidden("named", call.query["named"]) if "named" in call.query else None,
        submit="Watch again",
    )
    return of_group(group_id, "lag", "Explain the lag", run, card("Longer", again))


@page("/groups/{group}/lag/run")
async def explain_lag_run(call: PageCall) -> PartStream:
    return PartStream(_explained(call, name_in(call, "group"), _seconds(call)))


def _seconds(call: PageCall) -> int:
    return call.number("seconds", limits.CONSOLE_EXPLAIN_S, least=1, most=limits.CONSOLE_EXPLAIN_S_MAX)


async def _explained(call: PageCall, group_id: str, seconds: int) -> AsyncGenerator[StreamPart, None]:
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    work = asyncio.create_task(gather_group(call.admin, group_id, seconds))
    try:
        while True:
            yield StreamPart("progress", _progress(loop.time() - began_s, seconds))
            done, _ = await asyncio.wait({work}, timeout=_STEP_S)
            if done:
                break
        group = work.result()
    finally:
        work.cancel()
    yield StreamPart("progress", tag("p"))
    yield StreamPart("found", _shown(group))


def _progress(passed_s: float, seconds: int) -> Markup:
    said = f"Watching the group: {passed_s:.0f} of {seconds} s"
    if passed_s > seconds:
        said = f"Its members seem to stand still, and may commit rarely: watching for {passed_s:.0f} s by now"
    bar = tag("progress", value=f"{min(passed_s, seconds):.1f}", max=seconds)
    return tag("div", tag("p", said, role="status"), bar)


def _shown(group: GroupState) -> Markup:
    behind = sum(each.lag for each in group.partitions)
    head = tag(
        "p",
        state_badge(group.state),
        f" {len(group.members):,} members, {len(group.partitions):,} partitions, {behind:,} records behind; ",
        f"watched for {group.window_s:.0f} s",
    )
    verdicts = [_verdict(group, each) for each in explain_lag(group)]
    rows = sorted(group.partitions, key=lambda each: -each.lag)
    cut = rows[: limits.CONSOLE_ROWS]
    more = tag("p", f"and {len(rows) - len(cut):,} more partitions", class_="note") if len(rows) > len(cut) else None
    table = card("The partitions that are furthest behind", plain_table(_COLUMNS, cut, empty="no partitions"), more)
    return markup_of([head, verdicts, table])


def _verdict(group: GroupState, verdict: LagVerdict) -> Markup:
    mood = _MOODS.get(verdict.cause, "fair" if verdict.cause in _SLOW else "bad")
    evidence = tag("ul", [tag("li", told(each)) for each in verdict.evidence]) if verdict.evidence else None
    advice = tag("ul", [tag("li", told(each)) for each in verdict.advice]) if verdict.advice else None
    places = some(map(at_text, verdict.partitions))
    return card(
        [badge(verdict.cause.value.replace("_", " "), mood), " ", told(verdict.summary)],
        [tag("p", tag("b", "Partitions: "), told(places))] if places else None,
        [tag("b", "What shows it"), evidence] if evidence else None,
        [tag("b", "What to do"), advice] if advice else None,
        _ways(group, verdict),
    )


def _ways(group: GroupState, verdict: LagVerdict) -> Content:
    """Links to the pages where the advice can be followed."""
    match verdict.cause:
        case LagCause.OPEN_TRANSACTION:
            return _open_transactions(group.partitions, verdict)
        case LagCause.BEYOND_END | LagCause.STUCK_PARTITION | LagCause.RECORDS_GONE:
            return tag("p", link("Reset its offsets", named_path("groups", group.group_id, "reset")))
        case LagCause.TOPIC_DELETED | LagCause.NOT_ASSIGNED:
            return tag("p", link("Delete offsets", named_path("groups", group.group_id, "delete")))
        case LagCause.HOT_PARTITION if verdict.partitions:
            return tag("p", link("Look at the topic", path_to("topics", verdict.partitions[0].topic)))
        case LagCause.REBALANCING | LagCause.NO_CONSUMER | LagCause.CONSUMER_STOPPED:
            return tag("p", link("What happened to its members", named_path("groups", group.group_id, "rebalances")))
        case _:
            return None


def _open_transactions(partitions: Sequence[PartitionFacts], verdict: LagVerdict) -> Content:
    for each in partitions:
        if each.partition in verdict.partitions and each.transaction is not None:
            if each.transaction.transactional_id is not None:
                to = named_path("transactions", each.transaction.transactional_id)
                return tag("p", link("The transaction, and how to abort it", to))
            return tag("p", link("Open transactions that no coordinator knows", path_to("transactions", "held")))
    return None


def _per_s(value: float | None) -> str:
    return "-" if value is None else rate(value)


_COLUMNS: tuple[Column[PartitionFacts], ...] = (
    Column("Partition", lambda each: told(at_text(each.partition))),
    Column("Committed", lambda each: count_text(each.committed), is_number=True),
    Column("End", lambda each: count_text(each.end), is_number=True),
    Column("Lag", lambda each: count_text(each.records), is_number=True),
    Column("Waiting", lambda each: waited_text(each.seconds), is_number=True),
    Column("Written", lambda each: _per_s(each.produced_per_s), is_number=True),
    Column("Read", lambda each: _per_s(each.consumed_per_s), is_number=True),
    Column("Member", lambda each: told(each.owner.client_id or each.owner.member_id) if each.owner else "-"),
)
