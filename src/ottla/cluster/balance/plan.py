"""Making a plan: the goals one after the other, each without breaking what the former ones have reached.

Order: brokers that drain are emptied, racks are used, replicas are even by count, then by bytes, then leaders by count
and by what they are sent. A partition is moved only if that serves one of these: a cluster in balance gives no moves.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.cluster.balance.layout import Layout
from ottla.cluster.balance.leaders import even_leaders, leave_leadership
from ottla.cluster.balance.loads import BalancePlan, BrokerLoad, PartitionLoad, ReplicaMove, totals
from ottla.cluster.balance.replicas import drain, even_replicas, use_racks
from ottla.cluster.balance.weights import even_bytes
from ottla.model.ids import TopicPartition


def make_plan(
    brokers: Iterable[BrokerLoad], partitions: Iterable[PartitionLoad], *, copies: bool = True, evens: bool = True
) -> BalancePlan:
    """The moves that balance the cluster. Without `copies` only leaders change; without `evens` all that happens is
    that brokers which drain have nothing left to do."""
    brokers, partitions = sorted(brokers), sorted(partitions)
    layout = Layout(brokers, partitions)
    problems: list[str] = []
    if layout.takers:
        if copies:
            problems.extend(drain(layout))
        if copies and evens:
            use_racks(layout)
            even_replicas(layout)
            even_bytes(layout)
        leave_leadership(layout)
        if evens:
            even_leaders(layout)
    elif partitions:
        problems.append("no broker may take anything")
    return _plan(brokers, partitions, layout.replicas, problems)


def _plan(
    brokers: list[BrokerLoad],
    partitions: list[PartitionLoad],
    replicas: dict[TopicPartition, tuple[int, ...]],
    problems: list[str],
) -> BalancePlan:
    ids = [each.id for each in brokers]
    moves = tuple(
        ReplicaMove(each.at, each.replicas, replicas[each.at], each.size_bytes)
        for each in partitions
        if replicas[each.at] != each.replicas
    )
    former = {each.at: each.replicas for each in partitions}
    return BalancePlan(moves, totals(ids, partitions, former), totals(ids, partitions, replicas), tuple(problems))
