"""`ottla pipeline`: check, run, restart and stop pipelines on Spark, and see what they do."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, LogFormatOption, client_options, registry_urls
from ottla.cli.profile.chosen import registry_or_profile
from ottla.model.limits import PIPELINE_RESTARTS
from ottla.operations.errors import CommandError

if TYPE_CHECKING:
    from ottla.spark.pipelines.run import PipelineRun
    from ottla.spark.pipelines.status import Board, PipelineStatus

app = typer.Typer(help="Check, run, show, restart and stop pipelines on Spark.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="The pipeline: a Python file with decorated functions, or a SQL file.")]
Name = Annotated[str, typer.Argument(help="The pipeline's name.")]
Master = Annotated[str | None, typer.Option("--master", help="Spark's master: local[4], spark://HOST:PORT, yarn, …")]
Remote = Annotated[str | None, typer.Option("--remote", help="A Spark Connect server: sc://HOST:PORT.")]
Conf = Annotated[list[str], typer.Option("--conf", "-c", help="A setting of Spark's, NAME=VALUE; may be repeated.")]


def _registry(context: typer.Context, parameter: typer.CallbackParam, given: str | None) -> str | None:
    found = registry_or_profile(context, parameter, given)
    return None if found is None else registry_urls(found)


Registry = Annotated[
    str | None,
    typer.Option(
        "--registry",
        envvar="OTTLA_REGISTRY",
        help="Schema registry: http://HOST:PORT.",
        callback=_registry,
    ),
]
_STOP_TIMEOUT_S = 120.0


@app.command()
def check(
    file: File,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = [],  # noqa: B006
    registry: Registry = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Check a pipeline without running it: topics, columns, outputs, and whether Spark can plan it."""
    from ottla.cli.terminal.output import done
    from ottla.cli.terminal.plain import print_error

    load = _spark_parts()
    with load.failures():
        loaded = load.load(file)
        with (
            load.client(bootstrap) as client,
            load.session(loaded.name, master, remote, conf, bootstrap, registry, is_silent=True) as spark,
        ):
            attempt = load.attempt(loaded, spark)
            found = [*attempt.errors, *load.problems(attempt.built, spark, client)]
    for problem in sorted(found, key=lambda each: each.line or 0):
        print_error(str(problem))
    if found:
        raise typer.Exit(load.PassingError.exit_code if all(each.passes for each in found) else 1)
    done(f"{file}: {len(loaded.queries)} {'query' if len(loaded.queries) == 1 else 'queries'}, nothing wrong")


@app.command()
def run(
    file: File,
    master: Master = None,
    remote: Remote = None,
    name: Annotated[str | None, typer.Option("--name", help="Name of the pipeline, if not that of the file.")] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", help="Directory or URL of checkpoints; .ottla beside the file unless given."),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option("--from", help="Start anew at: earliest, latest, an offset, a time, or how long ago (2h)."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Process the records that are there now, then end.")] = False,
    restarts: Annotated[
        int,
        typer.Option("--restarts", min=0, help="Restarts of a query within 10 minutes, after errors that may pass."),
    ] = PIPELINE_RESTARTS,
    force: Annotated[bool, typer.Option("--force", help="Run it even if it seems to run already.")] = False,
    conf: Conf = [],  # noqa: B006
    registry: Registry = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each event as a line of JSON.")] = False,
    log_format: LogFormatOption = "plain",
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Run a pipeline until it is stopped (Ctrl-C, SIGTERM, `ottla pipeline stop`), starting from its checkpoints.

    A stop waits for the running batches. --from replays with new checkpoints, so records are written again.

    Exit codes: 0, it was stopped, or has done its work (--once); 1, an error that lasts; 75, an error that may pass,
    but did not within its restarts: start it again later.
    """
    from ottla.cli.nodes.start import LOG_FORMATS
    from ottla.cli.pipeline.view import events, logging_as, print_event

    parts, style = _spark_parts(), LOG_FORMATS[log_format]
    with parts.failures(), logging_as(style):
        loaded = parts.load(file, name)
        where = checkpoint or str(file.resolve().parent / ".ottla" / loaded.name)
        with parts.client(bootstrap) as client:
            before = parts.previous_run(client, loaded.name, force=force)  # before Spark is started in vain
            replay = parts.replay(from_, client)
            with (
                parts.start(loaded, client, where, file, before, print_event if as_json else _ignore),
                parts.session(loaded.name, master, remote, conf, bootstrap, registry) as spark,
            ):
                built = parts.build(loaded, spark, replay)
                problems = parts.problems(built, spark, client)
                if problems:
                    raise problems[0]
                settings = parts.settings(
                    where, once=once, force=force, replay=replay is not None, restarts=parts.restarts(limit=restarts)
                )
                with events(loaded.name, as_json=as_json, log_format=style) as on_event:
                    runner = parts.runner(loaded, spark, client, settings, file, on_event)
                    runner.claim()
                    with _signals(runner):
                        runner.run(built)


@app.command("list")
def list_pipelines(as_json: Json = False, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """List pipelines that run or have run, with their state."""
    from ottla.cli.pipeline.view import row_of
    from ottla.cli.terminal.output import print_rows

    columns = ["pipeline", "state", "queries", "rows/s", "lag", "lag_seconds", "host", "updated"]
    rows = [row_of(status) for status in _statuses(bootstrap).values()]
    print_rows(rows, columns, as_json=as_json, right=columns[2:6])


@app.command()
def status(name: Name, as_json: Json = False, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """Show one pipeline: its run, and the metrics of its queries."""
    from dataclasses import asdict

    from ottla.cli.pipeline.view import print_status
    from ottla.cli.terminal.output import print_json

    found = _known(_statuses(bootstrap), name)
    print_json(asdict(found)) if as_json else print_status(found)


@app.command()
def stop(
    name: Name,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it has stopped.")] = True,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Stop a pipeline after its running batches, on whichever machine it runs."""
    from ottla.cli.terminal.output import done
    from ottla.client.blocking.blocking import Blocking
    from ottla.client.options import wall_clock_ms
    from ottla.spark.pipelines.status import LIVE, Board

    with Blocking(client_options(bootstrap)) as client:
        board = Board(client)
        found = _running(board, name)
        board.ask_to_stop(found)
        deadline_s = time.monotonic() + _STOP_TIMEOUT_S
        while wait and (now := board.all(wall_clock_ms())[name]).run == found.run and now.state in LIVE:
            if time.monotonic() > deadline_s:
                raise CommandError(f"pipeline {name} was told to stop, and has not yet")
            time.sleep(0.3)
    done(f"pipeline {name} has stopped" if wait else f"pipeline {name} was told to stop")


@app.command()
def restart(
    name: Name,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until its queries were started again.")] = True,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Stop the queries of a running pipeline after their batches, and start them again from their checkpoints.

    The process and its Spark session stay, and the file is not read again. A pipeline that does not run any more is
    started with `ottla pipeline run`.
    """
    from ottla.cli.terminal.output import done
    from ottla.client.blocking.blocking import Blocking
    from ottla.client.options import wall_clock_ms
    from ottla.spark.pipelines.status import LIVE, Board

    with Blocking(client_options(bootstrap)) as client:
        board = Board(client)
        found = _running(board, name)
        board.ask_to_restart(found)
        deadline_s = time.monotonic() + _STOP_TIMEOUT_S
        while wait and (now := board.all(wall_clock_ms())[name]).restarted_ms == found.restarted_ms:
            if now.run != found.run or now.state not in LIVE:
                raise CommandError(f"pipeline {name} has stopped: it is {now.state}")
            if time.monotonic() > deadline_s:
                raise CommandError(
                    f"pipeline {name} was told to restart, and has not yet",
                    "a run of an earlier version of Ottla does not know how: stop it, and run it again",
                )
            time.sleep(0.3)
    done(f"the queries of pipeline {name} were started again" if wait else f"pipeline {name} was told to restart")


def _running(board: Board, name: str) -> PipelineStatus:
    """The status of a pipeline that runs. Raises CommandError if it does not."""
    from ottla.client.options import wall_clock_ms
    from ottla.spark.pipelines.status import LIVE

    found = _known(board.all(wall_clock_ms()), name)
    if found.state not in LIVE or found.is_dead_here:
        raise CommandError(f"pipeline {name} does not run: it is {'lost' if found.is_dead_here else found.state}")
    return found


def _ignore(event: dict[str, Any]) -> None:
    """Ignore an event, because it is printed on stderr anyway."""


def _statuses(bootstrap: str) -> dict[str, PipelineStatus]:
    from ottla.client.blocking.blocking import Blocking
    from ottla.client.options import wall_clock_ms
    from ottla.spark.pipelines.status import Board

    with Blocking(client_options(bootstrap)) as client:
        return Board(client).all(wall_clock_ms())


def _known(statuses: dict[str, PipelineStatus], name: str) -> PipelineStatus:
    if name not in statuses:
        raise CommandError(f"there is no pipeline {name}", "`ottla pipeline list` shows those there are")
    return statuses[name]


def _spark_parts() -> Any:
    try:
        from ottla.cli.pipeline import parts as pipeline_parts
    except ImportError as error:
        from ottla.observe.installing import install_command

        raise CommandError(f"pipelines need Spark ({error})", install_command("spark")) from None
    return pipeline_parts


class _signals:
    """Let SIGINT and SIGTERM ask the run to stop; a second one ends it at once."""

    def __init__(self, runner: PipelineRun) -> None:
        self._runner = runner
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._take)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _take(self, number: int, frame: object) -> None:
        from ottla.cli.terminal.output import note

        self._runner.request_stop()
        note("stopping after the running batches; once more ends it at once")
        for each in self._before:
            signal.signal(each, signal.SIG_DFL)
