"""Making new partitions: place them automatically or as the client wants, check them, and build their first state.

Shared by CreateTopics and CreatePartitions, which differ in the first index and in how they word failures.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.cluster.entities import PartitionState, Placed
from ottla.cluster.replica_placement import place
from ottla.cluster.view import MetadataView
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import FIRST_LEADER_EPOCH, FIRST_PARTITION_EPOCH


def place_automatically(view: MetadataView, first: int, count: int, replication_factor: int) -> list[Placed]:
    """Place `count` new partitions, from index `first` on, on brokers chosen here."""
    usable = [broker for broker in view.state.brokers.values() if broker.open_for_replicas]
    chosen = place(usable, count, replication_factor, view.rng)
    # Very many partitions have the same few replica lists: equal states are made once.
    alike = {replicas: _first_state(view, replicas, view.active(replicas)) for replicas in dict.fromkeys(chosen)}
    return [(index, alike[replicas]) for index, replicas in enumerate(chosen, first)]


def place_by_hand(view: MetadataView, index: int, replicas: Sequence[int], replication_factor: int | None) -> Placed:
    """Place one new partition on the given brokers."""
    check_replicas(view, replicas, replication_factor)
    isr = view.active(replicas)
    if not isr:
        raise _invalid(
            f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
            "controlled shutdown."
        )
    return index, _first_state(view, tuple(replicas), isr)


def check_replicas(view: MetadataView, replicas: Sequence[int], replication_factor: int | None) -> None:
    """Refuse a manual assignment that is not possible."""
    prefix = "The manual partition assignment includes"
    if not replicas:
        raise _invalid(f"{prefix} an empty replica list.")
    previous = None
    for broker in sorted(replicas):
        if broker not in view.state.brokers:
            raise _invalid(f"{prefix} broker {broker}, but no such broker is registered.")
        if broker == previous:
            raise _invalid(f"{prefix} the broker {broker} more than once.")
        previous = broker
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _invalid(
            f"{prefix} a partition with {len(replicas)} replica(s), but this is not consistent with previous "
            f"partitions, which have {replication_factor} replica(s)."
        )


def _first_state(view: MetadataView, replicas: tuple[int, ...], isr: tuple[int, ...]) -> PartitionState:
    if not isr:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {len(replicas)} time(s): All brokers are currently fenced or in "
            "controlled shutdown.",
        )
    return PartitionState(
        index=0,
        replicas=replicas,
        isr=isr,
        leader=isr[0],
        leader_epoch=FIRST_LEADER_EPOCH,
        partition_epoch=FIRST_PARTITION_EPOCH,
        directories=view.directories(replicas),
    )


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
