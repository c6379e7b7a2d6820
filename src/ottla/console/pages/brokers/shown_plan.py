"""A plan of moves as a page shows it before it is carried out: the brokers before and after, each move, the form."""

from __future__ import annotations

from typing import NamedTuple

from ottla.cluster.balance.loads import BalancePlan, LoadTotals, ReplicaMove
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, path_to, tag
from ottla.console.pages.brokers.moving import KeptPlan
from ottla.console.parts.forms import field, form, hidden
from ottla.console.parts.tables import Column, plain_table
from ottla.console.parts.times import bytes_per_s
from ottla.console.parts.words import card, figure, figures, link, notice, told
from ottla.model import limits
from ottla.operations.cluster.moves import AT_ONCE
from ottla.operations.cluster.view import ClusterView
from ottla.operations.formats import size_text

_SHOWN_PROBLEMS = 20


class _BrokerChange(NamedTuple):
    broker: int
    before: LoadTotals
    after: LoadTotals
    disk_bytes: int | None


def plan_shown(call: PageCall, kept: KeptPlan, view: ClusterView) -> Content:
    """What a kept plan does, and the form that carries it out."""
    plan = kept.plan
    copying = sum(bool(each.adding) for each in kept.moves)
    return [
        _problems(plan),
        figures(
            figure("partitions to copy", f"{copying:,}"),
            figure("bytes to copy", size_text(plan.copied_bytes)),
            figure("partitions to lead elsewhere", f"{len(kept.moves) - copying:,}"),
        ),
        card("Brokers before and after", plain_table(_columns(plan), _changes(plan, view))),
        card("Moves", _moves(kept)),
        _carry_out(call, kept) if kept.moves else notice("There is nothing to move.", "good"),
    ]


def _carry_out(call: PageCall, kept: KeptPlan) -> Markup:
    fields = [
        hidden("plan", kept.number),
        field(
            "throttle",
            "Throttle",
            "",
            hint="bytes per second and broker, 50MiB for example; without one, as fast as it goes",
        ),
        field("at_once", "Partitions at once", AT_ONCE, type_="number"),
    ]
    note = "It goes on when you leave the page, and ends when you sign out: moves that have begun end by themselves."
    return card("Carry it out", form(call, "/brokers/balance/apply", fields, tag("small", note), submit="Move"))


def _problems(plan: BalancePlan) -> Content:
    more = len(plan.problems) - _SHOWN_PROBLEMS
    said = [notice(told(each), "bad") for each in plan.problems[:_SHOWN_PROBLEMS]]
    return [*said, notice(f"and {more:,} more", "bad") if more > 0 else None]


def _moves(kept: KeptPlan) -> Content:
    more = len(kept.moves) - limits.CONSOLE_PLAN_MOVES
    table = plain_table(_MOVES, kept.moves[: limits.CONSOLE_PLAN_MOVES], empty="Nothing to move.")
    return [table, tag("p", f"and {more:,} more", class_="hint") if more > 0 else None]


def _changes(plan: BalancePlan, view: ClusterView) -> list[_BrokerChange]:
    disks = {each.id: each.disk_bytes for each in view.brokers}
    return [
        _BrokerChange(broker, plan.before[broker], after, disks.get(broker)) for broker, after in plan.after.items()
    ]


def _columns(plan: BalancePlan) -> list[Column[_BrokerChange]]:
    columns: list[Column[_BrokerChange]] = [
        Column("Broker", lambda row: row.broker, is_number=True),
        Column("Leaders", lambda row: _change(row.before.leaders, row.after.leaders), is_number=True),
        Column("Replicas", lambda row: _change(row.before.replicas, row.after.replicas), is_number=True),
        Column(
            "Log",
            lambda row: _change(size_text(row.before.size_bytes), size_text(row.after.size_bytes)),
            is_number=True,
        ),
        Column("Of the disk", _of_disk, is_number=True),
    ]
    if any(each.rate for each in plan.before.values()):
        traffic: Column[_BrokerChange] = Column(
            "Traffic", lambda row: _change(bytes_per_s(row.before.rate), bytes_per_s(row.after.rate)), is_number=True
        )
        columns.append(traffic)
    return columns


def _of_disk(row: _BrokerChange) -> Content:
    if not row.disk_bytes:
        return "?"
    return _change(*(f"{100 * each.size_bytes / row.disk_bytes:.0f} %" for each in (row.before, row.after)))


def _change(before: object, after: object) -> Content:
    return str(before) if before == after else [f"{before} → ", tag("b", str(after))]


def _nodes(row: ReplicaMove, nodes: tuple[int, ...]) -> Content:
    """The brokers of a partition; those that are new stand out."""
    return [
        [", " if index else "", tag("mark", each) if each in row.adding else each] for index, each in enumerate(nodes)
    ]


_MOVES: tuple[Column[ReplicaMove], ...] = (
    Column("Topic", lambda row: link(told(row.at.topic), path_to("topics", row.at.topic))),
    Column("Partition", lambda row: row.at.partition, is_number=True),
    Column("Replicas", lambda row: _nodes(row, row.before)),
    Column("Planned", lambda row: _nodes(row, row.after)),
    Column("Copied", lambda row: size_text(row.copied_bytes) if row.adding else "nothing", is_number=True),
)
