"""`ottla support-bundle`: pack up what somebody who helps needs to see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, with_admin
from ottla.operations.errors import WrongUsage

if TYPE_CHECKING:
    from ottla.cli.bundle.archive import BundleArchive
    from ottla.cli.bundle.cluster import BundledCluster
    from ottla.cli.bundle.redaction import Redaction

_PANEL = "Nodes"
_SUFFIX = ".tar.gz"


def register(app: typer.Typer) -> None:
    app.command("support-bundle", rich_help_panel=_PANEL)(support_bundle)


def _path(text: str) -> Path:
    if not text:
        raise typer.BadParameter("the path is empty")
    return Path(text)


def support_bundle(
    output: Annotated[
        Path | None,
        typer.Argument(
            help="The archive; its name ends in .tar.gz.", parser=_path, show_default="a name with the time"
        ),
    ] = None,
    log: Annotated[
        list[Path],
        typer.Option("--log", "-l", help="Add the end of this log of a node; may be repeated.", parser=_path),
    ] = [],  # noqa: B006
    data: Annotated[
        list[Path],
        typer.Option(
            "--data",
            "-d",
            help="Add the names of the files in this data directory, and logs beside its partitions; may be repeated.",
            parser=_path,
        ),
    ] = [],  # noqa: B006
    config: Annotated[
        list[Path],
        typer.Option("--config", "-c", help="Add this server.properties without its secrets.", parser=_path),
    ] = [],  # noqa: B006
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Pack up what somebody who helps with a cluster needs to see: one archive, bounded, without secrets and records.

    It has the cluster's metadata, settings, groups and quorum, the metrics of each node that tells them, what `ottla
    doctor` finds, versions, and of this machine what is named by options. What cannot be read, for example
    because a node is down, is listed in MANIFEST.json. Nothing is sent anywhere, and no file is replaced.
    """
    from ottla.cli.bundle.archive import written_bundle
    from ottla.cli.bundle.machine import check_files
    from ottla.cli.bundle.redaction import Redaction
    from ottla.cli.terminal.output import print_json
    from ottla.cli.terminal.waiting import waiting_line
    from ottla.operations.doctor.settings.reading import read_file

    path = output or _default_path()
    if path.is_dir():
        raise WrongUsage(f"{path} is a directory, and no archive", f"name a file in it: {path / _default_path()}")
    if not path.name.endswith(_SUFFIX):
        raise typer.BadParameter(f"{path} does not end in {_SUFFIX}")
    check_files(log, data)
    redaction = Redaction()
    _note_own_secrets(redaction)
    files = {each: read_file(each).values for each in config}
    for values in files.values():
        redaction.settings(values)
    with waiting_line() as advance, written_bundle(path, redaction) as archive:
        found = _read(archive, bootstrap, advance, has_files=bool(log or data or config))
        _add_machine(archive, log, data, advance)
        for number, (file, values) in enumerate(files.items(), 1):
            archive.add_json(f"config/{number}.json", redaction.settings(values), f"settings of {file}")
        _add_doctor(archive, found, config, data, advance)
    if as_json:
        print_json(archive.manifest() | {"path": str(path)})
    _tell(archive, path)


def _default_path() -> Path:
    import time

    return Path(f"ottla-support-{time.strftime('%Y%m%d-%H%M%S')}{_SUFFIX}")


def _tell(archive: BundleArchive, path: Path) -> None:
    from ottla.cli.terminal.output import done
    from ottla.cli.terminal.plain import print_warning
    from ottla.operations.formats import size_text

    for missing in archive.missing:
        print_warning(f"not in the bundle: {missing['what']}: {missing['reason']}")
    size = size_text(path.stat().st_size)
    done(f"wrote {path}: {len(archive.members)} files, {size}; look at it before you pass it on")


def _note_own_secrets(redaction: Redaction) -> None:
    """Note the secrets that this command itself knows: they could be in logs."""
    import os

    from ottla.cli.profile.chosen import chosen

    redaction.settings(dict(os.environ))
    profile = chosen()
    if profile is not None:
        redaction.settings(profile.settings)


def _read(
    archive: BundleArchive, bootstrap: str, advance: Callable[[str], None], *, has_files: bool
) -> BundledCluster | None:
    """Add the cluster; None if no broker answers, which is an error unless files of this machine were named."""
    from ottla.cli.bundle.cluster import add_cluster, add_metrics, read_for_bundle
    from ottla.cli.profile.chosen import security
    from ottla.client.errors import ClientError
    from ottla.model.errors import ApiError
    from ottla.operations.failures import message_of

    try:
        found = with_admin(bootstrap, lambda admin: read_for_bundle(admin, advance))
    except (ClientError, ApiError, OSError) as error:
        if not has_files:
            raise
        archive.miss("the cluster", message_of(error))
        return None
    add_cluster(archive, found, advance)
    add_metrics(archive, found.seen, security(), advance)
    return found


def _add_machine(archive: BundleArchive, logs: list[Path], data: list[Path], advance: Callable[[str], None]) -> None:
    from ottla.cli.bundle.machine import add_directory, add_log, environment, logs_of, versions

    archive.add_json("versions.json", versions(), "versions on this machine")
    archive.add_json("environment.json", environment(), "environment of this command")
    for number, directory in enumerate(data, 1):
        advance(f"bundle: {directory}")
        add_directory(archive, directory, number)
    found = [*logs, *(each for directory in data for each in logs_of(archive, directory))]
    for number, path in enumerate(dict.fromkeys(found), 1):
        advance(f"bundle: {path}")
        add_log(archive, path, number)


def _add_doctor(
    archive: BundleArchive,
    found: BundledCluster | None,
    config: list[Path],
    data: list[Path],
    advance: Callable[[str], None],
) -> None:
    from ottla.cli.doctor.told import shown_json
    from ottla.operations.doctor.examination import Examination
    from ottla.operations.doctor.subjects import examine_cluster, examine_directories, examine_file

    examination = Examination(advance=advance)
    for path in config:
        examine_file(examination, path)
    if data:
        examine_directories(examination, data, None)
    if found is not None:
        examine_cluster(examination, found.seen)
    archive.add_json("doctor.json", shown_json(examination), "what `ottla doctor` finds")
