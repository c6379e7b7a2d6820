"""Terms: what the controller decided about a partition (replicas, leader, in-sync replicas); Proposal: the ISR change
that a leader asks the controller for.

The controller's own record of a partition has more; Terms are the part that a replica acts upon.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.model.ids import FIRST_PARTITION_EPOCH, BrokerEpoch, LeaderEpoch, PartitionEpoch

NO_LEADER = -1


class Terms(NamedTuple):
    leader: int
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


class Proposal(NamedTuple):
    """An AlterPartition for one partition; each member of the ISR comes with the broker epoch that the leader knows
    (-1: none).
    """

    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    isr: tuple[tuple[int, BrokerEpoch], ...]

    @property
    def members(self) -> tuple[int, ...]:
        return tuple(broker_id for broker_id, _ in self.isr)


def sole(node_id: int, leader_epoch: LeaderEpoch, partition_epoch: PartitionEpoch = FIRST_PARTITION_EPOCH) -> Terms:
    """The terms of a partition that has one replica."""
    return Terms(node_id, leader_epoch, partition_epoch, (node_id,), (node_id,))
