"""Editing a letter, and sending what came of it: as text, as hexadecimal digits, or as JSON by a schema."""

from __future__ import annotations

import json
from typing import NamedTuple

from ottla.client.producer.producer import Producer
from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.html import Content, path_to, tag
from ottla.console.pages.letters.browse import TRAIL
from ottla.console.pages.letters.one import decoded, is_editable, letter_at
from ottla.console.pages.records.produce import SENDING
from ottla.console.parts.forms import area, choice, field, form
from ottla.console.parts.words import code, notice
from ottla.console.refusals import WrongInput
from ottla.console.routing import action, page
from ottla.operations.threads import BlockingWork, in_thread
from ottla.operations.dead_letters import PREFIX, REDRIVEN_FROM
from ottla.operations.edited_payloads import EditFormat, editable, edited, headers_of, headers_text
from ottla.operations.errors import CommandError
from ottla.operations.formats import parse_index
from ottla.operations.payloads import PayloadType, SubjectEncoder

_FORMATS = (
    (EditFormat.text.value, "text"),
    (EditFormat.hex.value, "hexadecimal digits"),
    (EditFormat.null.value, "null"),
)
_BY_SCHEMA = (EditFormat.schema.value, "JSON, encoded by the latest schema of the subject")


class EditedLetter(NamedTuple):
    """What the form has: texts, each with its format."""

    topic: str
    partition: str
    key: str
    key_format: str
    value: str
    value_format: str
    headers: str


@page("/letters/{topic}/{partition}/{offset}/edit")
async def edit_letter(call: PageCall) -> Page:
    record, letter = await letter_at(call)
    if not is_editable(record):
        raise WrongInput("the letter is too large to be edited here", "it can be redriven as it is")
    key_format, key = editable(record.key)
    value_format, value = editable(record.value)
    by_key, by_value = await decoded(call, record, of_key=True), await decoded(call, record, of_key=False)
    if by_key is not None:
        key_format, key = EditFormat.schema, by_key
    if by_value is not None:
        value_format, value = EditFormat.schema, by_value
    headers = tuple((name, each) for name, each in record.headers if not name.startswith(PREFIX))
    origin = "" if letter is None else letter.topic
    partition = "" if letter is None else str(letter.partition)
    return _form(call, EditedLetter(origin, partition, key, key_format, value, value_format, headers_text(headers)))


@action("/letters/{topic}/{partition}/{offset}/send")
async def send_letter(call: PageCall) -> Answer:
    given = EditedLetter(**{name: call.form.get(name, "") for name in EditedLetter._fields})
    record, _ = await letter_at(call)
    try:
        target = call.text("topic")
        key = await _payload(call, f"{target}-key", given.key_format, given.key)
        value = await _payload(call, f"{target}-value", given.value_format, given.value)
        headers = headers_of(given.headers or "[]")
        partition = await _partition(call, target, given.partition.strip())
    except (WrongInput, ValueError, CommandError) as error:
        return _form(call, given, str(error))
    headers = [(name, each) for name, each in headers if not name.startswith(PREFIX)]
    headers.append((REDRIVEN_FROM, f"{record.topic}-{record.partition}@{record.offset}".encode()))
    async with Producer(call.admin.cluster, SENDING) as producer:
        sent = await producer.send(target, value, key, headers=headers, partition=partition)
    said = f"The record was sent: it is at offset {sent.offset} of {target}-{sent.partition}"
    return Redirect(path_to("letters", record.topic, record.partition, record.offset), done=said)


def _form(call: PageCall, given: EditedLetter, wrong: str = "") -> Page:
    topic, place = call.params["topic"], (call.params["partition"], call.params["offset"])
    formats = [*_FORMATS, _BY_SCHEMA] if call.access.registry is not None else list(_FORMATS)
    content: list[Content] = [
        notice(wrong, "bad", "nothing was sent") if wrong else None,
        tag("p", "What you send is a new record. The letter stays as it is."),
        form(
            call,
            path_to("letters", topic, *place, "send"),
            field("topic", "To topic", given.topic, required=True),
            field("partition", "Partition", given.partition, hint="empty: the key decides"),
            choice("key_format", "The key is", formats, given.key_format),
            area("key", "Key", given.key, rows=2),
            choice("value_format", "The value is", formats, given.value_format),
            area("value", "Value", given.value, rows=14),
            area(
                "headers",
                "Headers",
                given.headers,
                rows=5,
                hint=["JSON: ", code('[["name", "text"], ["name", null], ["name", {"hex": "00ff"}]]')],
            ),
            submit="Send it",
        ),
    ]
    letter = path_to("letters", topic, *place)
    trail = (*TRAIL, (topic, path_to("letters", topic)), (f"Letter {place[0]}:{place[1]}", letter))
    return Page("Edit a letter", content, trail, 400 if wrong else 200)


async def _payload(call: PageCall, subject: str, format_: str, text: str) -> bytes | None:
    if format_ not in set(EditFormat):
        raise WrongInput(f"there is no format {format_[:40]!r}")
    if format_ != EditFormat.schema:
        return edited(EditFormat(format_), text)
    registry = call.registry
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WrongInput(f"this is no JSON that can be read: {error}") from None
    encoder = await in_thread(BlockingWork.registry, SubjectEncoder, registry, subject, PayloadType.auto)
    return await in_thread(BlockingWork.registry, encoder.encode, value)


async def _partition(call: PageCall, topic: str, text: str) -> int | None:
    count = (await call.admin.topics.describe(topic)).partition_count
    if not text:
        return None
    index = parse_index(text)
    if index is None or index >= count:
        raise WrongInput(f"topic {topic} has the partitions 0 to {count - 1}: there is no {text[:20]!r}")
    return index
