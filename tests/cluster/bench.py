"""A cluster machine in memory: commands are decided and their records applied at once."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from ottla.cluster.commands.create_topics import CreateTopics, NewTopic
from ottla.cluster.commands.start import Activate, StartBroker
from ottla.cluster.entities import Broker, Change, Endpoint
from ottla.cluster.entry import Entry
from ottla.cluster.features import DEFAULT_LEVELS, SUPPORTED_FEATURES
from ottla.cluster.machine import ClusterMachine, Command
from ottla.cluster.snapshot import feature
from ottla.cluster.state import ClusterState
from ottla.cluster.view import View
from ottla.model.errors import ApiError
from ottla.model.node_config import NodeConfig
from ottla.model.resources import Resource

NODE = 1


def broker(id: int, *, rack: str | None = None, fenced: bool = True, directories: int = 1) -> Broker:
    return Broker(
        id=id,
        epoch=id * 100,
        incarnation_id=bytes([id]) * 16,
        endpoints=(Endpoint("PLAINTEXT", f"host{id}", 9092, 0),),
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
        self.machine = ClusterMachine(View(self.state, NODE, self.config, random.Random(7)))
        self.journal: list[Entry] = []
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

    def submit(self, command: Command) -> Any:
        result = self.machine.decide(command, 1_000)
        for entry in result.records:
            self.journal.append(entry)
            self.changes.extend(self.machine.apply(entry))
        return result.reply

    def create(self, name: str, partitions: int = 1, **options: Any) -> None:
        (outcome,) = self.submit(CreateTopics((NewTopic(name, partitions, **options),)))
        assert outcome.error is None, outcome.error


def verdict(error: ApiError | None) -> tuple[str, str | None] | None:
    """What a client would see of an error."""
    return None if error is None else (error.code.name, error.message)
