"""`ottla config`: settings of topics, brokers and other resources, with their sources."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.cli.options import (
    DEFAULT_BOOTSTRAP,
    Append,
    Bootstrap,
    Json,
    Settings,
    Subtract,
    Unset,
    parse_pairs,
    with_admin,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.client.admin import Admin
    from ottla.client.admin.configs import Change, ConfigEntry
    from ottla.model.resources import Resource

app = typer.Typer(help="Show and change settings of topics, brokers, groups and others.", no_args_is_help=True)


class ResourceKind(StrEnum):
    """The kinds of resources that have settings."""

    topic = "topic"
    broker = "broker"
    group = "group"
    client_metrics = "client-metrics"
    broker_logger = "broker-logger"


KindArgument = Annotated[
    ResourceKind,
    typer.Argument(help="Type of resource: topic, broker, group, client-metrics or broker-logger.", show_default=False),
]
NameArgument = Annotated[
    str,
    typer.Argument(help="Name of the resource; for a broker its id, or `default` for all brokers."),
]


def _resource(kind: ResourceKind, name: str) -> Resource:
    from ottla.model.resources import Resource, ResourceType

    if kind is ResourceKind.broker and name == "default":
        return Resource.broker(None)
    if kind in (ResourceKind.broker, ResourceKind.broker_logger) and not name.isdecimal():
        raise typer.BadParameter(f"{name!r} is not a broker id")
    return Resource(ResourceType[kind.name.upper()], name)


async def _check_there(admin: Admin, resource: Resource) -> None:
    """Raise CommandError if a broker does not exist: only the broker itself serves its settings, so the command would
    wait.
    """
    from ottla.model.resources import ResourceType
    from ottla.operations.errors import CommandError

    if resource.type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and resource.name:
        await admin.cluster.refresh()
        there = sorted(admin.cluster.metadata.brokers)
        if int(resource.name) not in there:
            raise CommandError(
                f"broker {resource.name} is not there: the brokers are {', '.join(map(str, there))}",
                "`ottla cluster status` shows them; `broker default` holds for all",
            )


def _warn_of_unknown(changes: Iterable[Change]) -> None:
    """Warn of unknown settings, as a node does at its start, because brokers accept them."""
    from ottla.cli.terminal.plain import print_warning
    from ottla.model.broker_settings import BROKER_SETTINGS
    from ottla.model.config import unknown

    for name, nearest in unknown({each.name: each.value or "" for each in changes}, BROKER_SETTINGS):
        print_warning(f"there is no setting {name}" + (f", did you mean {nearest}?" if nearest else ""))


@app.command()
def get(
    kind: KindArgument,
    name: NameArgument,
    keys: Annotated[list[str] | None, typer.Argument(help="Only these settings.", show_default=False)] = None,
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="Also show settings that have their default value.")
    ] = False,
    docs: Annotated[bool, typer.Option("--docs", "-d", help="Show the documentation of each setting.")] = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Show settings, and where their values come from."""
    from ottla.cli.terminal.output import note, print_json, print_table
    from ottla.operations.errors import CommandError

    async def work(admin: Admin) -> list[ConfigEntry]:
        await _check_there(admin, _resource(kind, name))
        return await admin.configs.describe(_resource(kind, name), keys or None, documentation=docs)

    entries = with_admin(bootstrap, work)
    missing = sorted(set(keys or []) - {each.name for each in entries})
    if missing:
        raise CommandError(f"{kind.value} {name} has no setting {', '.join(missing)}", "`--all` lists them")
    shown = entries if everything or keys else [each for each in entries if not each.is_default]
    if as_json:
        print_json([_entry(each) for each in shown])
        return
    columns = ["setting", "value", "source", "default"]
    rows: list[list[object]] = [[each.name, _value(each), _source(each), _default(each)] for each in shown]
    if docs:
        columns.append("meaning")
        rows = [[*row, each.documentation or ""] for row, each in zip(rows, shown, strict=True)]
    print_table(columns, rows)
    if len(shown) < len(entries):
        note(f"{len(entries) - len(shown)} more are at their defaults (--all shows them)")


@app.command("set")
def set_values(
    kind: KindArgument,
    name: NameArgument,
    settings: Settings = None,
    unset: Unset = [],  # noqa: B006
    append: Append = [],  # noqa: B006
    subtract: Subtract = [],  # noqa: B006
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Change settings; the others stay as they are."""
    apply_changes(bootstrap, _resource(kind, name), settings or [], unset, append, subtract)


def apply_changes(
    bootstrap: str,
    resource: Resource,
    settings: Iterable[str],
    unset: Iterable[str],
    append: Iterable[str],
    subtract: Iterable[str],
) -> None:
    """Alter a resource's settings; shared with `ottla topic alter`."""
    from ottla.cli.terminal.output import done
    from ottla.client.admin.configs import Change, Operation
    from ottla.model.resources import ResourceType

    changes = [Change(each, value) for each, value in parse_pairs(settings).items()]
    changes += [Change(each, None, Operation.DELETE) for each in unset]
    changes += [Change(each, value, Operation.APPEND) for each, value in parse_pairs(append, "--append").items()]
    changes += [Change(each, value, Operation.SUBTRACT) for each, value in parse_pairs(subtract, "--subtract").items()]
    if not changes:
        raise typer.BadParameter("nothing to change: give NAME=VALUE, --unset, --append or --subtract")

    async def work(admin: Admin) -> None:
        await _check_there(admin, resource)
        await admin.configs.alter(resource, changes)

    if resource.type == ResourceType.BROKER:
        _warn_of_unknown(changes)

    with_admin(bootstrap, work)
    done(f"changed {', '.join(each.name for each in changes)} of {resource}")


def _value(entry: ConfigEntry) -> str:
    return "(hidden)" if entry.is_sensitive else "-" if entry.value is None else entry.value


def _source(entry: ConfigEntry) -> str:
    return entry.source.name.lower().replace("_", "-")


def _default(entry: ConfigEntry) -> str:
    """The value of the setting without overrides: that of its synonym with the source DEFAULT."""
    from ottla.model.resources import ConfigSource

    for each in entry.synonyms:
        if each.source == ConfigSource.DEFAULT:
            return "-" if each.value is None else each.value
    return _value(entry) if entry.is_default else "-"


def _entry(entry: ConfigEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "value": entry.value,
        "source": _source(entry),
        "type": entry.type.name.lower(),
        "read_only": entry.is_read_only,
        "sensitive": entry.is_sensitive,
        "documentation": entry.documentation,
        "synonyms": [
            {"name": each.name, "value": each.value, "source": each.source.name.lower().replace("_", "-")}
            for each in entry.synonyms
        ],
    }
