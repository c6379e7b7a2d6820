"""`ottla cluster`: status, reassign, elect, drain, balance, add-broker, remove-broker; `quorum` has the other commands.

Rules:
- A command that moves replicas shows its plan, and carries it out only with `--execute`.
- `status` can be used in scripts: the exit code is 0 if there are no problems, 1 if there are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.cluster import quorum as cluster_quorum
from ottla.cli.cluster.run import run
from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, parse_duration_ms, parse_reachable
from ottla.model.limits import INT32_MAX
from ottla.operations.errors import CommandError
from ottla.operations.formats import parse_index

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.cluster.balance.loads import BalancePlan, ReplicaMove
    from ottla.model.ids import TopicPartition
    from ottla.operations.cluster.view import ClusterView

app = typer.Typer(
    help="Look at a cluster, move partitions between its brokers, add and remove brokers.", no_args_is_help=True
)

BrokerId = Annotated[int, typer.Argument(min=0, max=INT32_MAX, help="The broker's node id.")]
Execute = Annotated[bool, typer.Option("--execute", help="Carry it out; without this option the plan is only shown.")]
Throttle = Annotated[
    str | None, typer.Option("--throttle", help="Limit of the moves, in bytes per second and broker: 50MiB, 1GB.")
]
AtOnce = Annotated[int, typer.Option("--at-once", min=1, help="Number of partitions that are copied at the same time.")]
Data = Annotated[Path, typer.Option("--data", "-d", help="The directory of a local cluster (`ottla up --brokers`).")]
_ADD_FIRST = "add a broker first (`ottla cluster add-broker`), or keep less (`ottla cluster reassign`)"
_AT_ONCE = 10
_SHOWN_PROBLEMS = 20


@app.command()
def status(as_json: Json = False, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """Show brokers, the controller, and partitions with problems. The exit code is 1 if there are any."""
    from ottla.cli.terminal.output import note, print_json
    from ottla.operations.cluster.throttle import Throttles, left_behind, tell_of
    from ottla.operations.cluster.view import look, status_json

    async def ask(admin: Admin) -> tuple[ClusterView, Throttles | None]:
        view = await look(admin)
        return view, await left_behind(admin, view)

    view, throttled = run(bootstrap, ask)
    if as_json:
        print_json(status_json(view) | {"throttle_left_behind": throttled is not None})
    else:
        _show_status(view)
        tell_of(throttled, note)
    if view.problems():
        raise typer.Exit(1)


def _show_status(view: ClusterView) -> None:
    from ottla.cli.terminal.output import done, literal, note, out, print_table
    from ottla.operations.cluster.voters import advice
    from ottla.operations.formats import size_text

    out().print(f"[bold]{view.cluster_id}[/bold]  controller {view.quorum.leader_id}  epoch {view.quorum.leader_epoch}")
    columns = ["broker", "address", "rack", "state", "leaders", "replicas", "size", "free"]
    rows = [
        [
            each.id,
            str(each.broker.address),
            each.broker.rack,
            "fenced" if each.broker.is_fenced else "up",
            each.leaders,
            each.replicas,
            "?" if each.size_bytes is None else size_text(each.size_bytes),
            "?" if each.free_bytes is None else size_text(each.free_bytes),
        ]
        for each in view.brokers
    ]
    print_table(columns, rows, right=["broker", "leaders", "replicas", "size", "free"])
    moving = [each for each in view.partitions if each.move is not None]
    if moving:
        note(f"{len(moving)} partitions are moving: `ottla cluster reassign --list`")
    problems = view.problems()
    for kind, names in problems.items():
        shown = ", ".join(names[:_SHOWN_PROBLEMS])
        more = f" … {len(names)} in all" if len(names) > _SHOWN_PROBLEMS else ""
        out().print(f"[bold red]{kind.replace('_', ' ')}[/bold red]: {literal(shown)}{more}")
    if view.in_doubt:
        note(advice(view.in_doubt))
    if not problems:
        done(f"all {len(view.partitions)} partitions are in sync" if view.partitions else "there are no partitions yet")


@app.command()
def elect(
    partitions: Annotated[list[str] | None, typer.Argument(help="TOPIC:PARTITION; all unless given.")] = None,
    unclean: Annotated[
        bool,
        typer.Option("--unclean", help="Elect any live replica of partitions without a leader: this LOSES records."),
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Make the preferred replica (the first of the list) the leader again, wherever it is in sync."""
    from ottla.cli.terminal.output import done
    from ottla.cli.terminal.plain import print_error
    from ottla.client.admin.replicas import Election
    from ottla.operations.failures import hint_for

    wanted = [_partition(each) for each in partitions] if partitions else None
    if unclean and wanted is None:
        raise typer.BadParameter("name the partitions that are worth losing records for")
    kind = Election.UNCLEAN if unclean else Election.PREFERRED
    outcomes = run(bootstrap, lambda admin: admin.replicas.elect_each(wanted, kind))
    for at, error in list(outcomes.failed.items())[:_SHOWN_PROBLEMS]:
        print_error(f"{at}: {error}", hint_for(error) or "`ottla cluster status` shows partitions with problems")
    elected = sum(outcomes.found.values())
    if outcomes.found:
        done(f"{elected} elected, {len(outcomes.found) - elected} needed no election")
    elif not outcomes.failed:
        done("all preferred replicas lead already")
    if outcomes.failed:
        raise typer.Exit(1)


@app.command()
def reassign(
    moves: Annotated[
        list[str] | None, typer.Argument(help="New replicas of a partition: TOPIC:PARTITION=1,2,3.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Moves as JSON, in the format of kafka-reassign-partitions.")
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="List moves that are in progress.")] = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="Cancel moves: those of TOPIC:PARTITION, or all.")] = False,
    unthrottle: Annotated[
        bool, typer.Option("--unthrottle", help="Remove the throttle that an interrupted command left behind.")
    ] = False,
    execute: Execute = False,
    throttle: Throttle = None,
    at_once: AtOnce = _AT_ONCE,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Move partitions to other brokers, watch such moves, or cancel them."""
    from ottla.cli.cluster import reassign as cluster_reassign
    from ottla.operations.cluster.reassignment import plan as reassignment_plan
    from ottla.operations.cluster.reassignment import targets

    if show + cancel + execute + unthrottle > 1 or ((show or unthrottle) and (moves or file)) or (cancel and file):
        raise typer.BadParameter(
            "--list and --unthrottle take no moves, --cancel no --file; they and --execute exclude each other"
        )
    if show:
        cluster_reassign.show(run(bootstrap, lambda admin: admin.replicas.reassignments()), as_json=as_json)
    elif cancel:
        wanted = [_partition(each) for each in moves] if moves else None
        if not run(bootstrap, lambda admin: cluster_reassign.cancel(admin, wanted)):
            raise typer.Exit(1)
    elif unthrottle:
        run(bootstrap, cluster_reassign.unthrottle)
    else:
        wanted_moves = targets(moves or [], file)

        async def plan(admin: Admin, view: ClusterView) -> tuple[BalancePlan, tuple[ReplicaMove, ...]]:
            found = reassignment_plan(view, wanted_moves)
            return found, found.moves

        _plan_and_do(bootstrap, plan, execute=execute, throttle=throttle, at_once=at_once, as_json=as_json)


@app.command()
def balance(
    execute: Execute = False,
    leaders_only: Annotated[bool, typer.Option("--leaders-only", help="Change leaders only; copy no data.")] = False,
    sample: Annotated[
        str | None,
        typer.Option("--sample", help="Measure the load for this long (10s) and balance it, too."),
    ] = None,
    capacity: Annotated[
        list[str],
        typer.Option(
            "--capacity", help="Relative capacity of a broker, BROKER=SHARE, 1 unless given; may be repeated."
        ),
    ] = [],  # noqa: B006
    throttle: Throttle = None,
    at_once: AtOnce = _AT_ONCE,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Distribute partitions evenly over the brokers: by racks, replicas, bytes, leaders, and load if measured."""
    shares = _shares(capacity)

    async def plan(admin: Admin, view: ClusterView) -> tuple[BalancePlan, tuple[ReplicaMove, ...]]:
        from ottla.operations.cluster.plan import plan_for, unfinished
        from ottla.operations.cluster.view import rates

        for each in shares:
            if view.broker(each) is None:
                raise CommandError(f"there is no broker {each}", "`ottla cluster status` shows them")
        measured = await rates(admin, view, parse_duration_ms(sample, "--sample") / 1000) if sample else None
        found = plan_for(view, rates=measured, capacity=shares, copies=not leaders_only)
        return found, unfinished(view, found)

    _plan_and_do(bootstrap, plan, execute=execute, throttle=throttle, at_once=at_once, as_json=as_json)


@app.command()
def drain(
    broker: BrokerId,
    leaders_only: Annotated[
        bool, typer.Option("--leaders-only", help="Move leadership only, for a restart or maintenance.")
    ] = False,
    execute: Execute = False,
    throttle: Throttle = None,
    at_once: AtOnce = _AT_ONCE,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Move all replicas off a broker."""
    from ottla.operations.cluster.plan import drain_plan

    async def plan(_: Admin, view: ClusterView) -> tuple[BalancePlan, tuple[ReplicaMove, ...]]:
        found = drain_plan(view, broker, leaders_only=leaders_only)
        return found, found.moves

    _plan_and_do(bootstrap, plan, execute=execute, throttle=throttle, at_once=at_once, as_json=as_json)


@app.command("add-broker")
def add_broker(
    listen: Annotated[
        str | None,
        typer.Option("--listen", "-l", help="HOST:PORT of a broker on another machine: print its property file."),
    ] = None,
    node_id: Annotated[
        int | None,
        typer.Option("--id", min=0, max=INT32_MAX, help="Node id of the new broker; the next free one unless given."),
    ] = None,
    rack: Annotated[str | None, typer.Option("--rack", help="Rack of the new broker.")] = None,
    voter: Annotated[
        bool,
        typer.Option("--voter", help="In a local cluster: wait until it is up, and make it a voter of the quorum."),
    ] = False,
    data: Data = Path("ottla-data"),
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Add a broker: to a local cluster, where `ottla up` starts it, or on another machine (--listen)."""
    from ottla.cli.cluster import brokers as cluster_brokers

    if listen is not None:
        address = parse_reachable(listen, "--listen")
        print(run(bootstrap, lambda admin: cluster_brokers.property_file(admin, address, node_id, rack)), end="")
    else:
        node = cluster_brokers.add_local(data, node_id, rack, voter=voter)
        if voter:
            run(bootstrap, lambda admin: cluster_brokers.seat(admin, node))


@app.command("remove-broker")
def remove_broker(
    broker: BrokerId,
    execute: Execute = False,
    throttle: Throttle = None,
    at_once: AtOnce = _AT_ONCE,
    data: Data = Path("ottla-data"),
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Move a broker's vote and its partitions to others, wait until it is stopped, and unregister it.

    A broker of a local cluster is stopped by the `ottla up` that runs it.
    """
    from ottla.cli.cluster import brokers as cluster_brokers
    from ottla.cli.cluster.voter_handover import tell_handover
    from ottla.cli.terminal.output import note
    from ottla.operations.cluster.plan import drain_plan
    from ottla.operations.cluster.voter_changes import plan_handover

    async def plan(_: Admin, view: ClusterView) -> tuple[BalancePlan, tuple[ReplicaMove, ...]]:
        found = drain_plan(view, broker, leaders_only=False)
        return found, found.moves

    async def before(admin: Admin, found: BalancePlan) -> None:
        if found.problems:
            raise CommandError(
                f"broker {broker} cannot go: nobody can take {len(found.problems)} of its partitions",
                "`ottla cluster add-broker` first, or keep them on fewer brokers (`ottla cluster reassign`)",
            )
        handover = await plan_handover(admin, broker)
        if handover is not None:
            note(handover.text)
            if execute:
                await tell_handover(admin, handover)
        if not execute:
            note(f"Then broker {broker} would be stopped and forgotten.")

    _plan_and_do(bootstrap, plan, before, execute=execute, throttle=throttle, at_once=at_once, as_json=False)
    if execute:
        run(bootstrap, lambda admin: cluster_brokers.remove(admin, broker, data))


def _plan_and_do(
    bootstrap: str,
    plan: Callable[[Admin, ClusterView], Awaitable[tuple[BalancePlan, tuple[ReplicaMove, ...]]]],
    before: Callable[[Admin, BalancePlan], Awaitable[None]] | None = None,
    *,
    execute: bool,
    throttle: str | None,
    at_once: int,
    as_json: bool,
) -> None:
    """Show the plan; with `execute`, call `before` and carry the plan out."""
    from ottla.cli.cluster.plan import carry_out, show_plan
    from ottla.cli.terminal.output import done, note, print_json
    from ottla.cli.terminal.plain import print_error
    from ottla.operations.cluster.plan import plan_json, under_way
    from ottla.operations.cluster.throttle import left_behind, tell_of, throttled
    from ottla.operations.cluster.view import look
    from ottla.operations.formats import parse_rate

    rate = None if throttle is None else parse_rate(throttle)

    async def work(admin: Admin) -> tuple[BalancePlan, dict[TopicPartition, str]]:
        view = await look(admin)
        found, moves = await plan(admin, view)
        if not as_json:
            show_plan(found, view)
        begun = under_way(view)
        if begun and not as_json:
            note(f"{len(begun)} moves are under way already")
        if before is not None:
            await before(admin, found)
        if not execute:
            if not as_json:
                tell_of(await left_behind(admin, view), note)
            return found, {}
        async with throttled(admin, (*begun, *moves), rate, note):
            failed = await carry_out(admin, moves, begun, at_once) if moves or begun else {}
        if begun and not as_json:
            done("the moves that were under way are done")
        return found, failed

    found, failed = run(bootstrap, work)
    if as_json:
        print_json(plan_json(found) | {"executed": execute, "failed": {str(at): why for at, why in failed.items()}})
    elif execute and found.moves:
        done(f"{len(found.moves) - len(failed)} of {len(found.moves)} moves are done")
    elif not execute and (found.moves or before is not None):
        note("Nothing was changed: add --execute.")
    for at, why in failed.items():
        print_error(f"{at}: {why}")
    if found.problems and not as_json:
        print_error(f"not everything can be moved: {_summary(found.problems)}", _ADD_FIRST)
    if failed or found.problems:
        raise typer.Exit(1)


def _summary(problems: Sequence[str]) -> str:
    more = len(problems) - 1
    return problems[0] + (f" (and {more} more)" if more else "")


def _partition(text: str) -> TopicPartition:
    from ottla.model.ids import TopicPartition

    topic, colon, index = text.rpartition(":")
    number = parse_index(index)
    if not colon or not topic or number is None:
        raise typer.BadParameter(f"{text!r} is not TOPIC:PARTITION")
    return TopicPartition(topic, number)


def _shares(texts: list[str]) -> dict[int, float]:
    shares: dict[int, float] = {}
    for text in texts:
        broker, _, share = text.partition("=")
        try:
            shares[int(broker)] = float(share)
        except ValueError:
            raise typer.BadParameter(f"{text!r} is not BROKER=SHARE", param_hint="--capacity") from None
        if not shares[int(broker)] > 0:
            raise typer.BadParameter("a share is more than nothing", param_hint="--capacity")
    return shares


cluster_quorum.register(app)
