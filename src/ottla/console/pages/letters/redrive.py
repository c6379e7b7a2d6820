"""Sending letters back: a preview of exactly which ones, then those and no others."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.html import Content, path_to, tag
from ottla.console.pages.letters.browse import TRAIL
from ottla.console.parts.forms import field, form, hidden, query_form
from ottla.console.parts.tables import Column, plain_table
from ottla.console.parts.words import card, code, figure, figures, link, notice, told
from ottla.console.refusals import WrongInput
from ottla.console.routing import action, page
from ottla.model import limits
from ottla.operations.dead_letters import RedrivePlan, Selection, places_of, plan_redrive
from ottla.operations.redriving import LetterFate, LetterOutcome, send_letters

_Places = Sequence[tuple[int, int]]


@page("/letters/{topic}/redrive")
async def redrive_matching(call: PageCall) -> Page:
    query = call.query
    wanted = Selection(
        query.get("group"), query.get("origin"), query.get("reason"), (), limits.CONSOLE_LETTERS_SENT_MAX
    )
    named = [f"{name} {query[name]}" for name in ("reason", "origin", "group") if name in query]
    return await _preview(call, wanted, f"Letters with {', '.join(named)}" if named else "All letters of the topic")


@action("/letters/{topic}/preview", in_read_only=True)
async def redrive_chosen(call: PageCall) -> Page:
    chosen = tuple(dict.fromkeys(call.lists.get("letter", ())))
    if not chosen:
        raise WrongInput("no letter is chosen", "go back, and mark the letters to be sent")
    try:
        places = places_of(chosen)
    except ValueError as error:
        raise WrongInput(str(error)) from None
    return await _preview(call, Selection(None, None, None, places, len(places)), "The chosen letters")


async def _preview(call: PageCall, wanted: Selection, what: str) -> Page:
    topic, to = call.params["topic"], call.query.get("to", "").strip() or None
    plan = await plan_redrive(call.admin.cluster, topic, wanted, to)
    content: list[Content] = [tag("p", told(what), "; those that arrive meanwhile are not sent.")]
    if plan.is_cut:
        said = f"There are more than {len(plan.places):,}: only the first ones would be sent."
        content.append(
            notice(said, "fair", "choose a reason, an origin or a group; `ottla dlq redrive --max` sends more")
        )
    content += [_shown(plan), _apply(call, topic, plan.places, to)]
    if call.path.endswith("/redrive"):
        content.append(_elsewhere(call, topic))
    return Page("Redrive: what would happen", content, (*TRAIL, (topic, path_to("letters", topic))))


def _shown(plan: RedrivePlan) -> Content:
    columns: tuple[Column[tuple[str, int]], ...] = (
        Column("To topic", lambda each: told(each[0])),
        Column("Letters", lambda each: f"{each[1]:,}", is_number=True),
    )
    first = plan.places[: limits.CONSOLE_ROWS]
    places = ", ".join(f"{partition}:{offset}" for partition, offset in first)
    more = f" and {len(plan.places) - len(first):,} more" if len(plan.places) > len(first) else ""
    return [
        figures(figure("letters would be sent", f"{len(plan.places):,}"), figure("topics get some", len(plan.targets))),
        plain_table(columns, sorted(plan.targets.items()), empty="no letter matches"),
        tag("p", tag("small", "Letters ", code(places), more)) if places else None,
    ]


def _apply(call: PageCall, topic: str, places: _Places, to: str | None, submit: str = "Send") -> Content:
    if not places:
        return None
    note = (
        "The records are sent with their keys, values and headers, without those of a letter, and with one that names "
        "the letter. The letters stay in this topic: sent twice, they come twice."
    )
    apply = form(
        call,
        path_to("letters", topic, "redrive"),
        hidden("places", json.dumps(places)),
        hidden("to", to or ""),
        submit=f"{submit} {len(places):,} letter{'' if len(places) == 1 else 's'}",
        is_dangerous=True,
    )
    return card("Send exactly these", tag("p", note), apply)


def _elsewhere(call: PageCall, topic: str) -> Content:
    kept = [hidden(name, call.query[name]) for name in ("reason", "origin", "group") if name in call.query]
    form_of = query_form(
        path_to("letters", topic, "redrive"),
        field("to", "Topic", call.query.get("to", ""), hint="empty: the topic that each letter comes from"),
        kept,
        submit="Preview",
    )
    return card("Send them to another topic", form_of)


@action("/letters/{topic}/redrive")
async def redrive(call: PageCall) -> Page:
    topic, to = call.params["topic"], call.text("to", "") or None
    places = _places(call.text("places"))
    outcomes = await send_letters(call.admin.cluster, topic, places, to, limits.CONSOLE_LETTERS_SEND_S)
    sent = sum(each.fate is LetterFate.SENT for each in outcomes)
    left = [each.place for each in outcomes if each.fate is LetterFate.NOT_SENT]
    said = f"{sent:,} of {len(places):,} letters were sent" + (f" to {to}." if to else " to where they come from.")
    trail = (*TRAIL, (topic, path_to("letters", topic)))
    content: list[Content] = [
        notice(said, "good" if sent == len(places) else "fair"),
        tag("p", link("The letters", trail[-1][1])),
    ]
    for fate, title, note in _FATES:
        content.append(_ended(topic, title, note, [each for each in outcomes if each.fate is fate]))
    if left:
        content.append(_apply(call, topic, left, to, "Go on with"))
    return Page("Redrive", content, trail)


_FATES = (
    (LetterFate.NOT_SENT, "Not sent", "Nothing of these was written; you can go on with them."),
    (
        LetterFate.UNKNOWN,
        "Perhaps sent",
        "No acknowledgement came for these, and they may have been written. Look whether they are there, in a record "
        "with the header ottla.dlq.redriven-from, before you send them again: each can be sent from its own page.",
    ),
    (LetterFate.GONE, "Gone", "There are no such letters in the topic any more."),
)


def _ended(topic: str, title: str, note: str, outcomes: list[LetterOutcome]) -> Content:
    """The letters that ended so, grouped by the reason."""
    reasons: dict[str, list[LetterOutcome]] = {}
    for each in outcomes:
        reasons.setdefault(each.why, []).append(each)
    if not reasons:
        return None
    rows = [tag("p", told(why), ": ", _links(topic, found)) for why, found in reasons.items()]
    return card(f"{title}: {len(outcomes):,}", tag("p", note), rows)


def _links(topic: str, outcomes: list[LetterOutcome]) -> list[Content]:
    shown: list[Content] = []
    for each in outcomes[: limits.CONSOLE_ROWS_MAX]:
        shown += [link(str(each.place), path_to("letters", topic, each.place.partition, each.place.offset)), " "]
    more = len(outcomes) - limits.CONSOLE_ROWS_MAX
    return [*shown, f"and {more:,} more" if more > 0 else None]


def _places(text: str) -> list[tuple[int, int]]:
    try:
        found = [(int(partition), int(offset)) for partition, offset in json.loads(text)]
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise WrongInput("the letters to be sent cannot be read", "look at the preview again") from None
    if len(found) > limits.CONSOLE_LETTERS_SENT_MAX or any(part < 0 for each in found for part in each):
        raise WrongInput(f"at most {limits.CONSOLE_LETTERS_SENT_MAX:,} letters are sent at a time")
    return list(dict.fromkeys(found))
