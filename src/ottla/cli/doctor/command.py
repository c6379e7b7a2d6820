"""`ottla doctor`: make all checks that concern what was named, and show what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, parse_duration_ms, with_admin

if TYPE_CHECKING:
    from ottla.operations.doctor.examination import Examination

_WARNINGS = 3  # exit status; 2 is wrong usage
_PANEL = "Nodes"


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel=_PANEL)(doctor)


def _directory(text: str) -> Path:
    if not text:
        raise typer.BadParameter("the path is empty")
    return Path(text)


def doctor(
    context: typer.Context,
    config: Annotated[Path | None, typer.Option("--config", "-c", help="Check this server.properties.")] = None,
    data: Annotated[
        list[Path],
        typer.Option(
            "--data",
            "-d",
            help="Check this data directory of a stopped node; repeat it for all of a node.",
            parser=_directory,
        ),
    ] = [],  # noqa: B006
    skip: Annotated[list[str], typer.Option("--skip", help="Leave out the check of this id; may be repeated.")] = [],  # noqa: B006
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also show what is fine, and which checks could not be made.")
    ] = False,
    as_json: Json = False,
    sample: Annotated[
        str, typer.Option("--sample", help="How long to wait before looking a second time at what should change.")
    ] = "2s",
    registry: Annotated[
        str | None,
        typer.Option(
            "--registry", "-u", envvar="OTTLA_REGISTRY", help="Also check the schema registry at http://HOST:PORT."
        ),
    ] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Check a running cluster, a configuration file or data directories: what is wrong, why it matters, what to type.

    The cluster is checked unless `--config` or `--data` is given, and beside them with `-b`. Nothing is changed. The
    exit status is 0 if all is fine, 1 if there is a problem (or the cluster cannot be reached), 3 if there are only
    warnings. docs/doctor.md lists the checks.
    """
    from ottla.cli.terminal.waiting import waiting_line
    from ottla.operations.doctor.cluster.reach import UNREACHABLE
    from ottla.operations.doctor.examination import Examination
    from ottla.operations.doctor.subjects import examine_directories, examine_file

    _check_ids(skip)
    sample_s = parse_duration_ms(sample, "--sample") / 1000
    source = context.get_parameter_source("bootstrap")
    has_cluster = (config is None and not data) or (source is not None and source.name == "COMMANDLINE")
    with waiting_line() as advance:
        examination = Examination(skip, advance)
        node_id = None
        if config is not None:
            node_id = examine_file(examination, config)
        if data:
            examine_directories(examination, data, node_id)
        if has_cluster:
            is_raised = UNREACHABLE in skip or not (as_json or config is not None or data)
            _examine_cluster(examination, bootstrap, registry, sample_s, advance, is_raised=is_raised)
    _end(examination, as_json=as_json, verbose=verbose)


def _end(examination: Examination, *, as_json: bool, verbose: bool) -> None:
    """Show what was found; the exit status says how bad it is."""
    from ottla.cli.doctor.told import show, shown_json
    from ottla.cli.terminal.output import print_json
    from ottla.operations.doctor.check import HealthLevel

    if as_json:
        print_json(shown_json(examination))
    else:
        show(examination, verbose=verbose)
    if examination.level is not HealthLevel.FINE:
        raise typer.Exit(1 if examination.level is HealthLevel.PROBLEM else _WARNINGS)


def _check_ids(skip: list[str]) -> None:
    from difflib import get_close_matches

    from ottla.operations.doctor.catalogue import all_ids

    for each in skip:
        if each not in all_ids():
            near = get_close_matches(each, all_ids(), n=1)
            raise typer.BadParameter(
                f"there is no check {each!r}" + (f", did you mean {near[0]}?" if near else ""), param_hint="--skip"
            )


def _examine_cluster(
    examination: Examination,
    bootstrap: str,
    registry: str | None,
    sample_s: float,
    advance: Callable[[str], None],
    *,
    is_raised: bool,
) -> None:
    """Check the cluster. That it cannot be reached is raised, or a finding."""
    from ottla.cli.registry.calls import RegistryCalls
    from ottla.cli.terminal.plain import print_warning
    from ottla.client.errors import ClientError
    from ottla.model.errors import ApiError
    from ottla.operations.doctor.cluster.reading import read_cluster
    from ottla.operations.doctor.subjects import examine_cluster, examine_unreachable

    calls = RegistryCalls(registry) if registry else None
    subjects = None if calls is None else lambda: list(map(str, calls.get("subjects")))
    try:
        seen = with_admin(bootstrap, lambda admin: read_cluster(admin, sample_s, subjects, advance, print_warning))
    except (ClientError, ApiError, OSError) as error:
        if is_raised:
            raise
        examine_unreachable(examination, error)
    else:
        examine_cluster(examination, seen)
