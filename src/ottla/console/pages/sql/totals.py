"""Totals of a topic while it is written: counted and summed by a field, renewed now and then, and changeable as SQL."""

from __future__ import annotations

from contextlib import aclosing

from ottla.client.registry import RegistryError, RegistryUnreachable
from ottla.client.registry_calls import version_of
from ottla.console.answers import Fragment, Page
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, path_to, tag
from ottla.console.pages.sql.asking import SqlQuestion, not_installed
from ottla.console.pages.sql.chart import chart_of
from ottla.console.pages.sql.result import SqlResult
from ottla.console.pages.sql.totals_query import RECORDS, ValueFields, fields_of, sum_name, totals_query
from ottla.console.pages.topics.frame import topic_of, topic_page, topic_path
from ottla.console.parts.forms import field, query_form
from ottla.console.parts.typed import TypedForm
from ottla.console.parts.words import card, link, live, notice, told
from ottla.console.refusals import WrongInput
from ottla.console.routing import page
from ottla.model import limits
from ottla.operations.threads import BlockingWork, in_thread
from ottla.sql.process import is_installed


@page("/topics/{topic}/totals")
async def totals(call: PageCall) -> Page:
    topic = (await call.admin.topics.describe(topic_of(call))).name
    if not is_installed():
        return topic_page(topic, not_installed(), tab="totals")
    fields = await _fields(call, topic)
    typed = TypedForm(call, given=call.query)
    shown: Content = None
    try:
        question = _question(call, topic, fields)
        asked = {name: call.query[name] for name in ("by", "sum", "last") if name in call.query}
        part = topic_path(topic, "totals", "part", **asked)
        whole = tag("noscript", link("Show the totals", path_to("sql", "table", **question.words)))
        change = link("Change it as SQL", path_to("sql", **question.words))
        about = tag("p", "Renewed every ", f"{limits.CONSOLE_TOTALS_EVERY_S} s. ", change, class_="hint")
        shown = card("Totals", live(part, limits.CONSOLE_TOTALS_EVERY_S), whole, about)
    except WrongInput as wrong:
        typed = TypedForm(call, wrong, given=call.query)
    return topic_page(topic, typed.said, _form(topic, fields, typed), shown, tab="totals", status=typed.status)


@page("/topics/{topic}/totals/part")
async def totals_part(call: PageCall) -> Fragment:
    topic = (await call.admin.topics.describe(topic_of(call))).name
    found = SqlResult(_question(call, topic, await _fields(call, topic)))
    async with aclosing(found.parts(call)) as parts:
        async for _ in parts:
            pass
    if found.error:
        raise WrongInput(found.error)
    warnings = [notice(told(each), "fair") for each in found.warnings]
    read = tag("p", f"{found.read:,} records read", class_="count")
    return Fragment([warnings, chart_of(found.question, found.columns, found.rows), found.table(), read])


def _question(call: PageCall, topic: str, fields: ValueFields) -> SqlQuestion:
    """What the words of the query ask for. Raises WrongInput."""
    by, of = call.query.get("by", "").strip(), call.query.get("sum", "").strip()
    last = call.number("last", limits.CONSOLE_TOTALS_LAST, least=1, most=limits.CONSOLE_TOTALS_LAST_MAX)
    query = totals_query(topic, fields, by, of, last)
    if len(query) > limits.SQL_QUERY_CHARS_MAX:
        raise WrongInput("the names of the fields are too long")
    drawn = ("bar", by, sum_name(of) if of else RECORDS) if by else ("", "", "")
    return SqlQuestion(query, limits.SQL_ROWS, *drawn)


async def _fields(call: PageCall, topic: str) -> ValueFields:
    """The fields of the topic's values, as far as a registry tells this user."""
    if call.access.registry is None:
        return fields_of(None)
    try:
        return fields_of(await in_thread(BlockingWork.registry, version_of, call.registry, f"{topic}-value", "latest"))
    except (RegistryError, RegistryUnreachable):
        return fields_of(None)


def _form(topic: str, fields: ValueFields, typed: TypedForm) -> Markup:
    known = "a field of the values, such as country or user.country; empty: all records together"
    most = limits.CONSOLE_TOTALS_LAST_MAX
    entry = query_form(
        topic_path(topic, "totals"),
        field("by", "By", options=fields.texts, hint=known, typed=typed),
        field("sum", "Sum of", options=fields.numbers, hint="a field of numbers; empty: only counted", typed=typed),
        field(
            "last",
            "Of the last records of each partition",
            limits.CONSOLE_TOTALS_LAST,
            type_="number",
            hint=f"at most {most:,}: what is older is not in the totals",
            typed=typed,
        ),
        submit="Show totals",
        class_="form wide",
    )
    said = None if fields.is_typed else tag("p", "No schema is known: values are read as JSON.", class_="hint")
    return card("What to add up", said, entry)
