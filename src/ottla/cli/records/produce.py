"""`ottla produce`: records from arguments, stdin or a file into a topic."""

from __future__ import annotations

import asyncio
import sys
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, Topic, client_options, parse_pairs
from ottla.model.limits import INT32_MAX

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator
    from typing import BinaryIO

    from ottla.cli.records.sending import Numbered
    from ottla.cli.records.text import Outgoing
    from ottla.client.producer.producer import ProducerOptions

# Of one record, and of a request: a broker takes requests of 100 MiB unless told otherwise.
_RECORD_BYTES_MAX = 64 * 1024 * 1024


class InputFormat(StrEnum):
    """How records are read."""

    lines = "lines"
    json = "json"


class CodecName(StrEnum):
    """How batches are compressed."""

    none = "none"
    gzip = "gzip"
    snappy = "snappy"
    lz4 = "lz4"
    zstd = "zstd"


class Acks(StrEnum):
    """Who must have a record before it counts as written."""

    nobody = "0"
    leader = "1"
    everyone = "all"


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Topics and records")(produce)


def produce(
    topic: Topic,
    values: Annotated[
        list[str] | None, typer.Argument(help="Values to send; without any, records are read from stdin.")
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read records from this file.")] = None,
    fmt: Annotated[InputFormat, typer.Option("--format", "-F", help="What one line holds.")] = InputFormat.lines,
    key: Annotated[str | None, typer.Option("--key", "-k", help="The key of every record.")] = None,
    key_separator: Annotated[
        str | None, typer.Option("--key-separator", "-K", help="Lines are KEY<separator>VALUE.")
    ] = None,
    null: Annotated[str | None, typer.Option("--null", help="This text stands for no key or no value.")] = None,
    header: Annotated[list[str], typer.Option("--header", "-H", help="NAME=VALUE for every record.")] = [],  # noqa: B006
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", min=0, max=INT32_MAX, help="Always this partition.")
    ] = None,
    codec: Annotated[CodecName, typer.Option("--codec", "-z", help="Compression of the batches.")] = CodecName.none,
    acks: Annotated[Acks, typer.Option("--acks", help="Who must have a record before it counts.")] = Acks.everyone,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print where every record went (JSON).")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Append records to a topic.

    A line that cannot be sent, or is not acknowledged, ends the command: what was read before it is delivered, and the
    error names the line, so that it is known where to go on. With `--format json` a line is an object with `value` (or
    `value_base64`; null must be said) and, if need be, `key`, `headers`, `partition` and `timestamp`.
    """
    from ottla.cli.records import text as records
    from ottla.cli.records.sending import send_all

    if values and file is not None:
        raise typer.BadParameter("values and --file exclude each other: records come from one place")
    if key is not None and key_separator is not None:
        raise typer.BadParameter("--key and --key-separator exclude each other")
    separator = _unescaped(key_separator) if key_separator is not None else None
    marker = null.encode() if null is not None else None
    extra = tuple((name, value.encode()) for name, value in parse_pairs(header, "--header").items())

    def parse(line: bytes) -> Outgoing:
        found = records.from_json(line) if fmt is InputFormat.json else records.from_line(line, separator, marker)
        return found._replace(
            key=found.key if key is None else key.encode(),
            headers=(*found.headers, *extra),
            partition=found.partition if partition is None else partition,
        )

    send = partial(send_all, client_options(bootstrap), _options(acks, codec), topic, parse, verbose=verbose)
    if values:
        asyncio.run(send(_each(enumerate((value.encode() for value in values), 1)), noun="value"))
    elif file is not None:
        with file.open("rb") as stream, _progress(file) as advance:
            asyncio.run(send(_each(_lines(stream, advance))))
    elif sys.stdin.isatty():
        asyncio.run(send(_keyboard(), one_by_one=True))
    else:
        asyncio.run(send(_each(_lines(sys.stdin.buffer, lambda _: None))))


def _options(acks: Acks, codec: CodecName) -> ProducerOptions:
    from ottla.client.producer.producer import ProducerOptions
    from ottla.records.compress import Codec

    return ProducerOptions(
        acks={Acks.nobody: 0, Acks.leader: 1, Acks.everyone: -1}[acks],
        codec=Codec[codec.name.upper()],
        batch_size_bytes=256 * 1024,
        max_request_bytes=_RECORD_BYTES_MAX,  # so that it is the topic's limit that decides
        buffer_bytes=2 * _RECORD_BYTES_MAX,
        delivery_timeout_ms=30_000,
    )


def _unescaped(text: str) -> bytes:
    try:
        found = text.encode("ascii", "backslashreplace").decode("unicode_escape").encode()
    except UnicodeError:
        raise typer.BadParameter(
            f"{text!r} cannot be read: \\\\ is a backslash", param_hint="--key-separator"
        ) from None
    if not found:
        raise typer.BadParameter("it is empty", param_hint="--key-separator")
    return found


async def _each(lines: Iterable[Numbered]) -> AsyncIterator[Numbered]:
    for line in lines:
        yield line


async def _keyboard() -> AsyncIterator[Numbered]:
    """Lines as they are typed; the loop goes on meanwhile, and Ctrl-C ends it at once."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    number = 0
    while line := await reader.readline():
        number += 1
        if stripped := line.rstrip(b"\r\n"):
            yield number, stripped


def _lines(stream: BinaryIO, advance: Callable[[int], None]) -> Iterator[Numbered]:
    for number, line in enumerate(stream, 1):
        advance(len(line))
        if stripped := line.rstrip(b"\r\n"):
            yield number, stripped


class _progress:
    """A progress bar over the bytes of a file, when somebody can see it."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __enter__(self) -> Callable[[int], None]:
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        from ottla.cli.terminal.output import err

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TimeRemainingColumn(),
            console=err(),
            transient=True,
            disable=not err().is_terminal,
        )
        self._bar.start()
        task = self._bar.add_task(self._file.name, total=self._file.stat().st_size)
        return lambda size_bytes: self._bar.advance(task, size_bytes)

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
