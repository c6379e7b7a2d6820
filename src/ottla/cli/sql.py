"""`ottla sql`: query topics with SQL, without Spark and without Java."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, client_options, registry_urls
from ottla.cli.profile.chosen import registry_access, registry_or_profile
from ottla.cli.registry.calls import DEFAULT_URL
from ottla.cli.terminal.plain import print_warning
from ottla.cli.terminal.stdin_text import read_stdin_text
from ottla.operations.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ROWS_AT_ONCE = 1_000


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Topics and records")(sql)


def sql(
    query: Annotated[str, typer.Argument(help="\"select … from topic('orders')\"; - reads it from stdin.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print each row as a line of JSON.")] = False,
    max_rows: Annotated[int | None, typer.Option("--max", "-n", min=1, help="At most this many rows.")] = None,
    registry: Annotated[
        str,
        typer.Option(
            "--registry",
            envvar="OTTLA_REGISTRY",
            help="Schema registry: http://HOST:PORT, or off.",
            callback=registry_or_profile,
        ),
    ] = DEFAULT_URL,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Run a SQL query (DuckDB) over topics: `topic('orders')` is a table.

    Its columns are topic, partition, "offset" (a reserved word, so in quotes), timestamp, timestamp_type, key, value
    and headers. Keys and values are typed if the schema registry has a schema for them, else text. Conditions on
    partition, "offset" and timestamp limit what is read from the log.
    """
    try:
        from ottla.sql import Sql, SqlError, fetch_rows
    except ImportError as error:
        from ottla.observe.installing import install_command

        raise CommandError(
            f"`ottla sql` needs a package that is not installed ({error})", install_command("sql")
        ) from None

    text = read_stdin_text("the query") if query == "-" else query
    text.encode()  # raises if the argument has bytes that are not UTF-8
    if not text.strip():
        raise CommandError("the query is empty", "\"select * from topic('orders') limit 5\" is one")

    def warn(message: str) -> None:
        print_warning(f"{message} (--registry URL names another registry, off does without)")

    urls = None if registry == "off" else registry_urls(registry)
    with Sql(client_options(bootstrap), urls, warn, registry_security=registry_access()) as session:
        try:
            result = session.query(text)
            names = [each[0] for each in result.description]
            rows = _rows(partial(fetch_rows, result), max_rows)
            _print_json(names, rows) if as_json else _print_table(names, rows)
        except SqlError as error:
            raise CommandError(str(error)) from None


def _rows(fetch: Callable[[int], list[tuple[Any, ...]]], max_rows: int | None) -> Iterator[tuple[Any, ...]]:
    left = max_rows
    while left is None or left > 0:
        rows = fetch(_ROWS_AT_ONCE if left is None else min(left, _ROWS_AT_ONCE))
        if not rows:
            return
        yield from rows
        left = None if left is None else left - len(rows)


def _print_json(names: list[str], rows: Iterator[tuple[Any, ...]]) -> None:
    import json

    from ottla.cli.terminal.output import print_json_text

    for row in rows:
        print_json_text(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, default=_jsonable))


def _jsonable(value: object) -> object:
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "replace")
    return str(value)


def _print_table(names: list[str], rows: Iterator[tuple[Any, ...]]) -> None:
    from ottla.cli.terminal.output import print_table

    print_table(names, ([_cell(each) for each in row] for row in rows))


def _cell(value: object) -> object:
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "replace")
    return value
