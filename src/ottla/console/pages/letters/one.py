"""One letter: where it comes from and why it is one, what it says, and the way back."""

from __future__ import annotations

from ottla.client.consumer.ranges import ConsumedRecord
from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, path_to, tag
from ottla.console.named import named_path
from ottla.console.pages.letters.browse import TRAIL
from ottla.console.pages.records.one import record_of
from ottla.console.pages.records.shown import ShownRecord, pretty, read_records
from ottla.console.pages.records.typed import can_be_edited
from ottla.console.parts.forms import any_form, hidden
from ottla.console.parts.tables import Column, plain_table
from ottla.console.parts.words import badge, block, card, cards, code, facts, link, notice, told
from ottla.console.refusals import RefusedRequest
from ottla.console.routing import page
from ottla.model import limits
from ottla.operations.dead_letters import PREFIX, DeadLetter, letter_of
from ottla.operations.formats import parse_index, size_text, time_text
from ottla.operations.records.contents import ContentFormat, ReadContent, RecordReader
from ottla.operations.records.writing import TypedFormat, typed_again


@page("/letters/{topic}/{partition}/{offset}")
async def one_letter(call: PageCall) -> Page:
    record, letter = await letter_at(call)
    topic = record.topic
    shown = await read_letter(call, record)
    content: list[Content] = [
        cards(card("Where it comes from", _provenance(letter)), card("What can be done", _ways(call, record, letter)))
        if letter is not None
        else notice("This record is no dead letter: it has no headers ottla.dlq.*", "fair"),
        card("Key", _payload(record.key, shown.key)),
        card("Value", _payload(record.value, shown.value)),
        card("Headers", _headers(record)),
        _elsewhere(record),
    ]
    return Page(f"Letter {record.partition}:{record.offset}", content, (*TRAIL, (topic, path_to("letters", topic))))


async def letter_at(call: PageCall) -> tuple[ConsumedRecord, DeadLetter | None]:
    """The record that the path names. Raises RefusedRequest if it is not there."""
    topic, index = call.params["topic"], parse_index(call.params["partition"])
    if index is None or (await call.admin.topics.describe(topic)).partition(index) is None:
        raise RefusedRequest(404, f"topic {topic} has no such partition")
    record = await record_of(call)
    return record, letter_of(record)


async def read_letter(call: PageCall, record: ConsumedRecord) -> ShownRecord:
    """What the key and the value of a letter say, by the schemas of the registry where they have one."""
    (shown,) = await read_records([record], RecordReader(call.access.registry))
    return shown


def _provenance(letter: DeadLetter) -> Markup:
    origin = path_to("topics", letter.topic, "records", letter.partition, letter.offset)
    pairs: list[tuple[Content, Content]] = [
        ("Topic", link(told(letter.topic), path_to("topics", letter.topic))),
        ("Partition and offset", link(f"{letter.partition}:{letter.offset}", origin)),
        ("Written there", time_text(letter.timestamp)),
        ("Given up", time_text(letter.record.timestamp)),
        ("Reason", badge(letter.reason, "bad")),
    ]
    if letter.error:
        pairs.append(("Error", told(letter.error)))
    if letter.group is not None:
        pairs.append(("Share group", link(told(letter.group), named_path("groups", letter.group))))
    if letter.deliveries is not None:
        pairs.append(("Deliveries", letter.deliveries))
    return facts(pairs)


def _ways(call: PageCall, record: ConsumedRecord, letter: DeadLetter) -> Content:
    if not call.may_change:
        return tag("p", "The console is read-only.")
    redrive = any_form(
        call,
        path_to("letters", record.topic, "preview"),
        hidden("letter", str(letter.place)),
        submit="Redrive it as it is",
        class_="inline",
    )
    edit = link("Edit it, then send it", path_to("letters", record.topic, record.partition, record.offset, "edit"))
    if not can_be_edited(record):
        edit = tag("span", f"It is too large to be edited here ({size_text(len(record.value or b''))}).")
    return [tag("p", redrive), tag("p", edit)]


def _elsewhere(record: ConsumedRecord) -> Markup:
    to = path_to("topics", record.topic, "records", record.partition, record.offset)
    return tag("p", link("The record in other formats, and as a file", to))


def _payload(data: bytes | None, read: ReadContent) -> Content:
    if data is None:
        return badge("null")
    cut = data[: limits.CONSOLE_VALUE_BYTES_MAX]
    kind, text = typed_again(cut)
    if kind is not TypedFormat.text and len(cut) < len(data):  # it was cut within a character
        kind, text = typed_again(cut.decode("utf-8", "ignore").encode())
    size = f"{size_text(len(data))}" + (f", cut at {size_text(len(cut))}" if len(cut) < len(data) else "")
    raw = [tag("p", tag("small", f"{size}, as {kind}")), block(text)]
    if read.format != ContentFormat.registry:
        return [notice(told(read.note), "fair"), *raw] if read.note and len(cut) == len(data) else raw
    return [block(pretty(read)), tag("details", tag("summary", "as it is stored"), raw)]


def _headers(record: ConsumedRecord) -> Markup:
    columns: tuple[Column[tuple[str, bytes | None]], ...] = (
        Column("Name", lambda each: code(each[0])),
        Column("Value", lambda each: badge("null") if each[1] is None else code(_short(each[1]))),
        Column("", lambda each: badge("of the letter") if each[0].startswith(PREFIX) else None),
    )
    return plain_table(columns, record.headers, empty="no headers")


def _short(data: bytes) -> str:
    _, text = typed_again(data)
    most = limits.CONSOLE_CELL_CHARS * 5
    return text if len(text) <= most else f"{text[:most]}…"
