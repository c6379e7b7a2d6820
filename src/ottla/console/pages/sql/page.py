"""The pages of SQL: the question, its result as a stream and as a whole page, and its rows as a file."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from ottla.console.answers import Answer, FileAnswer, Page, PartStream
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, path_to, tag
from ottla.console.pages.sql import result
from ottla.console.pages.sql.asking import SqlQuestion, answers, not_installed, question_of
from ottla.console.pages.sql.result import SqlResult
from ottla.console.pages.topics.seen import topics_seen
from ottla.console.parts.forms import area, field, query_form
from ottla.console.parts.words import card, code, link, notice, stream, told
from ottla.console.refusals import WrongInput
from ottla.console.routing import page
from ottla.model import limits
from ottla.sql.process import is_installed
from ottla.sql.task import FrameKind, SqlForm, SqlFrame

_TOPICS_SHOWN = 3
_EXAMPLES = (
    "select * from topic(TOPIC, last := 10)",
    "select key, count(*) as records from topic(TOPIC) group by key order by records desc limit 20",
    "select date_trunc('minute', timestamp) as minute, count(*) as records from topic(TOPIC, since := '1h') "
    "group by minute order by minute",
)
_TYPES = {SqlForm.CSV: "text/csv; charset=utf-8", SqlForm.PARQUET: "application/vnd.apache.parquet"}


@page("/sql")
async def sql_page(call: PageCall) -> Page:
    question = question_of(call)
    if not is_installed():
        return Page("SQL", not_installed())
    if not question.text:
        return Page("SQL", [_form(question), await _examples(call)])
    places = [
        tag("div", id_=result.FAILED),
        tag("div", id_=result.WARNINGS),
        tag("p", id_=result.STATE, class_="count", role="status"),
        tag("div", id_=result.CHART),
        tag("div", id_=result.TABLE),
    ]
    whole = tag("noscript", link("Show the result", path_to("sql", "table", **question.words)))
    shown = card("Result", stream(path_to("sql", "run", **question.words), [places, whole]))
    return Page("SQL", [_form(question), shown])


@page("/sql/run")
async def run(call: PageCall) -> PartStream:
    return PartStream(SqlResult(question_of(call)).parts(call))


@page("/sql/table")
async def table(call: PageCall) -> Page:
    """The result as one page, for browsers without scripts."""
    found = SqlResult(question_of(call))
    async with aclosing(found.parts(call)) as parts:
        async for _ in parts:
            pass
    if found.error:
        raise WrongInput(found.error)
    warnings = [notice(told(each), "fair") for each in found.warnings]
    content = [warnings, tag("p", found.summary(), class_="count"), found.chart(), found.table()]
    return Page("SQL", [_form(found.question), card("Result", content)])


@page("/sql/export")
async def export(call: PageCall) -> Answer:
    """The rows as a file. Its first part is awaited, so that a query that fails is a page and not a file."""
    try:
        form = SqlForm(call.text("format"))
    except ValueError:
        raise WrongInput("a file is csv or parquet") from None
    if form not in _TYPES:
        raise WrongInput("a file is csv or parquet")
    frames = answers(call, question_of(call).text, form, limits.SQL_EXPORT_ROWS_MAX)
    call.sent.push_async_callback(frames.aclose)
    try:
        async for each in frames:
            if each.kind is FrameKind.ERROR:
                raise WrongInput(each.content)
            if each.kind in (FrameKind.BYTES, FrameKind.DONE):
                return FileAnswer(_bytes(each, frames), _TYPES[form], f"result.{form}")
    except BaseException:
        await frames.aclose()
        raise
    raise AssertionError("the last frame is one of these")


async def _bytes(first: SqlFrame, frames: AsyncGenerator[SqlFrame, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(frames):
        if first.kind is FrameKind.BYTES:
            yield first.content
        async for each in frames:
            if each.kind is FrameKind.BYTES:
                yield each.content
            elif each.kind is FrameKind.ERROR:
                raise WrongInput(each.content)  # the file stays incomplete, and the browser says so


def _form(question: SqlQuestion) -> Markup:
    hint: Content = [
        code("topic('orders')"),
        " is a table with topic, partition, ",
        code('"offset"'),
        ", timestamp, timestamp_type, key, value, headers; ",
        code("topic('orders', since := '1h', last := 1000)"),
        " reads less. A query only reads, with your rights, and takes at most ",
        f"{limits.SQL_S} s.",
    ]
    most = limits.SQL_ROWS_MAX
    asked = query_form(
        path_to("sql"),
        area("query", "Query (DuckDB)", question.text, hint=hint, rows=5, required=True),
        field("rows", "Rows shown", question.rows, type_="number", hint=f"at most {most:,}"),
        submit="Run",
    )
    return card("Query", asked)


async def _examples(call: PageCall) -> Markup:
    every = await topics_seen(call.access).all()
    names = [each.name for each in every if not each.name.startswith("_")]
    shown = names[:_TOPICS_SHOWN]
    if not shown:
        return card("Examples", tag("p", "There is no topic yet.", class_="empty"))
    queries = [query for name in shown for query in _queries(name)]
    items = [tag("li", link(code(each), path_to("sql", query=each))) for each in queries]
    return card("Examples", tag("ul", items))


def _queries(topic: str) -> list[str]:
    quoted = "'" + topic.replace("'", "''") + "'"
    return [each.replace("TOPIC", quoted) for each in _EXAMPLES]
