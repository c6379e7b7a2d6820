"""Resetting the offsets of a group: choose where to, see what that means for each partition, apply exactly that."""

from __future__ import annotations

import json

from ottla.client.admin.group_descriptions import GroupDescription
from ottla.client.explain.words import some
from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, tag
from ottla.console.named import name_in, named_path
from ottla.console.pages.groups.words import SHARE, at_text, count_text, failures, is_spark, of_group
from ottla.console.parts.forms import area, choice, field, form, hidden, query_form
from ottla.console.parts.tables import Column, listing
from ottla.console.parts.words import badge, card, code, figure, figures, link, notice, told
from ottla.console.refusals import WrongInput
from ottla.console.routing import action, page
from ottla.model import limits
from ottla.model.durations import parse_duration_ms
from ottla.model.ids import TopicPartition
from ottla.operations.formats import parse_time_ms
from ottla.operations.group_lags import readable
from ottla.operations.offset_resets import OffsetMove, Target, chosen_partitions, moves_to, offsets_of

_TITLE = "Reset offsets"
_SPARK = "A Spark query goes on from its checkpoint, and never reads these offsets: a reset changes what its lag shows."
_WAYS = (
    ("earliest", "to the first record there is"),
    ("latest", "to the end: only new records are read"),
    ("offset", "to this offset"),
    ("time", "to the first record since this time"),
    ("back", "to the first record since this long ago"),
    ("shift", "by this number of records (negative: back)"),
)
_NEEDS_VALUE = frozenset({"offset", "time", "back", "shift"})


@page("/groups/{group}/reset")
async def reset_form(call: PageCall) -> Page:
    described = await call.admin.groups.describe(name_in(call, "group"))
    return _form(call, described)


@page("/groups/{group}/reset/preview")
async def reset_preview(call: PageCall) -> Page:
    group_id = name_in(call, "group")
    described = await call.admin.groups.describe(group_id)
    try:
        moves = await _moves(call, described)
    except WrongInput as wrong:
        return _form(call, described, str(wrong), wrong.hint)
    rows = [each for each in moves if each.old != each.new]
    table = listing(call, _COLUMNS, moves, text=lambda each: at_text(each.partition), noun="partition")
    outside = sum(each.new != each.wanted for each in moves)
    notes = [
        notice(f"{outside:,} partitions do not have the wanted offset: they go to their first or last one.", "fair")
        if outside
        else None,
        notice(_CONSUMERS, "plain") if described.kind != SHARE else None,
    ]
    return of_group(
        group_id,
        "reset",
        "Reset offsets: what would happen",
        _figures(moves),
        *notes,
        _apply(call, described, rows),
        table,
    )


_CONSUMERS = "Records are counted by their offsets: transactions and compaction leave gaps, so there may be fewer."


@action("/groups/{group}/reset")
async def reset_offsets(call: PageCall) -> Answer:
    group_id = name_in(call, "group")
    described = await call.admin.groups.describe(group_id)
    reason = _refusal(described)
    if reason:
        raise WrongInput(f"the offsets cannot be reset: {reason}", "stop its members, then look at the preview again")
    wanted = _previewed(call.text("moves"))
    is_share = described.kind == SHARE
    committed = await offsets_of(call.admin, group_id, share=is_share)
    moved = [at for at, (old, _) in wanted.items() if committed.get(at) != old]
    if moved:
        raise WrongInput(
            f"the group has committed other offsets since the preview: {some(map(at_text, moved))}",
            "look at the preview again",
        )
    offsets = {at: new for at, (_, new) in wanted.items()}
    if is_share:
        outcomes = await call.admin.shares.move_each(group_id, offsets)
        problem, count = failures(outcomes, "reset"), len(outcomes.found)
    else:
        stored = await call.admin.groups.set_offsets_each(group_id, offsets)
        problem, count = failures(stored, "reset"), len(stored.found)
    if problem is not None:
        return of_group(group_id, "reset", "Reset offsets: not all", problem, status=400)
    said = f"Group {group_id} goes on from the new offsets in {count:,} partition{'' if count == 1 else 's'}"
    return Redirect(named_path("groups", group_id, "partitions"), done=said)


def _form(call: PageCall, described: GroupDescription, wrong: str = "", hint: str = "") -> Page:
    group_id = described.group_id
    reason = _refusal(described)
    asked = query_form(
        named_path("groups", group_id, "reset", "preview"),
        choice("to", "Where to", _WAYS, call.query.get("to", "earliest")),
        field(
            "value",
            "Offset, time, duration, or number of records",
            call.query.get("value", ""),
            hint=[
                "a time such as ",
                code("2026-01-31T12:00:00"),
                " (of the console's time zone) or milliseconds since 1970; a duration such as ",
                code("2h30m"),
                "; nothing for the first or the last record",
            ],
        ),
        area(
            "topics",
            "Topics",
            call.query.get("topics", ""),
            rows=3,
            hint=[
                "one in a line: ",
                code("TOPIC"),
                " or ",
                code("TOPIC:PARTITION"),
                "; empty: all that it has read",
            ],
        ),
        hidden("named", call.query["named"]) if "named" in call.query else None,
        submit="Preview",
    )
    told_reason = (
        notice(f"The offsets cannot be reset now: {reason}", "fair", "a preview is possible") if reason else None
    )
    told_wrong = notice(wrong, "bad", hint or None) if wrong else None
    spark = notice(_SPARK, "fair") if is_spark(group_id, described.kind) else None
    what = "the start of its partitions" if described.kind == SHARE else "its committed offsets"
    intro = tag("p", f"A reset changes {what}. Nothing is changed before you have seen the preview.")
    return of_group(
        group_id, "reset", _TITLE, told_wrong, told_reason, spark, intro, asked, status=400 if wrong else 200
    )


def _refusal(described: GroupDescription) -> str:
    """Why the offsets may not be changed now; empty if they may."""
    if described.members:
        who = some(each.client_id or each.member_id for each in described.members)
        count = len(described.members)
        return f"the group has {count:,} member{'' if count == 1 else 's'} ({who}), which would commit over them"
    return ""


async def _moves(call: PageCall, described: GroupDescription) -> list[OffsetMove]:
    target = _target(call)
    is_share = described.kind == SHARE
    committed = await offsets_of(call.admin, described.group_id, share=is_share)
    named = [line.strip() for line in call.query.get("topics", "").splitlines() if line.strip()]
    asked = await chosen_partitions(call.admin, named) if named else sorted(committed)
    partitions = await readable(call.admin, asked)
    missing = [at for at in asked if at not in partitions]
    if named and missing:
        raise WrongInput(f"{some(map(at_text, missing))}: there is no such partition, or it has no leader")
    if not partitions:
        raise WrongInput(f"group {described.group_id!r} has no offsets to reset", "name topics")
    moves = await moves_to(call.admin, partitions, committed, target)
    if not moves:
        raise WrongInput("nothing was committed for these partitions: there is nothing to shift", "choose another way")
    return moves


def _target(call: PageCall) -> Target:
    way, value = call.text("to", "earliest"), call.query.get("value", "").strip()
    if way not in dict(_WAYS):
        raise WrongInput(f"there is no way {way[:40]!r} to reset offsets")
    if way in _NEEDS_VALUE and not value:
        raise WrongInput("the offset, time, duration or number of records is missing")
    try:
        match way:
            case "offset":
                return Target(offset=call.number("value", most=limits.INT64_MAX))
            case "shift":
                return Target(shift=call.number("value", least=-limits.INT64_MAX))
            case "time":
                return Target(time_ms=parse_time_ms(value))
            case "back":
                return Target(back_ms=parse_duration_ms(value))
            case _:
                return Target(word=way)
    except ValueError as error:
        raise WrongInput(str(error)) from None


def _figures(moves: list[OffsetMove]) -> Markup:
    again = sum(each.old - each.new for each in moves if each.old is not None and each.new < each.old)
    skipped = sum(each.new - each.old for each in moves if each.old is not None and each.new > each.old)
    changed = sum(each.old != each.new for each in moves)
    return figures(
        figure("partitions that change", f"{changed:,}", note=f"of {len(moves):,}"),
        figure("records read again", f"{again:,}", mood="fair" if again else "plain"),
        figure("records skipped", f"{skipped:,}", mood="bad" if skipped else "plain"),
    )


def _apply(call: PageCall, described: GroupDescription, rows: list[OffsetMove]) -> Content:
    back = link("Choose another way", named_path("groups", described.group_id, "reset"))
    if not rows:
        return [notice("Nothing would change."), tag("p", back)]
    reason = _refusal(described)
    if reason:
        return [
            notice(f"This cannot be applied now: {reason}", "bad", "stop its members, then load this page again"),
            tag("p", back),
        ]
    moves = json.dumps([[each.partition.topic, each.partition.partition, each.old, each.new] for each in rows])
    apply = form(
        call,
        named_path("groups", described.group_id, "reset"),
        hidden("moves", moves),
        submit=f"Reset {len(rows):,} offset{'' if len(rows) == 1 else 's'}",
        is_dangerous=True,
    )
    return card("Apply exactly this", apply, tag("p", back))


def _previewed(text: str) -> dict[TopicPartition, tuple[int | None, int]]:
    """The changes that the preview has shown: the old and the new offset of each partition."""
    try:
        found = {
            TopicPartition(str(topic), int(index)): (None if old is None else int(old), int(new))
            for topic, index, old, new in json.loads(text)
        }
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise WrongInput("what was to be changed cannot be read", "look at the preview again") from None
    return found


def _meaning(each: OffsetMove) -> Content:
    if each.old is None:
        return "begins here; until now auto.offset.reset of its members decided"
    if each.new == each.old:
        return "stays"
    if each.new < each.old:
        return badge(f"{each.old - each.new:,} records are read again", "fair")
    return badge(f"{each.new - each.old:,} records are skipped", "bad")


def _new(each: OffsetMove) -> Content:
    if each.new == each.wanted:
        return count_text(each.new)
    edge = "ends" if each.wanted > each.new else "begins"
    return [
        count_text(each.new),
        tag("br"),
        tag("small", f"the partition {edge} here: there is no offset {each.wanted}"),
    ]


_COLUMNS: tuple[Column[OffsetMove], ...] = (
    Column("Partition", lambda each: told(at_text(each.partition)), lambda each: each.partition),
    Column("Now", lambda each: count_text(each.old), lambda each: each.old, is_number=True),
    Column("New", _new, lambda each: each.new, is_number=True),
    Column("What that means", _meaning, lambda each: None if each.old is None else each.new - each.old),
)
