"""Whether a local cluster has all its files, before it is started or anything new is written in their place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ottla.cli.nodes.local_cluster import LocalNode, found_nodes
from ottla.cli.terminal.plain import print_warning
from ottla.log.files.checkpoint import META_PROPERTIES
from ottla.model.settings.log import LOG_DIRS
from ottla.operations.errors import CommandError
from ottla.server.ports.system import is_in_use

_DATA = re.compile(r"node-\d+")


def check_files(directory: Path) -> None:
    """Raise CommandError if the data of nodes is there without the property file of any node; warn of nodes whose file
    is missing beside those of others. The file of a removed node is called `.removed`.
    """
    lost = _without_file(directory)
    if not lost:
        return
    first = lost[0]
    if found_nodes(directory):
        for each in lost:
            print_warning(
                f"{each}.properties is missing: {each} is not started, its data in {directory / each} is intact. "
                "Put the file back from a backup, or write it after that of another node, with its own node.id, "
                "addresses, log.dirs and certificate"
            )
    elif not any(directory.glob("node-*.removed")):
        raise CommandError(
            f"{first}.properties is missing from {directory}; the data in {directory / first} is intact",
            f"put the file back from a backup; without one: move {directory / first} out of {directory}, run "
            "`ottla up` with the options of the first start, which writes the file anew, stop it, and move the data "
            "back in place of the new one",
        )


def check_data(directory: Path, nodes: Sequence[LocalNode]) -> None:
    """Raise CommandError if a node is running, or if the data of all controllers is gone: the nodes would become a new
    cluster without records and users.
    """
    running = running_nodes(nodes)
    if running:
        addresses = ",".join(each.told_address for each in nodes if each.is_broker)
        raise CommandError(
            f"{directory} is already running: {running[0].name} uses its data",
            f"clients reach it at {addresses}; Ctrl-C where it was started, or SIGTERM, stops it",
        )
    controllers = [each for each in nodes if each.is_controller]
    if controllers and not any(_is_formatted(path) for each in controllers for path in _data_of(each)):
        names = ", ".join(each.name for each in controllers)
        where = ", ".join(path for each in controllers for path in _data_of(each))
        raise CommandError(
            f"the data of {names} is gone: {where} has no {META_PROPERTIES}",
            f"put the data back from a backup; for a new, empty cluster: --data DIR names another directory, or delete "
            f"{directory} first",
        )


def running_nodes(nodes: Sequence[LocalNode]) -> list[LocalNode]:
    """Return the nodes whose data a process uses, whoever started it."""
    return [each for each in nodes if any(map(is_in_use, _data_of(each)))]


def _without_file(directory: Path) -> list[str]:
    """The names of nodes whose data is there, and whose property file is not."""
    if not directory.is_dir():
        return []
    return sorted(
        each.name
        for each in directory.iterdir()
        if _DATA.fullmatch(each.name)
        and _is_formatted(each)
        and not any((directory / f"{each.name}{end}").exists() for end in (".properties", ".removed"))
    )


def _data_of(node: LocalNode) -> list[str]:
    return [each.strip() for each in node.values.get(LOG_DIRS.name, "").split(",") if each.strip()]


def _is_formatted(path: str | Path) -> bool:
    return (Path(path) / META_PROPERTIES).exists()
