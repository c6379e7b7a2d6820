"""One letter: where it comes from and why it is one, what it says, and the way back."""

from __future__ import annotations

import json

from ottla.client.consumer.ranges import ConsumedRecord
from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, path_to, tag
from ottla.console.named import named_path
from ottla.console.pages.letters.browse import TRAIL
from ottla.console.pages.records.one import record_of
from ottla.console.parts.forms import any_form, hidden
from ottla.console.parts.tables import Column, plain_table
from ottla.console.parts.words import badge, block, card, cards, code, facts, link, notice, told
from ottla.console.refusals import RefusedRequest
from ottla.console.routing import page
from ottla.operations.threads import BlockingWork, in_thread
from ottla.model import limits
from ottla.operations.dead_letters import PREFIX, DeadLetter, letter_of
from ottla.operations.edited_payloads import EditFormat, editable
from ottla.operations.formats import parse_index, size_text, time_text
from ottla.operations.payloads import JsonText, PayloadDecoder, PayloadType


@page("/letters/{topic}/{partition}/{offset}")
async def one_letter(call: PageCall) -> Page:
    record, letter = await letter_at(call)
    topic = record.topic
    key, value = await decoded(call, record, of_key=True), await decoded(call, record, of_key=False)
    content: list[Content] = [
        cards(card("Where it comes from", _provenance(letter)), card("What can be done", _ways(call, record, letter)))
        if letter is not None
        else notice("This record is no dead letter: it has no headers ottla.dlq.*", "fair"),
        card("Key", _payload(record.key, key)),
        card("Value", _payload(record.value, value)),
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


async def decoded(call: PageCall, record: ConsumedRecord, *, of_key: bool) -> str | None:
    """A key or value as JSON, if a schema of the registry says how to read it."""
    registry = call.access.registry
    if registry is None or not (record.key if of_key else record.value):
        return None
    decoder = PayloadDecoder(registry, PayloadType.auto, lambda _: None, of_key=of_key)

    def read() -> bytes | None:
        try:
            return decoder.shown(record)
        except Exception:  # a registry that is away, or a payload that only looks as if it had a schema
            return None

    shown = await in_thread(BlockingWork.decoding, read)
    if not isinstance(shown, JsonText):
        return None
    return json.dumps(json.loads(shown), ensure_ascii=False, indent=2)


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
        hidden("letter", letter.place),
        submit="Redrive it as it is",
        class_="inline",
    )
    edit = link("Edit it, then send it", path_to("letters", record.topic, record.partition, record.offset, "edit"))
    if not is_editable(record):
        edit = tag("span", f"It is too large to be edited here ({size_text(len(record.value or b''))}).")
    return [tag("p", redrive), tag("p", edit)]


def _elsewhere(record: ConsumedRecord) -> Markup:
    to = path_to("topics", record.topic, "records", record.partition, record.offset)
    return tag("p", link("The record in other formats, and as a file", to))


def is_editable(record: ConsumedRecord) -> bool:
    most = limits.CONSOLE_VALUE_BYTES_MAX
    return all(len(each or b"") <= most for each in (record.key, record.value))


def _payload(data: bytes | None, shown: str | None) -> Content:
    if data is None:
        return badge("null")
    cut = data[: limits.CONSOLE_VALUE_BYTES_MAX]
    form, text = editable(cut)
    if form is not EditFormat.text and len(cut) < len(data):
        form, text = editable(cut.decode("utf-8", "ignore").encode())
    size = f"{size_text(len(data))}" + (f", cut at {size_text(len(cut))}" if len(cut) < len(data) else "")
    raw = [tag("p", tag("small", f"{size}, as {form}")), block(text)]
    if shown is None:
        return raw
    return [block(shown), tag("details", tag("summary", "as it is stored"), raw)]


def _headers(record: ConsumedRecord) -> Markup:
    columns: tuple[Column[tuple[str, bytes | None]], ...] = (
        Column("Name", lambda each: code(each[0])),
        Column("Value", lambda each: badge("null") if each[1] is None else code(_short(each[1]))),
        Column("", lambda each: badge("of the letter") if each[0].startswith(PREFIX) else None),
    )
    return plain_table(columns, record.headers, empty="no headers")


def _short(data: bytes) -> str:
    _, text = editable(data)
    most = limits.CONSOLE_CELL_CHARS * 5
    return text if len(text) <= most else f"{text[:most]}…"
