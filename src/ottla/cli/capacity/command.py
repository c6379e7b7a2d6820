"""`ottla plan`: read what is asked for, and show the answers and the arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.options import Json, parse_duration_ms

if TYPE_CHECKING:
    from ottla.cli.capacity.plan import CapacityPlan, PlannedLoad, PlannedNode

_REPLICAS_MAX, _TIMES_MAX = 100, 100_000
_BYTES_MAX = 10**18
_PANEL = "Nodes"

FanOut = Annotated[float, typer.Option("--fan-out", min=0, max=_TIMES_MAX, help="How many groups read everything.")]
Compression = Annotated[
    float, typer.Option("--compression", min=1, max=_TIMES_MAX, help="Size before compression, divided by after.")
]
Peak = Annotated[
    float, typer.Option("--peak", min=1, max=_TIMES_MAX, help="Highest rate, as a multiple of the average.")
]


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel=_PANEL)(plan)


def plan(
    rate: Annotated[str, typer.Option("--in", help="Bytes per second that producers write, on average: 100MB/s.")],
    retention: Annotated[str, typer.Option("--retention", "-r", help="How long records are kept: 7d.")] = "7d",
    replicas: Annotated[int, typer.Option("--replicas", min=1, max=_REPLICAS_MAX, help="Replicas.")] = 3,
    message_size: Annotated[str, typer.Option("--message-size", help="Size of a record.")] = "1KiB",
    fan_out: FanOut = 1,
    compression: Compression = 1,
    peak: Peak = 2,
    disk: Annotated[str, typer.Option("--disk", help="Size of the disks of one broker.")] = "4TB",
    fill: Annotated[float, typer.Option("--fill", min=0.01, max=1, help="Share of a disk that may be filled.")] = 0.7,
    disk_rate: Annotated[str, typer.Option("--disk-rate", help="Bytes per second that these disks write.")] = "200MB/s",
    network: Annotated[str, typer.Option("--network", help="Bytes per second, in each direction.")] = "1.25GB/s",
    load: Annotated[
        float, typer.Option("--load", min=0.01, max=1, help="Share of CPU, network and disk rate in use at the peak.")
    ] = 0.5,
    partition_rate: Annotated[
        str, typer.Option("--partition-rate", help="Bytes per second that one consumer processes.")
    ] = "10MB/s",
    cache: Annotated[str, typer.Option("--cache", help="How far behind readers are still served from memory.")] = "60s",
    spare: Annotated[
        int, typer.Option("--spare", min=0, max=_REPLICAS_MAX, help="Brokers that may be down at the peak.")
    ] = 1,
    as_json: Json = False,
) -> None:
    """Plan the capacity for a load: brokers, disks, partitions, network, memory, with the arithmetic line by line.

    What a gigabyte costs a broker was measured (docs/performance.md); docs/capacity.md says which defaults are
    assumptions. Nothing is asked of a cluster.
    """
    from ottla.cli.capacity.plan import PlannedLoad, PlannedNode
    from ottla.cli.capacity.plan import plan as compute_plan

    wanted = PlannedLoad(
        in_rate=_size(rate, "--in"),
        retention_s=_seconds(retention, "--retention"),
        replicas=replicas,
        message_bytes=_size(message_size, "--message-size"),
        fan_out=fan_out,
        compression=compression,
        peak=peak,
    )
    node = PlannedNode(
        disk_bytes=_size(disk, "--disk"),
        fill=fill,
        disk_rate=_size(disk_rate, "--disk-rate"),
        network_rate=_size(network, "--network"),
        load=load,
        partition_rate=_size(partition_rate, "--partition-rate"),
        cache_s=_seconds(cache, "--cache"),
        spare=spare,
    )
    found = compute_plan(wanted, node)
    if as_json:
        _print_json(wanted, node, found)
    else:
        _show(found)


def _size(text: str, option: str) -> float:
    """Parse `100MB/s`, `4TB`, `1KiB`."""
    from ottla.operations.errors import WrongUsage
    from ottla.operations.formats import parse_rate

    try:
        size = parse_rate(text)
    except (WrongUsage, OverflowError):
        size = 0
    if not 0 < size <= _BYTES_MAX:
        raise typer.BadParameter(f"{text!r} is not a size such as 100MB or 4TiB, up to 1 EB", param_hint=option)
    return float(size)


def _seconds(text: str, option: str) -> float:
    duration_ms = parse_duration_ms(text, option)
    if duration_ms == 0:
        raise typer.BadParameter(f"{text} has to be above 0", param_hint=option)
    return duration_ms / 1000


def _show(found: CapacityPlan) -> None:
    from ottla.cli.capacity.arithmetic import Quantity, QuantityUnit
    from ottla.cli.terminal.output import out, print_table

    size, rate = QuantityUnit.BYTES, QuantityUnit.RATE
    rows = [
        ("brokers", f"{found.brokers}, which {found.limited_by} decides"),
        ("disk of each", str(Quantity(found.disk_bytes, size))),
        ("partitions", str(found.partitions)),
        ("network of each", f"{Quantity(found.in_rate, rate)} in, {Quantity(found.out_rate, rate)} out, at the peak"),
        ("memory of each", str(Quantity(found.memory_bytes, size))),
    ]
    print_table(["needed", ""], rows)
    out().print()
    lines = [
        (each.name, each.formula, f"= {each.result}{', rounded up' if each.is_rounded else ''}") for each in found.lines
    ]
    print_table(["arithmetic", "", ""], lines)


def _print_json(load: PlannedLoad, node: PlannedNode, found: CapacityPlan) -> None:
    from ottla.cli.terminal.output import print_json

    lines = [
        {"name": each.name, "formula": each.formula, "value": each.result.value, "unit": each.result.unit.value}
        for each in found.lines
    ]
    print_json({"load": load._asdict(), "broker": node._asdict(), **found._asdict(), "lines": lines})
