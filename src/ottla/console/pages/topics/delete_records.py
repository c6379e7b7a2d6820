"""Deleting the first records of partitions: a question, then a preview with offsets and counts, then the form.

The form carries the offsets of the preview, so that what is deleted is what was shown.
"""

from __future__ import annotations

from ottla.client.consumer.offsets import NOT_FOUND, PartitionBounds, Time
from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.html import Content, path_to
from ottla.console.pages.records.places import place_of, place_text
from ottla.console.pages.topics.deletion import check_typed
from ottla.console.pages.topics.frame import topic_of, topic_page, topic_path, warn_of_internal
from ottla.console.parts.forms import choice, field, form, hidden, query_form
from ottla.console.parts.tables import Column, plain_table
from ottla.console.parts.words import card, notice
from ottla.console.refusals import WrongInput
from ottla.console.routing import action, page
from ottla.console.times import time_of
from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.operations.records.reading import Place

_ALL = "all"
_BEFORE = (("offset", "before an offset"), ("time", "before a time"), (_ALL, "all there are now"))


@page("/topics/{topic}/delete-records")
async def delete_records_page(call: PageCall) -> Page:
    topic = await call.admin.topics.describe(topic_of(call))
    asked = call.query.get("before", "")
    partitions = [_ALL, *(str(each.index) for each in topic.partitions[: limits.CONSOLE_ROWS_MAX])]
    question = query_form(
        path_to("topics", topic.name, "delete-records"),
        choice("partition", "Partition", partitions, call.query.get("partition", _ALL)),
        choice("before", "Records", _BEFORE, asked or "offset"),
        field("offset", "Offset", call.query.get("offset", ""), hint="this offset and all later ones stay"),
        field("time", "Time", call.query.get("time", ""), hint="2026-01-31 12:00, in the console's time zone"),
        submit="Show what would be deleted",
    )
    preview = await _preview(call, topic.name, [each.index for each in topic.partitions]) if asked else None
    return topic_page(
        topic.name, warn_of_internal(topic.name), card("Which records", question), preview, title="Delete records"
    )


@action("/topics/{topic}/delete-records/now")
async def delete_records(call: PageCall) -> Answer:
    topic = topic_of(call)
    check_typed(call, topic)
    before = place_of(call.text("before"))
    moved = await call.admin.topics.delete_records(topic, before)
    return Redirect(topic_path(topic), done=f"The first records of {len(moved)} partitions of {topic} were deleted")


async def _preview(call: PageCall, topic: str, indexes: list[int]) -> Content:
    wanted = call.text("partition", _ALL)
    chosen = indexes if wanted == _ALL else [call.number("partition", most=limits.INT32_MAX)]
    if len(chosen) > limits.CONSOLE_ROWS_MAX:
        raise WrongInput(f"a preview has at most {limits.CONSOLE_ROWS_MAX} partitions", "choose one partition")
    asked = [TopicPartition(topic, index) for index in chosen]
    bounds = {each.partition: found for each, found in (await call.admin.topics.bounds_each(asked)).all().items()}
    before = await _places(call, topic, bounds)
    lost = {index: max(before[index] - bounds[index].start, 0) for index in before}
    columns: tuple[Column[int], ...] = (
        Column("Partition", lambda index: index, is_number=True),
        Column("First offset now", lambda index: f"{bounds[index].start:,}", is_number=True),
        Column("First offset then", lambda index: f"{max(before[index], bounds[index].start):,}", is_number=True),
        Column("Records that are deleted", lambda index: f"{lost[index]:,}", is_number=True),
    )
    total = sum(lost.values())
    if not total:
        return notice("No record would be deleted.", "good")
    deletion = form(
        call,
        topic_path(topic, "delete-records", "now"),
        hidden("before", place_text({index: before[index] for index, count in lost.items() if count})),
        field("name", "Type the topic's name", required=True),
        submit=f"Delete {total:,} records",
        is_dangerous=True,
    )
    table = plain_table(columns, [index for index, count in lost.items() if count])
    return card(f"{total:,} records would be deleted for good", table, deletion)


async def _places(call: PageCall, topic: str, bounds: dict[int, PartitionBounds]) -> Place:
    """The new first offset of each partition."""
    how = call.text("before")
    if how == "offset":
        offset = call.number("offset")
        return {index: min(offset, found.end) for index, found in bounds.items()}
    if how == "time":
        at = Time(time_of(call.text("time")))
        answers = await call.admin.topics.offsets(topic, at, bounds)
        return {
            index: bounds[index].end if found.offset == NOT_FOUND else found.offset for index, found in answers.items()
        }
    if how != _ALL:
        raise WrongInput(f"records are chosen by offset, by time, or all, not by {how[:40]!r}")
    return {index: found.end for index, found in bounds.items()}
