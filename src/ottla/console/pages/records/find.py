"""Searching a topic's records: a form, and a stream of what is found, with progress and an end at any time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from ottla.client.consumer.offsets import PartitionBounds
from ottla.client.consumer.ranges import Span
from ottla.client.metadata import TopicInfo
from ottla.console.answers import Page, PartStream, StreamPart
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, markup_of, path_to, tag
from ottla.console.pages.records.asked import (
    asked_partitions,
    format_fields,
    is_committed,
    kept_query,
    partition_field,
    place_at,
    reader_of,
)
from ottla.console.pages.records.shown import ShownRecord, columns_of, read_records
from ottla.console.pages.topics.frame import topic_of, topic_page, topic_path
from ottla.console.parts.forms import choice, field, query_form
from ottla.console.parts.words import card, notice, stream, told
from ottla.console.refusals import WrongInput
from ottla.console.routing import page
from ottla.console.times import time_of
from ottla.model import limits
from ottla.operations.records.json_paths import WrongPath, json_condition
from ottla.operations.records.reading import Place
from ottla.operations.records.searching import SearchPlace, SearchStep, Wanted, search

_PLACES = (
    ("anywhere", "anywhere"),
    ("key", "in the key"),
    ("value", "in the value"),
    ("header", "in a header"),
    ("path", "by a JSON path"),
)
_PATH_HINT = '$.user.name, $.lines[0].price >= 5, $.tags[*] == "new"'
_PROGRESS_S = 0.2
_TIME_DIGITS = 12  # of a time in milliseconds since 1970; fewer are an offset


@page("/topics/{topic}/search")
async def search_page(call: PageCall) -> Page:
    topic = await call.admin.topics.describe(topic_of(call))
    is_asked = "in" in call.query
    if is_asked:
        _wanted(call)
    return topic_page(
        topic.name,
        card("What to look for", _form(call, topic)),
        _results(call, topic.name) if is_asked else None,
        tab="search",
    )


@page("/topics/{topic}/search/run")
async def search_run(call: PageCall) -> PartStream:
    return PartStream(_run(call, _wanted(call)))


def _form(call: PageCall, topic: TopicInfo) -> Markup:
    query = call.query
    return query_form(
        path_to("topics", topic.name, "search"),
        choice("in", "Look", _PLACES, query.get("in", "")),
        field("text", "Text", query.get("text", ""), hint="of any case"),
        field("path", "JSON path", query.get("path", ""), hint=_PATH_HINT),
        partition_field(call, topic),
        field("since", "From", query.get("since", ""), hint="an offset, or a time: 2026-01-31 12:00"),
        field("until", "To", query.get("until", ""), hint="that one is left out"),
        *format_fields(call),
        submit="Search",
        class_="form wide",
    )


def _results(call: PageCall, topic: str) -> Content:
    heads = [
        tag("th", each.title, scope="col", class_="number" if each.is_number else None)
        for each in columns_of(kept_query(call))
    ]
    table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", id_="found"))
    progress = tag("div", tag("p", "Beginning …"), id_="progress", role="status")
    return [
        tag("div", id_="failed"),
        stream(topic_path(topic, "search", "run", **call.query), progress),
        tag("div", table, class_="scroll", tabindex="0"),
    ]


def _wanted(call: PageCall) -> Wanted:
    place = call.query.get("in", "")
    text = call.query.get("text", "")
    if place not in dict(_PLACES):
        raise WrongInput(f"records cannot be searched by {place[:40]!r}")
    if place != SearchPlace.path.value:
        if not text:
            raise WrongInput("the text to look for is missing")
        return Wanted(SearchPlace(place), text)
    try:
        condition = json_condition(call.text("path"), text)
    except WrongPath as error:
        raise WrongInput(str(error), f"such as {_PATH_HINT}") from None
    return Wanted(SearchPlace.path, text, condition)


async def _run(call: PageCall, wanted: Wanted) -> AsyncGenerator[StreamPart, None]:
    topic = await call.admin.topics.describe(topic_of(call))
    asked = await asked_partitions(call, topic)
    starts = await _bound(call, topic.name, asked.bounds, "since")
    ends = await _bound(call, topic.name, asked.bounds, "until")
    spans = []
    for index, bounds in asked.bounds.items():
        start = min(max(starts.get(index, bounds.start), bounds.start), bounds.end)
        end = max(min(ends.get(index, bounds.end), bounds.end), start)
        if start < end:
            spans.append(Span(topic.name, index, start, end))
    for index, why in sorted(asked.problems.items())[: limits.CONSOLE_MESSAGES_MAX]:
        problem = notice(["Partition ", index, " is left out: ", told(why)], "bad")
        yield StreamPart("failed", problem, append=True)
    hits, told_s = 0, 0.0
    loop = asyncio.get_running_loop()
    begun_s = loop.time()
    steps = search(call.admin.cluster, spans, wanted, reader_of(call), committed=is_committed(call))
    async with aclosing(steps):
        async for step in steps:
            new = step.found[: limits.CONSOLE_HITS_MAX - hits]
            hits += len(new)
            if new:
                rows = await read_records(new, reader_of(call))
                yield StreamPart("found", _rows(call, rows), append=True)
            is_full = hits >= limits.CONSOLE_HITS_MAX
            if step.is_over or is_full or loop.time() - told_s >= _PROGRESS_S:
                told_s = loop.time()
                yield StreamPart("progress", _progress(step, hits, told_s - begun_s, is_full=is_full))
            if is_full:
                return


async def _bound(call: PageCall, topic: str, bounds: Mapping[int, PartitionBounds], name: str) -> Place:
    """The offsets that a field names, by an offset or a time; none if it is empty."""
    text = call.query.get(name, "").strip()
    if not text:
        return {}
    if text.isascii() and text.isdecimal() and len(text) < _TIME_DIGITS:
        return dict.fromkeys(bounds, int(text))
    return await place_at(call, topic, bounds, time_of(text))


def _progress(step: SearchStep, hits: int, seconds: float, *, is_full: bool) -> Markup:
    bar = tag("progress", value=step.passed, max=max(step.total, 1), aria_label="Progress of the search")
    counted = (
        f"{hits:,} found; {step.looked_at:,} records read, {step.passed:,} of {step.total:,} offsets, {seconds:.1f} s"
    )
    end: Content = None
    if is_full:
        end = notice(f"The search ended after {hits:,} records. Narrow it to see others.", "fair")
    elif step.is_over:
        end = tag("p", "The search is over." if hits else "Nothing was found.")
    failure = notice(["Not everything could be read: ", told(step.failure)], "bad") if step.failure else None
    unreadable = notice(f"{step.unreadable:,} batches cannot be read.", "bad") if step.unreadable else None
    return markup_of([bar, tag("p", counted), end, failure, unreadable])


def _rows(call: PageCall, rows: list[ShownRecord]) -> Markup:
    columns = columns_of(kept_query(call))
    return markup_of(
        tag("tr", [tag("td", each.cell(row), class_="number" if each.is_number else None) for each in columns])
        for row in rows
    )
