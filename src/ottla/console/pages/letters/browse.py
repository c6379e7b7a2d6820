"""The letters of a topic, the newest first: a bounded number of records for each page, of which only what is shown is
kept.
"""

from __future__ import annotations

from collections import Counter
from contextlib import aclosing
from typing import NamedTuple

from ottla.client.consumer.ranges import ConsumedRecord, Span
from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, path_to, tag
from ottla.console.named import named_path
from ottla.console.parts.choices import choices
from ottla.console.parts.forms import any_form
from ottla.console.parts.tables import Column, listing
from ottla.console.parts.words import badge, code, link, notice, told
from ottla.console.routing import page
from ottla.model import limits
from ottla.operations.dead_letters import DeadLetter, read_letters
from ottla.operations.formats import size_text, time_text

_FORM = "chosen"
TRAIL = (("Dead letters", "/letters"),)


class LetterSeen(NamedTuple):
    """What the table shows of a letter; texts are cut."""

    partition: int
    offset: int
    time_ms: int
    origin: str
    group: str
    deliveries: int | None
    reason: str
    error: str
    key: str
    value: str
    size_bytes: int

    @property
    def place(self) -> str:
        return f"{self.partition}:{self.offset}"


class LettersSeen(NamedTuple):
    """The letters of one page, and how many records of it are none. `is_last`: there are no earlier ones; `is_cut`: the
    records were so large that not all of them were looked at.
    """

    letters: list[LetterSeen]
    others: int
    is_last: bool
    is_cut: bool = False


@page("/letters/{topic}")
async def browse_letters(call: PageCall) -> Page:
    topic = call.params["topic"]
    back = call.number("back", 0, most=10**9)
    seen = await _look(call, topic, back)
    chosen = [each for each in seen.letters if _takes(call, each)]
    more = [
        link("Earlier letters", call.here(back=back + 1, page=None)) if not seen.is_last else None,
        " ",
        link("Later letters", call.here(back=back - 1 if back > 1 else None, page=None)) if back else None,
    ]
    filters = [
        choices(call, "reason", Counter(each.reason for each in seen.letters)),
        choices(call, "origin", Counter(each.origin for each in seen.letters)),
        choices(call, "group", Counter(each.group for each in seen.letters if each.group)),
    ]
    others = None
    if seen.others:
        said = f"{seen.others:,} of the records here are no dead letters: they have no headers ottla.dlq.*"
        others = notice(said, "fair", link("the topic with all its records", path_to("topics", topic)))
    if seen.is_cut:
        most = size_text(limits.CONSOLE_LETTERS_LOOKED_AT_BYTES)
        filters.append(notice(f"The records are large: only the first {most} of this page were looked at.", "fair"))
    table = listing(call, _columns(topic), chosen, text=_text, sort="-time", noun="letter", empty="no letters here")
    return Page(topic, [others, filters, _redrive(call, topic), table, tag("p", more)], TRAIL)


def _redrive(call: PageCall, topic: str) -> Content:
    if not call.may_change:
        return None
    wanted = {name: call.query[name] for name in ("reason", "origin", "group") if name in call.query}
    matching = "all letters with this reason, origin and group" if wanted else "all letters of the topic"
    some = any_form(
        call, path_to("letters", topic, "preview"), submit="Redrive the chosen letters", class_="inline", id_=_FORM
    )
    to = path_to("letters", topic, "redrive", **wanted)
    return tag("p", some, " ", link(f"or {matching}", to), ": a preview comes first.", class_="row")


def _takes(call: PageCall, letter: LetterSeen) -> bool:
    return all(call.query.get(name) in (None, getattr(letter, name)) for name in ("reason", "origin", "group"))


async def _look(call: PageCall, topic: str, back: int) -> LettersSeen:
    """Look at the records of one page: in each partition the last ones, or those so many steps before."""
    bounds = await call.admin.topics.bounds(topic)
    step = max(limits.CONSOLE_LETTERS_LOOKED_AT // max(len(bounds), 1), 1)
    spans = []
    for index, (start, end) in bounds.items():
        last = end - back * step
        if last > start:
            spans.append(Span(topic, index, max(last - step, start), last))
    letters: list[LetterSeen] = []
    others = size_bytes = 0
    if spans:
        async with aclosing(read_letters(call.admin.cluster, spans)) as found:
            async for record, letter in found:
                size_bytes += len(record.key or b"") + len(record.value or b"")
                if letter is None:
                    others += 1
                else:
                    letters.append(_seen(record, letter))
                if size_bytes > limits.CONSOLE_LETTERS_LOOKED_AT_BYTES:
                    break
    is_last = all(end - (back + 1) * step <= start for start, end in bounds.values())
    return LettersSeen(letters, others, is_last, size_bytes > limits.CONSOLE_LETTERS_LOOKED_AT_BYTES)


def _seen(record: ConsumedRecord, letter: DeadLetter) -> LetterSeen:
    return LetterSeen(
        record.partition,
        record.offset,
        record.timestamp,
        letter.topic,
        letter.group or "",
        letter.deliveries,
        letter.reason,
        _cut((letter.error or "").encode()),
        _cut(record.key),
        _cut(record.value),
        len(record.value or b""),
    )


def _cut(data: bytes | None) -> str:
    if data is None:
        return "null"
    most = limits.CONSOLE_CELL_CHARS
    text = data[: most * 4].decode("utf-8", "replace")
    return text if len(text) <= most and len(data) <= most * 4 else f"{text[:most]}…"


def _text(each: LetterSeen) -> str:
    return f"{each.place} {each.origin} {each.group} {each.reason} {each.error} {each.key} {each.value}"


def _why(each: LetterSeen) -> Content:
    error = [tag("br"), tag("small", told(each.error))] if each.error else None
    deliveries = f" after {each.deliveries} deliveries" if each.deliveries and each.deliveries > 1 else None
    return [badge(each.reason, "bad"), deliveries, error]


def _from(each: LetterSeen) -> Content:
    return link(told(each.origin), path_to("topics", each.origin))


def _whose(each: LetterSeen) -> Content:
    return link(told(each.group), named_path("groups", each.group)) if each.group else "-"


def _columns(topic: str) -> tuple[Column[LetterSeen], ...]:
    def choose(each: LetterSeen) -> Markup:
        return tag(
            "input", type="checkbox", name="letter", value=each.place, form=_FORM, aria_label=f"choose {each.place}"
        )

    def place(each: LetterSeen) -> Markup:
        return link(each.place, path_to("letters", topic, each.partition, each.offset))

    return (
        Column("", choose),
        Column("Letter", place, lambda each: (each.partition, each.offset)),
        Column("Time", lambda each: time_text(each.time_ms), lambda each: (each.time_ms, each.partition, each.offset)),
        Column("Reason", _why, lambda each: each.reason),
        Column(
            "Origin", lambda each: link(told(each.origin), path_to("topics", each.origin)), lambda each: each.origin
        ),
        Column("Group", _whose, lambda each: each.group),
        Column("Key", lambda each: code(each.key), lambda each: each.key),
        Column("Value", lambda each: code(each.value)),
        Column("Size", lambda each: size_text(each.size_bytes), lambda each: each.size_bytes, is_number=True),
    )
