"""Tables: columns are declared, rows are any values; sorted, filtered and cut into pages on the server.

The words of the query are `q` (a filter), `sort` (a column; with `-` the other way round) and `page`. So a table of
10,000 rows is a small page, and each view of it has an address.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, tag
from ottla.console.parts.words import visible
from ottla.model import limits

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Column(Generic[R]):
    """A column: its title, what a row shows in it, and by what it is sorted (`key`; None: it cannot be)."""

    title: str
    cell: Callable[[R], Content]
    key: Callable[[R], SupportsRichComparison | None] | None = None
    is_number: bool = False

    @property
    def name(self) -> str:
        """Its word in the query."""
        return self.title.lower().replace(" ", "-")


def plain_table(columns: Sequence[Column[R]], rows: Iterable[R], *, empty: Content = "nothing yet") -> Markup:
    """All rows, in the order given."""
    return _table([tag("th", each.title, scope="col", class_=_class(each)) for each in columns], columns, rows, empty)


@dataclass(frozen=True, slots=True)
class TableCut(Generic[R]):
    """The rows of one page of a table, and how many the filter has found on all pages."""

    shown: Sequence[R]
    found: int
    total: int
    page: int
    pages: int
    order: str


def cut(
    call: PageCall,
    columns: Sequence[Column[R]],
    rows: Sequence[R],
    *,
    text: Callable[[R], str],
    sort: str | None = None,
) -> TableCut[R]:
    """Return the rows that a page will show. Callers that have to ask a broker for more about a row ask for these only,
    and show them with `listed`.
    """
    wanted = call.query.get("q", "").strip().lower()
    found = [row for row in rows if wanted in text(row).lower()] if wanted else list(rows)
    order = call.query.get("sort") or sort or ""
    _sort(columns, found, order)
    per_page = limits.CONSOLE_ROWS
    pages = max(1, -(-len(found) // per_page))
    page = min(max(_number(call.query.get("page")), 1), pages)
    return TableCut(found[(page - 1) * per_page : page * per_page], len(found), len(rows), page, pages, order)


def listing(
    call: PageCall,
    columns: Sequence[Column[R]],
    rows: Sequence[R],
    *,
    text: Callable[[R], str],
    sort: str | None = None,
    empty: Content = "nothing yet",
    noun: str = "row",
) -> Markup:
    """The rows of one page, with a filter, links that sort, and links to other pages. `text` is what the filter looks
    at, `sort` the order unless the query says another.
    """
    return listed(call, columns, cut(call, columns, rows, text=text, sort=sort), empty=empty, noun=noun)


def listed(
    call: PageCall,
    columns: Sequence[Column[R]],
    page: TableCut[R],
    *,
    empty: Content = "nothing yet",
    noun: str = "row",
) -> Markup:
    """The rows of a cut, as `listing` shows them."""
    wanted = call.query.get("q", "").strip()
    counted = f"{page.found:,} of {page.total:,} {noun}s" if wanted else _counted(page.total, noun)
    heads = [_head(call, each, page.order) for each in columns]
    nothing = [f"no {noun} has ", tag("bdi", visible(wanted)), " in it"] if wanted else empty
    return tag(
        "div",
        _filter(call, counted),
        _table(heads, columns, page.shown, nothing),
        _pager(call, page.page, page.pages),
        class_="listing",
    )


def _sort(columns: Sequence[Column[R]], rows: list[R], order: str) -> None:
    name = order.removeprefix("-")
    for each in columns:
        key = each.key
        if key is not None and each.name == name:
            keyed = [(value, row) for row in rows if (value := key(row)) is not None]
            unknown = [row for row in rows if key(row) is None]
            keyed.sort(key=lambda pair: pair[0], reverse=order.startswith("-"))
            rows[:] = [*(row for _, row in keyed), *unknown]


def _head(call: PageCall, column: Column[R], order: str) -> Markup:
    if column.key is None:
        return tag("th", column.title, scope="col", class_=_class(column))
    is_up = order == column.name
    state = "ascending" if is_up else "descending" if order == f"-{column.name}" else None
    to = call.here(sort=f"-{column.name}" if is_up else column.name, page=None)
    return tag("th", tag("a", column.title, href=to), scope="col", class_=_class(column), aria_sort=state)


def _table(heads: Iterable[Markup], columns: Sequence[Column[R]], rows: Iterable[R], empty: Content) -> Markup:
    body = [tag("tr", [tag("td", each.cell(row), class_=_class(each)) for each in columns]) for row in rows]
    if not body:
        return tag("p", empty, class_="empty")
    table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", body))
    return tag("div", table, class_="scroll", tabindex="0")


def _class(column: Column[R]) -> str | None:
    return "number" if column.is_number else None


def _filter(call: PageCall, count: str) -> Markup:
    kept = [
        tag("input", type="hidden", name=name, value=value)
        for name, value in call.query.items()
        if name not in ("q", "page")
    ]
    field = tag(
        "input",
        type="search",
        name="q",
        value=call.query.get("q", ""),
        placeholder="Filter",
        aria_label="Filter",
        data_key="/",
    )
    return tag("form", field, kept, tag("span", count, class_="count"), method="get", class_="filter", role="search")


def _pager(call: PageCall, page: int, pages: int) -> Markup | None:
    if pages == 1:
        return None
    earlier = tag("a", "Previous", href=call.here(page=page - 1), rel="prev") if page > 1 else None
    later = tag("a", "Next", href=call.here(page=page + 1), rel="next") if page < pages else None
    return tag("nav", earlier, tag("span", f"page {page} of {pages}"), later, class_="pager", aria_label="Pages")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 10 else 1
