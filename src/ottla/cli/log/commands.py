"""`ottla log`: dump and verify data directories offline, also those of Apache Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.cli.options import Json
from ottla.cli.terminal.outlet import stop_when_unread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ottla.log.offline.findings import Finding, VerifyTotals

app = typer.Typer(
    help="Show and verify the files of a log, of Ottla or of Apache Kafka, without a broker.", no_args_is_help=True
)


def _path(text: str) -> Path:
    if not text:
        raise typer.BadParameter("the path is empty")
    return Path(text)


@app.command()
def dump(
    path: Annotated[
        Path, typer.Argument(help="A data directory, a partition directory, or one file of it.", parser=_path)
    ],
    records: Annotated[bool, typer.Option("--records", "-r", help="Show every record, not only the batches.")] = False,
    from_offset: Annotated[int, typer.Option("--from-offset", "-o", help="Skip batches before this offset.")] = 0,
    limit: Annotated[int | None, typer.Option("--max", "-n", min=0, help="Stop after this many lines.")] = None,
    as_json: Json = False,
) -> None:
    """Show the contents of a data directory, a partition or a file."""
    from ottla.cli.log import lines as log_lines
    from ottla.cli.terminal.output import print_json, print_table
    from ottla.operations.errors import CommandError

    stop_when_unread()
    if not path.exists():
        raise CommandError(f"{path} does not exist")
    if path.is_dir() and not log_lines.is_partition(path):
        rows = log_lines.partitions(path)
        if not rows:
            raise CommandError(f"{path} holds no partitions", "a data directory is an entry of log.dirs")
        if as_json:
            print_json(rows)
        else:
            columns = ["partition", "segments", "start", "size_bytes"]
            print_table(columns, [[row[name] for name in columns] for row in rows], right=columns[1:])
        return
    lines = (
        log_lines.of_directory(path, from_offset, records)
        if path.is_dir()
        else log_lines.of_file(path, from_offset, records)
    )
    _print_lines(lines, limit, as_json)


def _print_lines(lines: Iterator[dict[str, Any]], limit: int | None, as_json: bool) -> None:
    """Print each as one line: JSON, or `name=value` text with the kind of the line in colour."""
    import itertools
    import json

    from ottla.cli.terminal.output import literal, out, print_json_text
    from ottla.cli.terminal.visible import visible

    console = out()
    for line in itertools.islice(lines, limit):
        if as_json:
            print_json_text(json.dumps(line, ensure_ascii=False, default=str))
            continue
        kind = line.pop("kind")
        problem = line.pop("problem", None)
        text = "  ".join(f"{name}={value}" for name, value in line.items())
        if not console.is_terminal:
            print(f"{kind}  {text}" + (f"  PROBLEM: {problem}" if problem else ""))
            continue
        console.print(f"[cyan]{kind}[/cyan]  ", end="")
        console.print(visible(text), markup=False, end="")
        console.print(f"  [bold red]{literal(problem)}[/bold red]" if problem else "")


@app.command()
def verify(
    paths: Annotated[list[Path], typer.Argument(help="Data directories, or partition directories.", parser=_path)],
    quick: Annotated[bool, typer.Option("--quick", "-q", help="Do not check the records inside of batches.")] = False,
    as_json: Json = False,
) -> None:
    """Verify every batch, index, snapshot and checkpoint. The exit code is 1 if any of them is damaged.

    While a node runs on the directory, files that it is changing may look damaged.
    """
    from ottla.cli.terminal.output import print_json
    from ottla.cli.terminal.plain import print_warning
    from ottla.log.offline.findings import Severity, VerifyTotals

    for path in paths:
        if _is_in_use(path):
            print_warning(f"a node uses {path} now: what it changes meanwhile may look wrong")
    totals = VerifyTotals()
    found: list[Finding] = []
    with _progress(paths, totals) as advance:
        for path in paths:
            for finding in _verify(path, totals, deep=not quick, advance=advance):
                found.append(finding)
                if not as_json:
                    _print_finding(finding)
    errors = sum(1 for each in found if each.severity is Severity.ERROR)
    if as_json:
        print_json(
            {
                "ok": not errors,
                "partitions": totals.partitions,
                "segments": totals.segments,
                "batches": totals.batches,
                "records": totals.records,
                "size_bytes": totals.size_bytes,
                "findings": [
                    {**each._asdict(), "severity": each.severity.name.lower(), "kind": str(each.kind)} for each in found
                ],
            }
        )
    else:
        _print_verdict(totals, errors, len(found) - errors)
    raise typer.Exit(1 if errors else 0)


def _is_in_use(path: Path) -> bool:
    from ottla.cli.log import lines as log_lines
    from ottla.server.ports.system import is_in_use

    return is_in_use(str(path.absolute().parent if log_lines.is_partition(path) else path))


def _verify(path: Path, totals: VerifyTotals, *, deep: bool, advance: Callable[[], None]) -> Iterator[Finding]:
    from ottla.cli.log import lines as log_lines
    from ottla.log.offline.dump import partition_directories
    from ottla.log.offline.verify import verify as check
    from ottla.operations.errors import CommandError
    from ottla.server.ports.os_disk import OsDisk

    if not path.is_dir():
        what = "is not a directory" if path.exists() else "does not exist"
        raise CommandError(f"{path} {what}", "a data directory is an entry of log.dirs")
    if log_lines.is_partition(path):
        # The checkpoints of a partition are in the data directory around it, so only the partition itself is verified.
        whole = path.absolute()
        disk, partitions = OsDisk(str(whole.parent)), [whole.name]
    else:
        disk = OsDisk(str(path))
        partitions = partition_directories(disk)
        if not partitions and not (path / "meta.properties").exists():
            raise CommandError(f"{path} holds no partitions", "a data directory is an entry of log.dirs")
        yield from check(disk, deep=deep, partitions=[], totals=totals)
    for partition in partitions:
        yield from check(disk, deep=deep, partitions=[partition], totals=totals)
        advance()


class _progress:
    """A progress bar over the bytes to be read, if stderr is a terminal."""

    def __init__(self, paths: list[Path], totals: VerifyTotals) -> None:
        self._paths = paths
        self._totals = totals

    def __enter__(self) -> Callable[[], None]:
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        from ottla.cli.terminal.output import err

        columns = (TextColumn("verifying"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=err(), transient=True, disable=not err().is_terminal)
        total_bytes = sum(file.stat().st_size for path in self._paths for file in path.rglob("*.log"))
        task = self._bar.add_task("verifying", total=total_bytes)
        self._bar.start()
        return lambda: self._bar.update(task, completed=self._totals.size_bytes)

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


def _print_finding(finding: Finding) -> None:
    from ottla.cli.terminal.output import out
    from ottla.log.offline.findings import Severity

    colours = {Severity.NOTE: "dim", Severity.WARNING: "yellow", Severity.ERROR: "bold red"}
    out().print(str(finding), style=colours[finding.severity], markup=False)


def _print_verdict(totals: VerifyTotals, errors: int, others: int) -> None:
    from ottla.cli.terminal.output import out
    from ottla.operations.formats import size_text

    what = (
        f"{totals.partitions} partitions, {totals.segments} segments, {totals.batches} batches, "
        f"{totals.records} records, {size_text(totals.size_bytes)}"
    )
    if errors:
        out().print(f"[bold red]✗ {errors} errors[/bold red] in {what}")
    else:
        remarks = f", {others} remarks" if others else ""
        out().print(f"[bold green]✓ sound[/bold green]: {what}{remarks}")
