"""The parts of `ottla pipeline check` and `run`; importing this module imports PySpark, but does not start Spark."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import typer

from ottla.cli.options import client_options, parse_pairs
from ottla.cli.profile.chosen import chosen
from ottla.client.blocking.blocking import Blocking
from ottla.client.errors import ClientError, LastingError
from ottla.client.options import wall_clock_ms
from ottla.operations.errors import CommandError
from ottla.operations.failures import hint_for, message_of
from ottla.spark.pipelines.build import attempt, build
from ottla.spark.pipelines.check import problems
from ottla.spark.pipelines.definition import PipelineError
from ottla.spark.pipelines.load import Pipeline, load
from ottla.spark.pipelines.replay import From, parse_from
from ottla.spark.pipelines.restarts import Policy
from ottla.spark.pipelines.run import Event, PipelineRun, Settings, previous_run
from ottla.spark.pipelines.starting import starting
from ottla.spark.pipelines.status import PipelineStatus
from ottla.spark.progress import unwatch
from ottla.spark.runtime import quiet
from ottla.spark.runtime.java import NoJava
from ottla.spark.runtime.patience import limit_retries
from ottla.spark.runtime.session import session as make_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "PassingError",
    "attempt",
    "build",
    "client",
    "failures",
    "load",
    "previous_run",
    "problems",
    "replay",
    "restarts",
    "runner",
    "session",
    "settings",
    "start",
]

settings = Settings
restarts = Policy


class PassingError(CommandError):
    """An error that is not caused by the pipeline: another try may succeed a moment later
    (EX_TEMPFAIL of sysexits.h).
    """

    exit_code = 75


@contextlib.contextmanager
def failures() -> Iterator[None]:
    """Turn errors that a user can cause into one line; errors that may pass have an exit code of their own."""
    try:
        yield
    except PipelineError as error:
        raise (PassingError if error.passes else CommandError)(str(error)) from error
    except LastingError as error:
        raise CommandError(message_of(error), hint_for(error)) from error
    except ClientError as error:
        raise PassingError(message_of(error), hint_for(error)) from error
    except NoJava as error:
        message, _, hint = str(error).partition(": ")
        raise CommandError(message, hint or None) from error


@contextlib.contextmanager
def client(bootstrap: str) -> Iterator[Blocking]:
    with Blocking(client_options(bootstrap)) as made:
        made.admin.topics.names()  # fail before Spark starts if there is no broker
        yield made


@contextlib.contextmanager
def session(
    name: str,
    master: str | None,
    remote: str | None,
    conf: list[str],
    bootstrap: str,
    registry: str | None,
    *,
    is_silent: bool = False,
) -> Iterator[SparkSession]:
    """A session whose errors are printed as one line, not by Spark's logs. `is_silent`: suppress all other output of
    the session and its workers, too.
    """
    if master and remote:
        raise typer.BadParameter("either --master or --remote")
    quiet.mute()
    with quiet.children_unheard() if is_silent else contextlib.nullcontext():
        spark = make_session(
            name,
            master=master,
            remote=remote,
            bootstrap=bootstrap,
            registry=registry,
            security=profile.settings if (profile := chosen()) is not None else None,
            log_level="OFF",
            **parse_pairs(conf, "--conf"),
        )
    limit_retries(spark)
    try:
        yield spark
    finally:
        limit_retries(spark, 0)
        unwatch(spark)
        with contextlib.suppress(Exception):  # Spark may be gone
            spark.stop()


def replay(text: str | None, using: Blocking) -> From | None:
    try:
        return None if text is None else parse_from(text, using, wall_clock_ms())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--from") from None


def runner(
    pipeline: Pipeline,
    spark: SparkSession,
    using: Blocking,
    chosen: Settings,
    file: Path,
    on_event: Callable[[Event], None],
) -> PipelineRun:
    where: Any = getattr(spark, "sparkContext", None) if hasattr(spark, "_jsparkSession") else None
    identity = _identity(pipeline, file, where.master if where is not None else "connect")
    return PipelineRun(pipeline, spark, using, chosen, run_id=identity.run, identity=identity, on_event=on_event)


def start(
    pipeline: Pipeline,
    using: Blocking,
    checkpoint: str,
    file: Path,
    before: PipelineStatus | None,
    on_event: Callable[[Event], None],
) -> contextlib.AbstractContextManager[None]:
    """A context around all steps before the run: the reason of a failure is written to the pipeline's status."""
    return starting(using, replace(_identity(pipeline, file, ""), checkpoint=checkpoint), before, on_event)


def _identity(pipeline: Pipeline, file: Path, spark: str) -> PipelineStatus:
    return PipelineStatus(
        name=pipeline.name,
        run=uuid4().hex,
        state="starting",
        file=str(file.resolve()),
        host=socket.gethostname(),
        pid=os.getpid(),
        spark=spark,
        started_ms=wall_clock_ms(),
    )
