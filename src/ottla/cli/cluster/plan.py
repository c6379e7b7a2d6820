"""Plans of the balancer on the terminal: print them, carry them out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.cluster.balance.loads import BalancePlan, ReplicaMove
from ottla.model.ids import TopicPartition
from ottla.operations.cluster.view import ClusterView

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.operations.cluster.moves import Progress

_SHOWN_MOVES = 40
_SHOWN_PROBLEMS = 20


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
