"""`ottla produce`: send records from arguments, stdin or a file to a topic."""

from __future__ import annotations

import asyncio
import sys
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, Topic, client_options
from ottla.cli.records.payloads import RegistryUrl, registry_at
from ottla.cli.records.sending import send_all
from ottla.cli.records.text import Added, PlainEncoder, line_parser
from ottla.model.limits import INT32_MAX
from ottla.operations.errors import CommandError
from ottla.operations.payloads import PayloadType, SubjectEncoder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
    from typing import BinaryIO

    from ottla.cli.records.sending import Numbered
    from ottla.cli.records.text import Headers, RecordTextEncoder
    from ottla.client.producer.producer import ProducerOptions

# The largest record, and the largest request: a broker accepts requests of 100 MiB by default.
_RECORD_BYTES_MAX = 64 * 1024 * 1024


class InputFormat(StrEnum):
    """The formats of input."""

    lines = "lines"
    json = "json"


class CodecName(StrEnum):
    """The compression of batches."""

    none = "none"
    gzip = "gzip"
    snappy = "snappy"
    lz4 = "lz4"
    zstd = "zstd"


class Acks(StrEnum):
    """Which replicas must have a record before it counts as written."""

    nobody = "0"
    leader = "1"
    everyone = "all"


ValueType = Annotated[
    PayloadType | None,
    typer.Option("--value", help="Values are JSON: encode them by the registry's schema of this type, or auto."),
]
KeyType = Annotated[
    PayloadType | None, typer.Option("--key-type", help="Encode keys, in the same way; plain words need no quotes.")
]
ValueSubject = Annotated[
    str | None, typer.Option("--value-subject", help="The subject of the values' schema, if not TOPIC-value.")
]
KeySubject = Annotated[
    str | None, typer.Option("--key-subject", help="The subject of the keys' schema, if not TOPIC-key.")
]
KeySeparator = Annotated[
    str | None,
    typer.Option("--key-separator", "-K", help="This text separates key and value in each line; \\t is a tab."),
]
Header = Annotated[
    list[str],
    typer.Option(
        "--header",
        "-H",
        help="Header of every record, NAME=VALUE; may be repeated. NAME=hex:00ff is bytes, NAME=null: is null.",
    ),
]
NullMarker = Annotated[str | None, typer.Option("--null", help="This text means no key, or no value (a tombstone).")]


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Topics and records")(produce)


def produce(
    topic: Topic,
    values: Annotated[
        list[str] | None, typer.Argument(help="Values to send; without any, records are read from standard input.")
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read records from this file.")] = None,
    fmt: Annotated[
        InputFormat, typer.Option("--format", "-F", help="What each line of input holds.")
    ] = InputFormat.lines,
    key: Annotated[str | None, typer.Option("--key", "-k", help="The key of every record.")] = None,
    key_separator: KeySeparator = None,
    null: NullMarker = None,
    header: Header = [],  # noqa: B006
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", min=0, max=INT32_MAX, help="Send all records to this partition.")
    ] = None,
    codec: Annotated[CodecName, typer.Option("--codec", "-z", help="Compression of the batches.")] = CodecName.none,
    acks: Annotated[
        Acks, typer.Option("--acks", help="Replicas that must have a record before it counts as sent.")
    ] = Acks.everyone,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print partition and offset of every record, as JSON.")
    ] = False,
    value_type: ValueType = None,
    key_type: KeyType = None,
    value_subject: ValueSubject = None,
    key_subject: KeySubject = None,
    registry: RegistryUrl = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Append records to a topic.

    With `--format lines` each line is a value. With `--format json` each line is an object, such as
    `{"key": "k", "value": "v"}`: `value` (or `value_base64`) is required, and null is a tombstone; `key` (or
    `key_base64`), `headers` (`{"name": "value"}`), `partition` and `timestamp` may be left out; any other field is
    refused. A key or value that is not a string is written as compact JSON.

    `--value avro` (or json, protobuf, auto) encodes values, which are JSON then, by the latest schema of the subject
    TOPIC-value in the schema registry.

    A line that cannot be sent, or is not acknowledged, ends the command: what was read before it is delivered, and the
    error names the line, so that it is known where to go on.
    """
    if values and file is not None:
        raise typer.BadParameter("values and --file exclude each other: records come from one place")
    if key is not None and key_separator is not None:
        raise typer.BadParameter("--key and --key-separator exclude each other")
    headers = _headers(header)
    separator = None if key_separator is None else _unescaped(key_separator)
    client = client_options(bootstrap)
    keys = _encoder(f"{topic}-key", key_type, key_subject, registry, bootstrap)
    contents = _encoder(f"{topic}-value", value_type, value_subject, registry, bootstrap)
    parse = line_parser(fmt is InputFormat.json, separator, null, keys, contents, Added(key, headers, partition))
    _send(partial(send_all, client, _options(acks, codec), topic, parse, verbose=verbose), values, file)


def _send(send: Callable[..., Coroutine[None, None, None]], values: list[str] | None, file: Path | None) -> None:
    """Send records from the source that was given."""
    if values:
        encoded = [value.encode() for value in values]
        asyncio.run(send(_each(enumerate(encoded, 1)), noun="value"))
    elif file is not None:
        with file.open("rb") as stream, _progress(file) as advance:
            asyncio.run(send(_each(_lines(stream, advance))))
    elif sys.stdin.isatty():
        asyncio.run(send(_keyboard(), one_by_one=True))
    else:
        asyncio.run(send(_each(_lines(sys.stdin.buffer, lambda _: None))))


def _encoder(
    usual_subject: str, kind: PayloadType | None, subject: str | None, registry: str | None, bootstrap: str
) -> RecordTextEncoder:
    """An encoder by a schema, if its type or subject is given; otherwise one for plain text."""
    if kind is None and subject is None:
        return PlainEncoder()
    return SubjectEncoder(registry_at(registry, bootstrap), subject or usual_subject, kind or PayloadType.auto)


def _headers(texts: Iterable[str]) -> Headers:
    from ottla.operations.records.writing import header_of

    try:
        return tuple(header_of(each) for each in texts)
    except CommandError as error:
        raise typer.BadParameter(str(error), param_hint="--header") from None


def _options(acks: Acks, codec: CodecName) -> ProducerOptions:
    from ottla.client.producer.producer import ProducerOptions
    from ottla.records.compress import Codec

    return ProducerOptions(
        acks={Acks.nobody: 0, Acks.leader: 1, Acks.everyone: -1}[acks],
        codec=Codec[codec.name.upper()],
        batch_size_bytes=256 * 1024,
        max_request_bytes=_RECORD_BYTES_MAX,  # large, so that the limit of the topic decides
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
    """Lines as they are typed; the event loop goes on meanwhile, and Ctrl-C ends the command at once."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    number = 0
    while line := await reader.readline():
        number += 1
        if stripped := line.rstrip(b"\r\n"):
            yield number, stripped


def _lines(stream: BinaryIO, advance: Callable[[int], None]) -> Iterator[Numbered]:
    for number, line in enumerate(iter(lambda: stream.readline(_RECORD_BYTES_MAX + 1), b""), 1):
        advance(len(line))
        if len(line) > _RECORD_BYTES_MAX:
            raise CommandError(f"line {number} is longer than {_RECORD_BYTES_MAX} bytes: no record may be")
        if stripped := line.rstrip(b"\r\n"):
            yield number, stripped


class _progress:
    """A progress bar over the bytes of a file, if stderr is a terminal."""

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
