"""A question in SQL as the query of a page has it, and the process that answers it, with the rights of the visitor.

Rules:
- The words of the query are `query`, `rows`, and for a chart `chart`, `x` and `y`: a result has an address.
- A few questions run at a time, for all visitors and for each of them, however many sessions a visitor has.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from typing import NamedTuple

from ottla.console.call import PageCall
from ottla.console.html import Markup
from ottla.console.parts.words import code, notice
from ottla.console.refusals import RefusedRequest, WrongInput
from ottla.model import limits
from ottla.observe.installing import install_command
from ottla.sql.process import is_installed, run_task
from ottla.sql.task import SqlForm, SqlFrame, SqlTask

_MISSING = "SQL needs packages that are not installed where the console runs"
_LATER = "try again in a moment"
CHARTS = ("", "bar", "line")


class SqlQuestion(NamedTuple):
    """What is asked, and what is shown of the answer."""

    text: str
    rows: int = limits.SQL_ROWS
    chart: str = ""
    x: str = ""
    y: str = ""

    @property
    def words(self) -> dict[str, str | int | None]:
        """The question as the query of an address."""
        rows = self.rows if self.rows != limits.SQL_ROWS else None
        return {
            "query": self.text,
            "rows": rows,
            **{n: v or None for n, v in zip(["chart", "x", "y"], self[2:], strict=True)},
        }


def question_of(call: PageCall) -> SqlQuestion:
    """The question in the query of a page. Raises WrongInput."""
    text = call.text("query", "")
    if len(text) > limits.SQL_QUERY_CHARS_MAX:
        raise WrongInput(f"a query has at most {limits.SQL_QUERY_CHARS_MAX} characters, not {len(text)}")
    chart = call.text("chart", "")
    if chart not in CHARTS:
        raise WrongInput("a chart has bars or lines", "chart=bar or chart=line")
    rows = call.number("rows", limits.SQL_ROWS, least=1, most=limits.SQL_ROWS_MAX)
    return SqlQuestion(text, rows, chart, call.text("x", ""), call.text("y", ""))


def check_installed() -> None:
    """Raises WrongInput with the command that installs what is missing."""
    if not is_installed():
        raise WrongInput(_MISSING, install_command("sql"))


def not_installed() -> Markup:
    """What a page says where SQL cannot be asked."""
    return notice(_MISSING, "fair", code(install_command("sql")))


async def answers(call: PageCall, text: str, form: SqlForm, rows_max: int) -> AsyncGenerator[SqlFrame, None]:
    """The frames of the answer. Closing the generator ends the query."""
    check_installed()
    if not text:
        raise WrongInput("the query is missing", "select * from topic('orders') limit 10 is one")
    access = call.access
    registry = None if access.registry is None else access.registry.options
    task = SqlTask(text, access.client_options, registry, form, rows_max, limits.CONSOLE_CELL_CHARS)
    seconds = limits.SQL_S if form is SqlForm.TABLE else limits.SQL_EXPORT_S
    with _place(call):
        async with aclosing(run_task(task, seconds)) as frames:
            async for each in frames:
                yield each


@contextmanager
def _place(call: PageCall) -> Iterator[None]:
    """A context in which a question runs. Raises RefusedRequest if there is no place for it."""
    queries = call.sessions.queries
    if queries.of(call.user) >= limits.SQL_PER_USER_MAX:
        raise RefusedRequest(503, f"{limits.SQL_PER_USER_MAX} queries of yours are running already", _LATER)
    if queries.of_all >= limits.SQL_AT_ONCE_MAX:
        raise RefusedRequest(503, f"{limits.SQL_AT_ONCE_MAX} queries are running already", _LATER)
    taken = queries.take(call.user, 1)
    try:
        yield
    finally:
        taken.give_back()
