"""The lines of `ottla log dump`: each is a dict with a `kind`, ready for JSON or text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.log.files import names
from ottla.log.files.disk import Directory
from ottla.log.offline import dump
from ottla.log.offline.decode import decode_control, decode_record
from ottla.log.recovery.ownership import is_partition_file
from ottla.model.errors import ApiError
from ottla.model.names import CLUSTER_METADATA_TOPIC
from ottla.operations.errors import CommandError
from ottla.server.ports.os_disk import OsDisk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ottla.wire.message import Data

Line = dict[str, Any]

_METADATA_PARTITION = f"{CLUSTER_METADATA_TOPIC}-0"
_SNAPSHOT_OF_METADATA = ".checkpoint"
_BOOTSTRAP = "bootstrap.checkpoint"
_VALUE_CHARS_MAX = 200
_LINE_BYTES_MAX = 64 * 1024


def is_partition(path: Path) -> bool:
    """Whether the directory holds a log itself (a data directory holds such directories)."""
    return any(is_partition_file(file.name) for file in path.iterdir() if file.is_file())


def partitions(path: Path) -> list[Line]:
    """An overview of a data directory."""
    disk = OsDisk(str(path))
    rows = []
    for name in dump.partition_directories(disk):
        files = dump.partition_files(Directory(disk, name))
        size_bytes = sum((path / name / names.file_name(base, names.LOG)).stat().st_size for base in files.segments)
        rows.append(
            {
                "partition": name,
                "segments": len(files.segments),
                "start": files.segments[0] if files.segments else None,
                "size_bytes": size_bytes,
            }
        )
    return rows


def of_directory(path: Path, from_offset: int, records: bool) -> Iterator[Line]:
    """The lines of every segment of a partition."""
    directory = Directory(OsDisk(str(path.absolute().parent)), path.absolute().name)
    for base_offset in dump.partition_files(directory).segments:
        segment = names.file_name(base_offset, names.LOG)
        yield {"kind": "segment", "file": segment, "size_bytes": (path / segment).stat().st_size}
        yield from _batches(dump.batches(directory, base_offset), path.absolute().name, from_offset, records)


def of_file(path: Path, from_offset: int, records: bool) -> Iterator[Line]:
    """The lines of one file, whose name tells its kind."""
    path = path.absolute()
    directory = Directory(OsDisk(str(path.parent.parent)), path.parent.name)
    if path.suffix == _SNAPSHOT_OF_METADATA and (path.stem[:1].isdigit() or path.name == _BOOTSTRAP):
        with dump.opened(directory, path.name) as file:
            yield from _batches(dump.batches_of(file), _METADATA_PARTITION, from_offset, records)
        return
    parsed = names.parse_name(path.name)
    if parsed is None:
        yield from _text_lines(path)
        return
    base_offset, kind, _ = parsed
    if kind == names.LOG:
        yield from _batches(dump.batches(directory, base_offset), path.parent.name, from_offset, records)
    elif kind == names.OFFSET_INDEX:
        yield from ({"kind": "offset", **each._asdict()} for each in dump.offset_index(directory, base_offset))
    elif kind == names.TIME_INDEX:
        yield from ({"kind": "time", **each._asdict()} for each in dump.time_index(directory, base_offset))
    elif kind == names.TXN_INDEX:
        yield from ({"kind": "aborted", **each._asdict()} for each in dump.txn_index(directory, base_offset))
    elif kind == names.SNAPSHOT:
        yield from ({"kind": "producer", **each._asdict()} for each in dump.snapshot(directory, base_offset))


def _text_lines(path: Path) -> Iterator[Line]:
    """The lines of a checkpoint, or of any other text file; a file that is not printable is refused."""
    with path.open("rb") as file:
        while line := file.readline(_LINE_BYTES_MAX):
            try:
                text = line.rstrip(b"\r\n").decode()
            except UnicodeDecodeError:
                text = "\0"
            if not text.replace("\t", "").isprintable():
                raise CommandError(
                    f"{path} is no file of a log, and no text", "segments are named like 00000000000000000000.log"
                )
            yield {"kind": "line", "text": text}


def _batches(
    found: Iterator[dump.DumpedBatch | dump.Garbage], partition: str, from_offset: int, records: bool
) -> Iterator[Line]:
    for each in found:
        if isinstance(each, dump.Garbage):
            size = f"{each.size_bytes} bytes that are no batch"
            yield {"kind": "garbage", "position": each.position, "size_bytes": each.size_bytes, "problem": size}
            continue
        if each.header.next_offset <= from_offset:
            continue
        yield _batch(each)
        if records and each.problem is None:
            yield from _records(each, partition, from_offset)


def _batch(batch: dump.DumpedBatch) -> Line:
    header = batch.header
    line: Line = {
        "kind": "batch",
        "offsets": f"{header.base_offset}-{header.last_offset}",
        "count": header.count,
        "position": batch.position,
        "size_bytes": header.size_bytes,
        "codec": header.codec.name.lower(),
        "leader_epoch": header.leader_epoch,
        "max_timestamp": header.max_timestamp,
    }
    if header.producer_id >= 0:
        line |= {
            "producer_id": header.producer_id,
            "producer_epoch": header.producer_epoch,
            "base_sequence": header.base_sequence,
        }
    flags = [name for name in ("is_transactional", "is_control", "is_log_append_time") if getattr(header, name)]
    if flags:
        line["flags"] = ",".join(flag.removeprefix("is_").replace("_", "-") for flag in flags)
    if batch.problem is not None:
        line["problem"] = batch.problem
    return line


def _records(batch: dump.DumpedBatch, partition: str, from_offset: int) -> Iterator[Line]:
    topic = partition.rpartition("-")[0]
    try:
        for record in batch.records():
            if record.offset < from_offset:
                continue
            line: Line = {"kind": "record", "offset": record.offset, "timestamp": record.timestamp}
            if batch.header.is_control:
                kind, message = decode_control(record)
                line |= {"control": kind.name.lower(), "value": _shown(message, record.value)}
            else:
                key, value = decode_record(topic, record) or (None, None)
                line |= {"key": _shown(key, record.key), "value": _shown(value, record.value)}
            if record.headers:
                line["headers"] = {name: _text(value) for name, value in record.headers}
            yield line
    except ApiError as error:
        yield {"kind": "record", "problem": error.text}


def _shown(message: Data | None, data: bytes | None) -> str | None:
    """A record of an internal topic decoded; any other record, or one that cannot be decoded, as it is."""
    return _text(data) if message is None else repr(message)


def _text(data: bytes | None) -> str | None:
    if data is None:
        return None
    text = data.decode("utf-8", errors="backslashreplace")
    if not text.isprintable():
        text = repr(data)
    return text if len(text) <= _VALUE_CHARS_MAX else f"{text[:_VALUE_CHARS_MAX]}… ({len(data)} bytes)"
