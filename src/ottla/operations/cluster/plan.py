"""Plans of the balancer, made from a view of the cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ottla.cluster.balance.loads import BalancePlan, BrokerLoad, PartitionLoad, ReplicaMove
from ottla.cluster.balance.plan import make_plan
from ottla.model.ids import TopicPartition
from ottla.operations.cluster.view import ClusterView
from ottla.operations.errors import CommandError


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


def drain_plan(view: ClusterView, node_id: int, *, leaders_only: bool) -> BalancePlan:
    """The plan that moves everything, or leadership alone, off a broker."""
    if view.broker(node_id) is None and any(each.node_id == node_id for each in view.quorum.voters):
        raise CommandError(
            f"node {node_id} is a controller, no broker", f"`ottla cluster remove-voter {node_id}` takes its vote away"
        )
    if view.broker(node_id) is None:
        raise CommandError(f"there is no broker {node_id}", "`ottla cluster status` shows them")
    return plan_for(view, draining=[node_id], copies=not leaders_only, evens=False)
