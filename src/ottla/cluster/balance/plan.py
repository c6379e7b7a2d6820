"""Making a plan: the goals are pursued one after the other, each without undoing the ones before it.

Order: drain brokers, spread over racks, even the replicas by count, then by bytes, then the leaders by count and by the
bytes they serve. A partition is moved only if that serves one of these: a balanced cluster gives no moves.
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
    """Return the moves that balance the cluster. Without `copies` only leaders change; without `evens` brokers are only
    drained.
    """
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
