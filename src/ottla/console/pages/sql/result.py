"""The result of a question: rows as they come, what was read, what is wrong, and at the end a chart."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from ottla.console.answers import StreamPart
from ottla.console.call import PageCall
from ottla.console.failures import failed_notice
from ottla.console.html import Content, Markup, markup_of, path_to, tag
from ottla.console.pages.sql.asking import SqlQuestion, answers
from ottla.console.pages.sql.chart import chart_form, chart_of
from ottla.console.parts.words import link, notice, told
from ottla.model import limits
from ottla.sql.task import FrameKind, SqlForm

_NUMBERS = ("INTEGER", "BIGINT", "HUGEINT", "SMALLINT", "TINYINT", "DOUBLE", "FLOAT", "DECIMAL", "NUMBER")
STATE, WARNINGS, TABLE, BODY, CHART, FAILED = (
    "sql-state",
    "sql-warnings",
    "sql-table",
    "sql-body",
    "sql-chart",
    "failed",
)


class SqlResult:
    """What has come so far."""

    def __init__(self, question: SqlQuestion) -> None:
        self.question = question
        self.columns: list[tuple[str, str]] = []
        self.rows: list[list[str | None]] = []
        self.warnings: list[str] = []
        self.read = 0
        self.has_more = False
        self.error = ""

    async def parts(self, call: PageCall) -> AsyncGenerator[StreamPart, None]:
        """The parts of the page, one after the other."""
        yield StreamPart(STATE, markup_of("starting …"))
        async with aclosing(answers(call, self.question.text, SqlForm.TABLE, self.question.rows)) as frames:
            async for kind, content in frames:
                match kind:
                    case FrameKind.READ:
                        self.read = content
                        yield StreamPart(STATE, markup_of(f"{self.read:,} records read …"))
                    case FrameKind.WARNING:
                        self.warnings.append(content)
                        yield StreamPart(WARNINGS, notice(told(content), "fair"), append=True)
                    case FrameKind.COLUMNS:
                        self.columns = [(name, kind) for name, kind in content]
                        yield StreamPart(TABLE, self.table())
                    case FrameKind.ROWS:
                        self.rows += content
                        yield StreamPart(BODY, markup_of(self._rows(content)), append=True)
                    case FrameKind.DONE:
                        self.has_more = content
                    case FrameKind.ERROR:
                        self.error = content
                        yield StreamPart(FAILED, failed_notice(told(content), ""))
                    case _:
                        pass
        yield StreamPart(STATE, markup_of(self.summary()))
        if self.columns and not self.error:
            yield StreamPart(CHART, markup_of(self.chart()))

    def table(self) -> Markup:
        """The table with the rows so far."""
        heads = [
            tag("th", told(name), " ", tag("small", told(kind)), scope="col", class_=_class(kind))
            for name, kind in self.columns
        ]
        body = tag("tbody", self._rows(self.rows), id_=BODY)
        return tag("div", tag("table", tag("thead", tag("tr", heads)), body), class_="scroll", tabindex="0")

    def chart(self) -> Content:
        return [chart_of(self.question, self.columns, self.rows), chart_form(self.question, self.columns)]

    def summary(self) -> Content:
        """What there is, in a line, and where it can be had as a file."""
        if self.error:
            return f"{self.read:,} records read"
        count = f"{len(self.rows):,} row" + ("" if len(self.rows) == 1 else "s")
        said = f"the first {count}; there are more" if self.has_more else count
        saved = [
            [" · ", link(form.upper(), path_to("sql", "export", query=self.question.text, format=form.value))]
            for form in (SqlForm.CSV, SqlForm.PARQUET)
        ]
        hint = f" (at most {limits.SQL_EXPORT_ROWS_MAX:,} rows)"
        return [f"{said}, {self.read:,} records read · all rows as a file", saved, tag("small", hint)]

    def _rows(self, rows: list[list[str | None]]) -> list[Markup]:
        kinds = [_class(kind) for _, kind in self.columns]
        return [
            tag("tr", [tag("td", _cell(each), class_=kind) for each, kind in zip(row, kinds, strict=True)])
            for row in rows
        ]


def _class(kind: str) -> str | None:
    return "number" if kind.upper().startswith(_NUMBERS) and not kind.endswith("[]") else None


def _cell(text: str | None) -> Content:
    return tag("small", "null") if text is None else told(text)
