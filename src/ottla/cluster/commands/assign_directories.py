"""AssignReplicasToDirs: a broker reports which of its directories holds which replica (KIP-858)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ottla.cluster import features
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.leader_election import Elections, ElectionType, Wish
from ottla.cluster.view import MetadataView
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import BrokerEpoch


class Placement(NamedTuple):
    """One replica and its directory."""

    directory: bytes
    topic_id: bytes
    partition: int


@dataclass(frozen=True, slots=True)
class AssignReplicasToDirs:
    """Replies with an ErrorCode for each placement, in order."""

    broker_id: int
    broker_epoch: BrokerEpoch
    placements: tuple[Placement, ...]

    def decide(self, view: MetadataView, now_ms: int) -> Result[MetadataEntry, list[ErrorCode]]:
        if view.state.metadata_version < features.DIRECTORIES:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "Directory assignment is not supported yet.")
        broker = view.checked_broker(self.broker_id, self.broker_epoch)
        staying, leaving = Elections(view), Elections(view, leaving=broker.id)
        records: list[MetadataEntry] = []
        errors: list[ErrorCode] = []
        for directory, topic_id, index in self.placements:
            topic = view.state.topic_by_id.get(topic_id)
            partition = view.state.partition(topic_id, index)
            if topic is None:
                errors.append(ErrorCode.UNKNOWN_TOPIC_ID)
            elif partition is None:
                errors.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif broker.id not in partition.replicas:
                errors.append(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            else:
                errors.append(ErrorCode.NONE)
                # A replica in a directory that failed meanwhile leaves the ISR at once, and loses leadership.
                online = broker.has_online(directory)
                isr = partition.isr if online else tuple(id for id in partition.isr if id != broker.id)
                wish = Wish(isr=isr, directories={broker.id: directory})
                if online:
                    entry = staying.change(topic, partition, wish, ElectionType.ONLINE)
                else:
                    entry = leaving.change(topic, partition, wish)
                if entry is not None:
                    records.append(entry)
        return Result(records, errors)
