"""`ottla client`: the client instances that tell the cluster about themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, with_admin
from ottla.operations.errors import CommandError

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.operations.metrics.samples import MetricSamples

app = typer.Typer(help="See the clients that push telemetry.", no_args_is_help=True)

_COLUMNS = ("client", "software", "version", "address", "group", "transactional_id", "node", "pushed")
_SUBSCRIBE = "`ottla config set client-metrics all metrics=* interval.ms=10000` asks clients to push"


@app.command("list")
def list_clients(as_json: Json = False, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """List the client instances that push telemetry: their software, their address, and when they last pushed.

    Kafka's Java clients and librdkafka push what a subscription asks for. Nodes with ottla.metrics.listener
    take this telemetry and tell it; what else they know of a client is in their metrics.
    """
    from ottla.cli.terminal.output import note, print_rows
    from ottla.cli.terminal.plain import print_warning
    from ottla.operations.sampling.clients import pushing_clients

    missing: list[str] = []
    metrics = with_admin(bootstrap, lambda admin: _metrics(admin, missing))
    if not metrics:
        raise CommandError(
            "; ".join(missing) or "no broker tells metrics", "set ottla.metrics.listener on the nodes, and restart them"
        )
    for each in missing:
        print_warning(each)
    found = pushing_clients(metrics)
    rows = [each._asdict() | {"pushed": _ago(each.seconds)} for each in found]
    print_rows(rows, _COLUMNS, as_json=as_json)
    if not rows and not as_json:
        note(f"no client pushes telemetry: {_SUBSCRIBE}")


async def _metrics(admin: Admin, missing: list[str]) -> dict[int, MetricSamples]:
    from ottla.cli.profile.chosen import security
    from ottla.operations.sampling.sample import TopSampler

    brokers = (await admin.nodes.describe()).brokers
    return await TopSampler(admin, security()).metrics(brokers, missing)


def _ago(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.0f} s ago"
