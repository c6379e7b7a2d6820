"""`ottla api`: the APIs and versions that a running node serves, compared with those that this client knows."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, client_options

if TYPE_CHECKING:
    from ottla.client.connection import VersionRange


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Looking inside")(api)


def api(
    missing: Annotated[
        bool, typer.Option("--missing", "-m", help="Only APIs of which node and client serve different versions.")
    ] = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Show the APIs and versions that a node serves, and those that this client knows."""
    from ottla.cli.terminal.output import print_rows
    from ottla.client.admin import Admin

    async def run() -> dict[int, VersionRange]:
        async with Admin(client_options(bootstrap)) as admin:
            return await admin.nodes.api_versions()

    rows = _rows(asyncio.run(run()))
    shown = [row for row in rows if row["note"]] if missing else rows
    print_rows(shown, ["key", "api", "served", "known", "note"], as_json=as_json, right=["key"])


def _rows(served: dict[int, VersionRange]) -> list[dict[str, Any]]:
    from ottla.wire.api import API_NAMES

    rows = []
    for key in sorted({*served, *API_NAMES}):
        theirs = served.get(key)
        ours = _stable_versions(key) if key in API_NAMES else None
        if theirs is None:
            note = "not served"
        elif ours is None:
            note = "unknown to this Ottla"
        else:
            note = _difference(tuple(theirs), ours)
        rows.append(
            {
                "key": key,
                "api": API_NAMES.get(key, "?"),
                "served": _versions(theirs),
                "known": _versions(ours),
                "note": note,
            }
        )
    return rows


def _stable_versions(key: int) -> tuple[int, int]:
    """The versions that this Ottla knows, without those that are still unstable in Kafka."""
    from ottla.wire.api import request_class

    message = request_class(key)
    low, high = message.versions
    return low, high - message.latest_unstable


def _difference(theirs: tuple[int, ...], ours: tuple[int, int]) -> str:
    if theirs[1] < ours[1]:
        return "older"
    return "newer" if theirs[1] > ours[1] else ""


def _versions(versions: tuple[int, ...] | None) -> str:
    if versions is None:
        return "-"
    low, high = versions
    return str(low) if low == high else f"{low}-{high}"
