"""A cluster machine in memory: commands are decided and their records applied at once."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from ottla.cluster.commands.alter_partition import AlterPartition, IsrChange, IsrMember
from ottla.cluster.commands.create_topics import CreateTopics, TopicToCreate
from ottla.cluster.commands.fence import FenceBroker
from ottla.cluster.commands.heartbeat import BrokerHeartbeat, BrokerHeartbeatReply
from ottla.cluster.commands.register_broker import RegisterBroker
from ottla.cluster.commands.start import Activate, StartBroker
from ottla.cluster.entities import Broker, Change, ListenerEndpoint, PartitionState
from ottla.cluster.entry import MetadataEntry, decode, encode
from ottla.cluster.features import DEFAULT_LEVELS, SUPPORTED_FEATURES
from ottla.cluster.machine import ClusterCommand, ClusterMachine
from ottla.cluster.snapshot import feature
from ottla.cluster.state import ClusterState
from ottla.cluster.view import MetadataView
from ottla.machine.kit import Timer
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.node_config import NodeConfig
from ottla.model.resources import Resource

NODE = 1
EPOCH_MS = 1_700_000_000_000  # the time of day when `Cluster.now_ms` is 0


def broker(id: int, *, rack: str | None = None, fenced: bool = True, directories: int = 1) -> Broker:
    return Broker(
        id=id,
        epoch=id,
        incarnation_id=bytes([id]) * 16,
        endpoints=(ListenerEndpoint("PLAINTEXT", f"host{id}", 9092, 0),),
        features=tuple(SUPPORTED_FEATURES.items()),
        rack=rack,
        fenced=fenced,
        directories=tuple(bytes([id, index]) * 8 for index in range(1, directories + 1)),
        cordoned=(),
    )


class Cluster:
    def __init__(self, *, brokers: int = 1, properties: Mapping[str, str] | None = None) -> None:
        self.state = ClusterState()
        self.properties = {"node.id": str(NODE), **(properties or {})}
        self.journal: list[MetadataEntry] = []
        self.timers: dict[object, Timer] = {}
        self.now_ms = 1_000
        view = MetadataView(
            self.state,
            NODE,
            self.config,
            random.Random(7),
            lambda: len(self.journal),
            time_of_day_ms=lambda: EPOCH_MS + self.now_ms,
        )
        self.machine = ClusterMachine(view)
        self.changes: list[Change] = []
        self.submit(Activate(tuple(feature(name, level) for name, level in DEFAULT_LEVELS.items())))
        for id in range(1, brokers + 1):
            self.submit(StartBroker(broker(id), clean=True))
        self.changes.clear()

    def config(self) -> NodeConfig:
        return NodeConfig(
            self.properties,
            self.state.configs.get(Resource(4, ""), {}),
            self.state.configs.get(Resource(4, str(NODE)), {}),
        )

    def submit(self, command: ClusterCommand) -> Any:
        result = self.machine.decide(command, self.now_ms)
        for entry in result.records:
            self.journal.append(entry)
            self.changes.extend(self.machine.apply(decode(encode(entry))))
        for note in result.notes:
            self.machine.note(note)
        for timer in result.timers:
            self.timers.pop(timer.key, None)
            if timer.deadline_ms is not None:
                self.timers[timer.key] = timer
        return result.reply

    def pass_time(self, ms: int) -> None:
        """Timers run when they are due."""
        end_ms = self.now_ms + ms
        while (timer := min(self.timers.values(), key=_deadline, default=None)) and _deadline(timer) <= end_ms:
            self.now_ms = max(self.now_ms, _deadline(timer))
            del self.timers[timer.key]
            self.submit(timer.command)
        self.now_ms = end_ms

    def register(self, id: int, *, incarnation: int = 1, previous_epoch: int = -1, **options: Any) -> int:
        """A broker comes, fenced; its epoch."""
        new = broker(id, **options)._replace(incarnation_id=bytes([id, incarnation]) * 8)
        epoch: int = self.submit(RegisterBroker(new, previous_epoch))
        return epoch

    def heartbeat(self, id: int, **options: Any) -> BrokerHeartbeatReply:
        options.setdefault("metadata_offset", len(self.journal) - 1)
        reply: BrokerHeartbeatReply = self.submit(BrokerHeartbeat(id, self.state.brokers[id].epoch, **options))
        return reply

    def join(self, id: int, **options: Any) -> None:
        """A broker comes and is unfenced."""
        self.register(id, **options)
        assert not self.heartbeat(id).fenced

    def fence(self, id: int) -> None:
        self.submit(FenceBroker(id, self.state.brokers[id].epoch))

    def alter(self, topic: str, index: int, isr: tuple[int, ...], **options: Any) -> ErrorCode:
        """The leader proposes an ISR."""
        found = self.partition(topic, index)
        change = IsrChange(
            self.state.topics[topic].id,
            index,
            found.leader_epoch,
            found.partition_epoch,
            tuple(map(IsrMember, isr)),
            **options,
        )
        sender = self.state.brokers[found.leader]
        (outcome,) = self.submit(AlterPartition(sender.id, sender.epoch, (change,)))
        error: ErrorCode = outcome.error
        return error

    def partition(self, topic: str, index: int = 0) -> PartitionState:
        return self.state.topics[topic].partitions[index]

    def create(self, name: str, partitions: int = 1, **options: Any) -> None:
        (outcome,) = self.submit(CreateTopics((TopicToCreate(name, partitions, **options),)))
        assert outcome.error is None, outcome.error


def _deadline(timer: Timer) -> int:
    assert timer.deadline_ms is not None, "it is set"
    return timer.deadline_ms


def verdict(error: ApiError | None) -> tuple[str, str | None] | None:
    """What a client would see of an error."""
    return None if error is None else (error.code.name, error.message)
