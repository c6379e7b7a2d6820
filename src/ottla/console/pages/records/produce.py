"""Producing a record that was typed, or one that was there before and was edited.

What the form has is kept when it cannot be sent; a schema of the registry says what does not fit.
"""

from __future__ import annotations

from ottla.client.metadata import TopicInfo
from ottla.client.producer.accumulator import RecordMetadata
from ottla.client.producer.producer import Producer, ProducerOptions
from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.failures import REFUSALS, failed_notice, failure_of
from ottla.console.html import Content
from ottla.console.pages.records.asked import reader_of
from ottla.console.pages.records.one import read_record
from ottla.console.pages.records.shown import read_records
from ottla.console.pages.records.typed import content_fields, fields_of_record, typed_content, typed_headers
from ottla.console.pages.topics.frame import topic_of, topic_page, topic_path, warn_of_internal
from ottla.console.parts.forms import choice, field, form
from ottla.console.parts.words import card, notice
from ottla.console.refusals import WrongInput
from ottla.console.routing import action, page
from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.operations.records.writing import TypedFormat

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
        return _form(call, topic, {"key_format": TypedFormat.null.value})
    typed, said = await _again(call, topic.name)
    return _form(call, topic, typed, said)


@action("/topics/{topic}/produce")
async def produce(call: PageCall) -> Answer:
    topic = await call.admin.topics.describe(topic_of(call))
    try:
        key = await typed_content(call, topic.name, "key")
        value = await typed_content(call, topic.name, "value")
        headers = typed_headers(call)
        index = call.number("partition", most=limits.INT32_MAX) if call.form.get("partition") else None
        if index is not None and topic.partition(index) is None:
            raise WrongInput(f"topic {topic.name} has no partition {index}")
        written = await _send(call, topic.name, key, value, headers, index)
    except REFUSALS as error:
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


async def _again(call: PageCall, topic: str) -> tuple[dict[str, str], Content]:
    """The fields of a record that is sent again."""
    at = TopicPartition(topic, call.number("partition", most=limits.INT32_MAX))
    record = await read_record(call, at, call.number("offset", most=limits.INT64_MAX - 1))
    (shown,) = await read_records([record], reader_of(call))
    typed = {"partition": str(record.partition), **fields_of_record(shown, record.headers)}
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
        *content_fields(call, topic.name, typed),
        where,
        submit="Produce",
    )
    return topic_page(
        topic.name, said, warn_of_internal(topic.name), card("A record", content), tab="produce", status=status
    )
