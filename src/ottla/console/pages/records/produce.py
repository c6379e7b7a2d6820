"""Producing a record that was typed, or one that was there before and was edited.

What the form has is kept when it cannot be sent; a schema of the registry says what does not fit.
"""

from __future__ import annotations

from ottla.client.metadata import TopicInfo
from ottla.client.producer.accumulator import RecordMetadata
from ottla.client.producer.producer import Producer, ProducerOptions
from ottla.client.registry import RegistryUnreachable
from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.failures import REFUSALS, failed_notice, failure_of
from ottla.console.html import Content
from ottla.console.pages.records.asked import reader_of
from ottla.console.pages.records.one import read_record
from ottla.console.pages.records.shown import pretty, read_records
from ottla.console.pages.topics.frame import topic_of, topic_page, topic_path, warn_of_internal
from ottla.console.parts.forms import area, choice, field, form
from ottla.console.parts.words import card, notice
from ottla.console.refusals import WrongInput
from ottla.console.routing import action, page
from ottla.operations.threads import BlockingWork, in_thread
from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.operations.records.contents import ContentFormat
from ottla.operations.records.writing import (
    TypedFormat,
    content_bytes,
    headers_of,
    headers_text,
    typed_again,
)

_FORMATS = (
    (TypedFormat.text.value, "text"),
    (TypedFormat.json.value, "JSON"),
    (TypedFormat.hex.value, "hex"),
    (TypedFormat.registry.value, "JSON, written by the subject's latest schema"),
)
_KEY_FORMATS = ((TypedFormat.none.value, "it has none"), *_FORMATS)
_VALUE_FORMATS = (*_FORMATS, (TypedFormat.none.value, "null: a tombstone"))
SENDING = ProducerOptions(
    linger_ms=0,
    max_request_bytes=limits.CONSOLE_FORM_BYTES_MAX,
    request_timeout_ms=limits.CONSOLE_DELIVERY_MS // 2,
    delivery_timeout_ms=limits.CONSOLE_DELIVERY_MS,
    max_block_ms=limits.CONSOLE_DELIVERY_MS // 2,
    auto_create_topics=False,
)


@page("/topics/{topic}/produce")
async def produce_page(call: PageCall) -> Page:
    topic = await call.admin.topics.describe(topic_of(call))
    if "offset" not in call.query:
        return _form(call, topic, {"key_format": TypedFormat.none.value})
    typed, said = await _again(call, topic.name)
    return _form(call, topic, typed, said)


@action("/topics/{topic}/produce")
async def produce(call: PageCall) -> Answer:
    topic = await call.admin.topics.describe(topic_of(call))
    try:
        key = await _typed(call, topic.name, "key")
        value = await _typed(call, topic.name, "value")
        headers = headers_of(_lines(call.form.get("headers", "")))
        index = call.number("partition", most=limits.INT32_MAX) if call.form.get("partition") else None
        if index is not None and topic.partition(index) is None:
            raise WrongInput(f"topic {topic.name} has no partition {index}")
        written = await _send(call, topic.name, key, value, headers, index)
    except (*REFUSALS, RegistryUnreachable) as error:
        status, sentence, hint = failure_of(error, call)
        return _form(call, topic, dict(call.form), failed_notice(sentence, hint), status)
    to = topic_path(topic.name, "records", written.partition, written.offset)
    return Redirect(to, done=f"The record was written to partition {written.partition}, offset {written.offset}")


async def _send(
    call: PageCall,
    topic: str,
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes | None]],
    partition: int | None,
) -> RecordMetadata:
    async with Producer(call.admin.cluster, SENDING) as producer:
        return await producer.send(topic, value, key, headers=headers, partition=partition)


async def _typed(call: PageCall, topic: str, what: str) -> bytes | None:
    given = call.form.get(f"{what}_format", "")
    try:
        typed = TypedFormat(given)
    except ValueError:
        raise WrongInput(f"there is no format {given[:40]!r}") from None
    text = _lines(call.form.get(what, ""))
    subject = call.form.get(f"{what}_subject", "").strip() or f"{topic}-{what}"
    registry = call.registry if typed is TypedFormat.registry else None
    return await in_thread(BlockingWork.registry, content_bytes, what, text, typed, registry, subject)


def _lines(text: str) -> str:
    """What was typed, with the line ends of its author: browsers send CR LF."""
    return text.replace("\r\n", "\n")


async def _again(call: PageCall, topic: str) -> tuple[dict[str, str], Content]:
    """The fields of a record that is sent again."""
    at = TopicPartition(topic, call.number("partition", most=limits.INT32_MAX))
    record = await read_record(call, at, call.number("offset", most=limits.INT64_MAX - 1))
    (shown,) = await read_records([record], reader_of(call))
    typed = {"partition": str(record.partition), "headers": headers_text(record.headers)}
    for what, data, content in (("key", record.key, shown.key), ("value", record.value, shown.value)):
        if content.format == ContentFormat.registry:
            typed |= {f"{what}_format": TypedFormat.registry.value, what: pretty(content)}
            continue
        kind, text = typed_again(data)
        typed |= {f"{what}_format": kind.value, what: text}
    if len(record.value or b"") > limits.CONSOLE_VALUE_BYTES_MAX:
        raise WrongInput(
            f"a record of more than {limits.CONSOLE_VALUE_BYTES_MAX:,} bytes cannot be edited here",
            "keep its value as a file, and use `ottla produce`",
        )
    return typed, notice(f"This is the record at offset {record.offset:,}. Producing it adds a new one.")


def _form(call: PageCall, topic: TopicInfo, typed: dict[str, str], said: Content = None, status: int = 200) -> Page:
    partitions = [("", "as its key says, or any"), *((str(each.index), str(each.index)) for each in topic.partitions)]
    where = (
        choice("partition", "Partition", partitions, typed.get("partition", ""))
        if len(partitions) <= limits.CONSOLE_BROWSED_PARTITIONS_MAX
        else field("partition", "Partition", typed.get("partition", ""), hint="empty: as its key says, or any")
    )
    content = form(
        call,
        topic_path(topic.name, "produce"),
        *_content_fields(call, topic.name, "key", typed, _KEY_FORMATS, 2),
        *_content_fields(call, topic.name, "value", typed, _VALUE_FORMATS, 10),
        area(
            "headers",
            "Headers",
            typed.get("headers", ""),
            rows=3,
            hint="a line for each, name: value or name: hex:00ff",
        ),
        where,
        submit="Produce",
    )
    return topic_page(
        topic.name, said, warn_of_internal(topic.name), card("A record", content), tab="produce", status=status
    )


def _content_fields(
    call: PageCall, topic: str, what: str, typed: dict[str, str], formats: tuple[tuple[str, str], ...], rows: int
) -> list[Content]:
    offered = (
        formats
        if call.access.registry is not None
        else tuple(each for each in formats if each[0] != TypedFormat.registry)
    )
    fields: list[Content] = [
        choice(f"{what}_format", f"The {what} is", offered, typed.get(f"{what}_format", "")),
        area(what, what.capitalize(), typed.get(what, ""), rows=rows),
    ]
    if call.access.registry is not None:
        hint = f"whose schema writes the {what}; empty: {topic}-{what}"
        fields.append(field(f"{what}_subject", f"Subject of the {what}", typed.get(f"{what}_subject", ""), hint=hint))
    return fields
