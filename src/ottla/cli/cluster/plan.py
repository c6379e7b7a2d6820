"""Plans of the balancer on the terminal: make them from a view of the cluster, print them, carry them out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ottla.cluster.balance.loads import BalancePlan, BrokerLoad, PartitionLoad, ReplicaMove
from ottla.cluster.balance.plan import make_plan
from ottla.model.ids import TopicPartition
from ottla.operations.cluster.view import ClusterView

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.operations.cluster.moves import Progress

_SHOWN_MOVES = 40
_SHOWN_PROBLEMS = 20


def plan_for(
    view: ClusterView,
    *,
    draining: Collection[int] = (),
    rates: Mapping[TopicPartition, float] | None = None,
    capacity: Mapping[int, float] | None = None,
    copies: bool = True,
    evens: bool = True,
) -> BalancePlan:
    """The plan for the cluster as it will be when the moves under way have ended."""
    brokers = [
        BrokerLoad(
            each.id,
            each.broker.rack,
            (capacity or {}).get(each.id, 1.0),
            None if each.free_bytes is None else each.free_bytes + (each.size_bytes or 0),
            alive=not each.broker.is_fenced,
            draining=each.id in draining,
        )
        for each in view.brokers
    ]
    partitions = [
        PartitionLoad(each.at, each.target, each.size_bytes, (rates or {}).get(each.at, 0.0))
        for each in view.partitions
        if not each.is_offline
    ]
    plan = make_plan(brokers, partitions, copies=copies, evens=evens)
    lost = [each.at for each in view.partitions if each.is_offline and copies and set(draining) & {*each.target}]
    stuck = [f"{at} cannot move: none of its in-sync replicas is there to copy it from" for at in lost]
    return plan._replace(problems=(*plan.problems, *stuck))


def unfinished(view: ClusterView, plan: BalancePlan) -> tuple[ReplicaMove, ...]:
    """The moves of the plan, and elections for other partitions whose leader is not their preferred replica."""
    planned = {each.at for each in plan.moves}
    alive = {each.id for each in view.brokers if not each.broker.is_fenced}
    elections = [
        ReplicaMove(each.at, each.target, each.target, each.size_bytes)
        for each in view.partitions
        if each.at not in planned and each.leader != each.target[0] and each.target[0] in alive
    ]
    return (*plan.moves, *elections)


def under_way(view: ClusterView) -> list[ReplicaMove]:
    """The moves that have begun, by this or another command, and not ended."""
    return [
        ReplicaMove(
            each.at,
            tuple(node for node in each.replicas if node not in each.move.adding),
            each.target,
            each.size_bytes,
        )
        for each in view.partitions
        if each.move is not None
    ]


def plan_json(plan: BalancePlan) -> dict[str, Any]:
    """The plan for scripts; `partitions` has the format of kafka-reassign-partitions."""
    return {
        "version": 1,
        "partitions": [
            {"topic": each.at.topic, "partition": each.at.partition, "replicas": list(each.after)}
            for each in plan.moves
        ],
        "copied_bytes": plan.copied_bytes,
        "before": {str(broker): found._asdict() for broker, found in plan.before.items()},
        "after": {str(broker): found._asdict() for broker, found in plan.after.items()},
        "problems": list(plan.problems),
    }


def show_plan(plan: BalancePlan, view: ClusterView) -> None:
    """Print tables of the moves, and of each broker before and after."""
    from ottla.cli.terminal.output import note, print_table
    from ottla.operations.formats import size_text

    if plan.moves:
        rows = [
            [str(each.at), list(each.before), list(each.after), size_text(each.copied_bytes) if each.adding else "-"]
            for each in plan.moves[:_SHOWN_MOVES]
        ]
        print_table(["partition", "replicas", "planned", "copied"], rows, right=["copied"])
        if len(plan.moves) > _SHOWN_MOVES:
            note(f"… and {len(plan.moves) - _SHOWN_MOVES} more")
    elif plan.problems:
        return  # nothing would change: only the problems are printed
    disks = {each.id: each.disk_bytes for each in view.brokers}
    measured = any(each.rate for each in plan.before.values())
    columns = ["broker", "leaders", "replicas", "size", "disk used", *(["traffic"] if measured else [])]
    brokers: list[list[object]] = []
    for broker, after in plan.after.items():
        before, disk = plan.before[broker], disks.get(broker)
        used = [f"{100 * each.size_bytes / disk:.0f} %" if disk else "?" for each in (before, after)]
        brokers.append(
            [
                broker,
                _change(before.leaders, after.leaders),
                _change(before.replicas, after.replicas),
                _change(size_text(before.size_bytes), size_text(after.size_bytes)),
                _change(*used),
                *([_change(*(f"{size_text(int(each.rate))}/s" for each in (before, after)))] if measured else []),
            ]
        )
    print_table(columns, brokers, right=columns)
    for problem in plan.problems[:_SHOWN_PROBLEMS]:
        note(problem)
    if len(plan.problems) > _SHOWN_PROBLEMS:
        note(f"… and {len(plan.problems) - _SHOWN_PROBLEMS} more")
    copying = sum(bool(each.adding) for each in plan.moves)
    note(
        f"{copying} partitions to copy ({size_text(plan.copied_bytes)}), {len(plan.moves) - copying} to lead elsewhere"
        if plan.moves
        else "Nothing to move."
    )


def _change(before: object, after: object) -> str:
    return str(before) if before == after else f"{before} → {after}"


async def carry_out(
    admin: Admin, moves: Sequence[ReplicaMove], begun: Sequence[ReplicaMove], at_once: int
) -> dict[TopicPartition, str]:
    """Carry the moves out with a progress bar, together with those that have begun already; the errors by partition."""
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    from ottla.cli.terminal.output import err
    from ottla.operations.cluster.moves import Mover

    by_bytes = any(each.copied_bytes for each in (*moves, *begun))
    sizes = (DownloadColumn(binary_units=True), TransferSpeedColumn(), TimeRemainingColumn()) if by_bytes else ()
    shown = err()
    with Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        *sizes,
        console=shown,
        transient=True,
        disable=not shown.is_terminal,
    ) as bar:
        task = bar.add_task("moving", total=None)

        def show(progress: Progress) -> None:
            text = f"{progress.done_moves} of {progress.moves} partitions"
            done, total = (
                (progress.done_bytes, progress.size_bytes) if by_bytes else (progress.done_moves, progress.moves)
            )
            bar.update(task, description=text, completed=done, total=total)

        mover = Mover(admin, moves, begun, at_once=at_once, on_progress=show)
        await mover.run()
        return mover.failed
