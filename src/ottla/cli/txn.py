"""`ottla txn`: list, describe, abort transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, parse_duration_ms, with_admin
from ottla.model.limits import INT64_MAX
from ottla.operations.errors import CommandError
from ottla.operations.formats import parse_index

if TYPE_CHECKING:
    from ottla.client.admin import Admin

app = typer.Typer(help="Show transactions, and abort those that hang.", no_args_is_help=True)

_ABORTABLE = "Ongoing"  # the outcome of a transaction in any other state is decided


@app.command("list")
def list_transactions(
    state: Annotated[list[str], typer.Option("--state", help="Only ids in this state; may be repeated.")] = [],  # noqa: B006
    running: Annotated[
        str | None,
        typer.Option("--running", help="Only ids whose transaction has been open for at least this long: 10m."),
    ] = None,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """List transactional ids."""
    from ottla.cli.terminal.each import end_with
    from ottla.cli.terminal.output import print_rows

    running_ms = -1 if running is None else parse_duration_ms(running, "--running")

    listed = with_admin(bootstrap, lambda admin: admin.transactions.all_each(state, running_ms=running_ms))
    found = sorted(each for ids in listed.found.values() for each in ids)
    if running is not None:  # in Kafka, an id without a transaction counts as open for ever
        from ottla.operations.held_partitions import OPEN_STATES

        found = [each for each in found if each.state in OPEN_STATES]
    rows = [{"id": each.transactional_id, "producer": each.producer_id, "state": each.state} for each in found]
    print_rows(rows, ["id", "producer", "state"], as_json=as_json, right=["producer"])
    end_with(listed, "broker", " (the ids that it coordinates are missing)")


@app.command()
def describe(
    transactional_id: Annotated[str, typer.Argument(help="The transactional id.")],
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Show the state of a transactional id and the partitions of its transaction."""
    from ottla.cli.terminal.output import print_json, print_table
    from ottla.operations.formats import time_text

    async def work(admin: Admin) -> dict[str, Any]:
        found = await admin.transactions.describe(transactional_id)
        now_ms = admin.cluster.options.now_ms()
        return {
            "id": found.transactional_id,
            "state": found.state,
            "producer": found.producer_id,
            "epoch": found.producer_epoch,
            "timeout_ms": found.timeout_ms,
            "started_ms": found.started_ms,
            "running_seconds": None if found.started_ms is None else max(now_ms - found.started_ms, 0) / 1000,
            "partitions": [f"{each.topic}-{each.partition}" for each in found.partitions],
        }

    row = with_admin(bootstrap, work)
    if as_json:
        print_json(row)
        return
    shown = {**row, "started": None if row["started_ms"] is None else time_text(row["started_ms"])}
    columns = ["id", "state", "producer", "epoch", "timeout_ms", "started", "running_seconds", "partitions"]
    print_table(columns, [[shown[name] for name in columns]])


@app.command()
def abort(
    transactional_id: Annotated[str | None, typer.Argument(help="The transactional id.")] = None,
    partition: Annotated[
        str | None, typer.Option("--partition", help="TOPIC:PARTITION in which the transaction hangs.")
    ] = None,
    start_offset: Annotated[
        int | None, typer.Option("--start-offset", min=0, max=INT64_MAX, help="Offset of its first record there.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Fence the producer of the id even if it has no open transaction.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Abort the open transaction of a transactional id, and fence its producer.

    Without an open transaction nothing is done, and the exit code is 1: fencing would only stop a producer that is
    between two transactions.

    --partition and --start-offset abort a transaction that hangs in a partition and is unknown to its coordinator.
    """
    from ottla.cli.terminal.output import done

    if (transactional_id is None) == (partition is None or start_offset is None):
        raise typer.BadParameter("give a transactional id, or --partition and --start-offset")

    async def work(admin: Admin) -> None:
        if transactional_id is not None:
            state = (await admin.transactions.describe(transactional_id)).state
            if state != _ABORTABLE and not force:
                raise CommandError(
                    f"{transactional_id} has no open transaction to abort: it is in state {state}. Nothing was done",
                    "--force fences its producer all the same",
                )
            await admin.transactions.abort(transactional_id)
            done(f"{transactional_id} has no open transaction any more, and its producer is fenced")
        else:
            assert partition is not None and start_offset is not None, "checked above"
            producer = await admin.transactions.abort_in(_partition(partition), start_offset)
            done(f"the transaction of producer {producer.producer_id} in {partition} is aborted")

    with_admin(bootstrap, work)


def _partition(text: str) -> Any:
    from ottla.model.ids import TopicPartition

    name, colon, index = text.rpartition(":")
    number = parse_index(index)
    if not colon or number is None:
        raise typer.BadParameter(f"{text!r} is not TOPIC:PARTITION", param_hint="--partition")
    return TopicPartition(name, number)
