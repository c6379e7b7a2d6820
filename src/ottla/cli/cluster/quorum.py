"""`ottla cluster quorum`, `add-voter`, `remove-voter` and `features`: the metadata quorum and feature levels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.cli.cluster.run import run
from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, parse_reachable
from ottla.model.limits import INT32_MAX

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin.nodes import Feature
    from ottla.client.admin.voters import QuorumReplica, QuorumState

NodeId = Annotated[int, typer.Argument(min=0, max=INT32_MAX, help="The controller's node id.")]


def register(app: typer.Typer) -> None:
    app.command()(quorum)
    app.command("add-voter")(add_voter)
    app.command("remove-voter")(remove_voter)
    app.command()(features)


def quorum(as_json: Json = False, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """Show the metadata quorum: its leader, voters and observers, and the lag of each.

    The address may also be that of a controller. While there is no leader, a controller tells which voters do not
    answer and which may have lost their disk.
    """
    from ottla.cli.terminal.output import note, print_rows
    from ottla.model.ids import uuid_text
    from ottla.operations.cluster.view import quorum_of
    from ottla.operations.cluster.voters import advice, in_doubt

    async def look(admin: Admin) -> tuple[QuorumState, tuple[int, ...]]:
        seen = await quorum_of(admin)
        return seen, await in_doubt(admin, seen)

    found, doubtful = run(bootstrap, look)
    end = max((each.log_end_offset for each in found.voters), default=0)

    def row(each: QuorumReplica, role: str) -> dict[str, Any]:
        places = found.endpoints.get(each.node_id, ())
        return {
            "node": each.node_id,
            "role": "leader" if each.node_id == found.leader_id else role,
            "in_doubt": each.node_id in doubtful,
            "end": each.log_end_offset,
            "lag": max(0, end - each.log_end_offset),
            "address": ",".join(f"{at.host}:{at.port}" for at in places) or None,
            "directory": uuid_text(each.directory_id) if any(each.directory_id) else None,
            "epoch": found.leader_epoch,
        }

    rows = [*(row(each, "voter") for each in found.voters), *(row(each, "observer") for each in found.observers)]
    columns = ["node", "role", "in_doubt", "end", "lag", "address", "directory"]
    print_rows(rows, columns, as_json=as_json, right=["node", "end", "lag"])
    if not as_json:
        note(f"epoch {found.leader_epoch}, committed up to {found.high_watermark}")
        if doubtful:
            note(advice(doubtful))


def add_voter(
    node_id: NodeId,
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen", "-l", help="HOST:PORT where the other voters reach it; as it has registered unless given."
        ),
    ] = None,
    listener: Annotated[str, typer.Option("--listener", help="Name of that listener.")] = "CONTROLLER",
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Make a controller that observes the quorum a voter (dynamic quorums only)."""
    from ottla.cli.cluster import voter_handover
    from ottla.client.admin.voters import VoterEndpoint

    endpoints = (VoterEndpoint(listener, *parse_reachable(listen, "--listen")),) if listen is not None else ()
    run(bootstrap, lambda admin: voter_handover.add_voter(admin, node_id, endpoints))


def remove_voter(node_id: NodeId, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """Remove a controller from the voters (dynamic quorums only); it may be stopped then."""
    from ottla.cli.cluster import voter_handover

    run(bootstrap, lambda admin: voter_handover.remove_voter(admin, node_id))


def features(
    levels: Annotated[list[str] | None, typer.Argument(help="Feature levels to set, NAME=LEVEL.")] = None,
    downgrade: Annotated[bool, typer.Option("--downgrade", help="Allow lower levels, if no metadata is lost.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only check whether the cluster would accept the change.")
    ] = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Show feature levels (metadata.version and others), or change them: the last step of a rolling upgrade."""
    from ottla.cli.options import parse_pairs
    from ottla.cli.terminal.output import done, print_rows
    from ottla.client.admin.nodes import Upgrade

    wanted: dict[str, int] = {}
    for name, level in parse_pairs(levels or [], "level").items():
        if not level.isdecimal():
            raise typer.BadParameter(f"{level!r} is no level")
        wanted[name] = int(level)
    kind = Upgrade.SAFE_DOWNGRADE if downgrade else Upgrade.UPGRADE

    async def work(admin: Admin) -> list[Feature]:
        if wanted:
            await admin.nodes.update_features(wanted, kind, validate_only=dry_run)
        return await admin.nodes.features()

    found = run(bootstrap, work)
    if wanted:
        text = ", ".join(f"{name} {level}" for name, level in wanted.items())
        done(f"it would be possible: {text}" if dry_run else f"finalised {text}")
        return
    rows = [
        {"feature": each.name, "level": each.finalized, "min": each.min_version, "max": each.max_version}
        for each in found
    ]
    print_rows(rows, ["feature", "level", "min", "max"], as_json=as_json, right=["level", "min", "max"])
