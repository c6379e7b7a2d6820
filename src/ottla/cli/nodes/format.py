"""`ottla format`: format data directories for a quorum with dynamic voters, like `kafka-storage format`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.terminal.plain import print_warning
from ottla.model.settings.controller import CONTROLLER_QUORUM_VOTERS, METADATA_LOG_DIR
from ottla.operations.errors import CommandError, WrongUsage

if TYPE_CHECKING:
    from ottla.security.sasl.scram.arguments import ScramUser


def register(app: typer.Typer) -> None:
    app.command("format", rich_help_panel="Nodes")(format_)


def format_(
    config: Annotated[Path, typer.Argument(help="server.properties of the node.")],
    cluster_id: Annotated[
        str | None,
        typer.Option("--cluster-id", "-t", help="Id of the cluster, the same for all nodes; a new one unless given."),
    ] = None,
    standalone: Annotated[
        bool, typer.Option("--standalone", help="This controller is the first and only voter of the quorum.")
    ] = False,
    initial_controllers: Annotated[
        str | None,
        typer.Option("--initial-controllers", help="The first voters of the quorum: ID@HOST:PORT:DIRECTORY,..."),
    ] = None,
    no_initial_controllers: Annotated[
        bool, typer.Option("--no-initial-controllers", help="This node joins an existing quorum, or is a broker.")
    ] = False,
    release_version: Annotated[
        str | None,
        typer.Option(
            "--release-version", "-r", help="Start with the feature levels of this Kafka release, such as 4.0."
        ),
    ] = None,
    feature: Annotated[
        list[str] | None,
        typer.Option("--feature", "-f", help="Start with this feature level, FEATURE=LEVEL; may be repeated."),
    ] = None,
    add_scram: Annotated[
        list[str] | None,
        typer.Option(
            "--add-scram",
            "-S",
            help="User of the new cluster, as 'SCRAM-SHA-256=[name=alice,password=secret]', or @FILE with one such "
            "user per line, which keeps passwords out of the list of processes; may be repeated.",
        ),
    ] = None,
    ignore_formatted: Annotated[
        bool, typer.Option("--ignore-formatted", help="Skip directories that are already formatted.")
    ] = False,
) -> None:
    """Format the data directories of a node by hand.

    This is needed for a quorum whose voters can change while it runs (kraft.version 1), for a cluster that starts
    with the features of an older release, and for one whose brokers log in to each other with SCRAM. Other nodes
    format empty directories when they start: those that have `controller.quorum.voters`, are alone, or are their own
    only entry in `controller.quorum.bootstrap.servers`.
    """
    if sum((standalone, initial_controllers is not None, no_initial_controllers)) > 1:
        raise typer.BadParameter("--standalone, --initial-controllers and --no-initial-controllers exclude each other")
    if cluster_id is None:
        if initial_controllers is not None or no_initial_controllers:
            raise WrongUsage(
                "--cluster-id is missing", "it is that of the other nodes: `ottla cluster status` shows it"
            )
        cluster_id = _new_id()
    voters = (standalone, initial_controllers, no_initial_controllers)
    users = _scram_users(add_scram or [])
    for path in _format(config, cluster_id, *voters, release_version, feature or [], users, ignore_formatted):
        print(f"formatted {path} for cluster {cluster_id}")


def _scram_users(arguments: list[str]) -> list[ScramUser]:
    """Return the users of `--add-scram`; those in a file are not shown to other users of the machine."""
    import os

    from ottla.security.sasl.scram.arguments import parse_scram_user

    texts: list[str] = []
    for argument in arguments:
        if argument.startswith("@"):
            texts += filter(None, map(str.strip, _text_of(Path(argument[1:])).splitlines()))
        else:
            texts.append(argument)
            if "password=" in argument.replace("saltedpassword=", ""):
                print_warning("others may see this password, in the list of processes: --add-scram @FILE hides it")
    try:
        return [parse_scram_user(text, os.urandom) for text in texts]
    except ValueError as error:
        raise WrongUsage(f"--add-scram: {error}") from None


def _text_of(file: Path) -> str:
    try:
        return file.read_text()
    except UnicodeDecodeError:
        raise CommandError(
            f"--add-scram: {file} is not text", "each line of it is MECHANISM=[name=…,password=…]"
        ) from None


def _new_id() -> str:
    import random

    from ottla.model.ids import random_uuid, uuid_text

    return uuid_text(random_uuid(random.SystemRandom()))


def _format(
    config: Path,
    cluster_id: str,
    standalone: bool,
    initial: str | None,
    no_initial: bool,
    release: str | None,
    chosen: list[str],
    users: list[ScramUser],
    ignore_formatted: bool,
) -> list[str]:
    import random
    import time

    from ottla.cli.nodes.start import StartOptions, node_values
    from ottla.model.ids import random_uuid, uuid_bytes
    from ottla.raft.voters import Voter, VoterSet
    from ottla.server.ports.os_disk import OsDisk
    from ottla.server.quorum.settings import controller_listener, is_controller, own_endpoints
    from ottla.server.settings.configs import Configs
    from ottla.server.storage.formatting import format_directories, initial_levels, parse_controllers
    from ottla.server.storage.identity import IdentityError

    configs = Configs(node_values(StartOptions(config=str(config))))
    settings = configs.broker
    rng = random.SystemRandom()
    voters: VoterSet | None = None
    try:
        uuid_bytes(cluster_id)
        if standalone:
            if not is_controller(settings):
                raise CommandError("--standalone is for controllers")
            voters = VoterSet([Voter(configs.node_id, random_uuid(rng), own_endpoints(settings))])
        elif initial is not None:
            voters = parse_controllers(initial, controller_listener(settings))
        elif is_controller(settings) and not no_initial and not settings[CONTROLLER_QUORUM_VOTERS]:
            raise CommandError(
                "controller.quorum.voters is not set: say --standalone, --initial-controllers or "
                "--no-initial-controllers"
            )
        if voters is not None and settings[CONTROLLER_QUORUM_VOTERS]:
            raise CommandError("controller.quorum.voters is set: the voters are fixed, and not in the journal")
        home = settings[METADATA_LOG_DIR] or configs.log_dirs()[0]
        return format_directories(
            [(path, OsDisk(path)) for path in configs.log_dirs()],
            home,
            node_id=configs.node_id,
            cluster_id=cluster_id,
            voters=voters,
            now_ms=time.time_ns() // 1_000_000,
            rng=rng,
            ignore_formatted=ignore_formatted,
            users=users,
            levels=initial_levels(release, chosen, dynamic=standalone or initial is not None or no_initial),
        )
    except ValueError as error:
        raise CommandError(str(error)) from None
    except IdentityError as error:
        raise CommandError(str(error), error.hint) from None
