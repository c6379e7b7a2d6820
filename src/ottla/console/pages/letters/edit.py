"""Editing a letter, and sending what came of it: a form like that for any record, which begins with the letter."""

from __future__ import annotations

from ottla.client.producer.producer import Producer
from ottla.client.registry import RegistryUnreachable
from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.failures import REFUSALS, failed_notice, failure_of
from ottla.console.html import Content, path_to, tag
from ottla.console.pages.letters.browse import TRAIL
from ottla.console.pages.letters.one import letter_at, read_letter
from ottla.console.pages.records.produce import SENDING
from ottla.console.pages.records.typed import (
    can_be_edited,
    content_fields,
    fields_of_record,
    typed_content,
    typed_headers,
)
from ottla.console.parts.forms import field, form
from ottla.console.refusals import WrongInput
from ottla.console.routing import action, page
from ottla.operations.dead_letters import PREFIX, redriven_headers
from ottla.operations.formats import parse_index


@page("/letters/{topic}/{partition}/{offset}/edit")
async def edit_letter(call: PageCall) -> Page:
    record, letter = await letter_at(call)
    if not can_be_edited(record):
        raise WrongInput("the letter is too large to be edited here", "it can be redriven as it is")
    shown = await read_letter(call, record)
    headers = tuple((name, each) for name, each in record.headers if not name.startswith(PREFIX))
    origin = {} if letter is None else {"topic": letter.topic, "partition": str(letter.partition)}
    return _form(call, {**origin, **fields_of_record(shown, headers)})


@action("/letters/{topic}/{partition}/{offset}/send")
async def send_letter(call: PageCall) -> Answer:
    record, _ = await letter_at(call)
    try:
        target = call.text("topic")
        key = await typed_content(call, target, "key")
        value = await typed_content(call, target, "value")
        headers = redriven_headers(record, typed_headers(call))
        partition = await _partition(call, target, call.form.get("partition", "").strip())
        async with Producer(call.admin.cluster, SENDING) as producer:
            sent = await producer.send(target, value, key, headers=headers, partition=partition)
    except (*REFUSALS, RegistryUnreachable) as error:
        status, sentence, hint = failure_of(error, call)
        return _form(call, dict(call.form), failed_notice(sentence, hint), status)
    said = f"The record was sent: it is at offset {sent.offset} of {target}-{sent.partition}"
    return Redirect(path_to("letters", record.topic, record.partition, record.offset), done=said)


def _form(call: PageCall, typed: dict[str, str], said: Content = None, status: int = 200) -> Page:
    topic, place = call.params["topic"], (call.params["partition"], call.params["offset"])
    content: list[Content] = [
        said,
        tag("p", "What you send is a new record. The letter stays as it is."),
        form(
            call,
            path_to("letters", topic, *place, "send"),
            field("topic", "To topic", typed.get("topic", ""), required=True),
            field("partition", "Partition", typed.get("partition", ""), hint="empty: the key decides"),
            *content_fields(call, "TOPIC", typed, value_rows=14),
            submit="Send it",
        ),
    ]
    letter = path_to("letters", topic, *place)
    trail = (*TRAIL, (topic, path_to("letters", topic)), (f"Letter {place[0]}:{place[1]}", letter))
    return Page("Edit a letter", content, trail, status)


async def _partition(call: PageCall, topic: str, text: str) -> int | None:
    count = (await call.admin.topics.describe(topic)).partition_count
    if not text:
        return None
    index = parse_index(text)
    if index is None or index >= count:
        raise WrongInput(f"topic {topic} has the partitions 0 to {count - 1}: there is no {text[:20]!r}")
    return index
