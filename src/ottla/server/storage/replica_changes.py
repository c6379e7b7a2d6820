"""ReplicaChanges: adds, changes and removes the replicas of this node as the metadata changes.

A topic may have thousands of partitions, and a broker that dies may have led thousands: all of this is done in slices,
with other work in between. Until its slice, a new partition is not found, and a changed one keeps its earlier role.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ottla.cluster.entities import (
    Change,
    ConfigChanged,
    PartitionChanged,
    PartitionsAdded,
    PartitionState,
    Topic,
    TopicDeleted,
)
from ottla.cluster.state import ClusterState
from ottla.log.files.disk import Directory, StorageError
from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.model.resources import ResourceType
from ottla.server.loop.slices import Steps, Tally
from ottla.server.storage.directory_choice import assigned_directory, choose_directory, set_stray_aside, settle_futures
from ottla.server.storage.partitions import Held, Partitions
from ottla.server.storage.removal import Doomed

log = logging.getLogger(__name__)


class ReplicaChanges:
    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions
        self._node_id = partitions.node_id
        self._directories = partitions.directories
        self._slice = Tally(limits.METADATA_RECORDS_PER_SLICE)

    # --- the state as a whole

    def gone_from(self, state: ClusterState) -> list[Topic]:
        """Return the topics that are known here and do not exist in `state`."""
        by_name = self._partitions.by_name
        return [held.topic for held in by_name.values() if held.topic.id not in state.topic_by_id]

    def loading(self, state: ClusterState) -> Steps:
        """Take over all existing topics, at the start (nothing is opened yet) or when a snapshot replaced the whole
        state.
        """
        partitions = self._partitions
        partitions.state = state
        settle_futures(self._directories)
        for gone in self.gone_from(state):
            yield from self._delete(gone)
        for topic in tuple(state.topics.values()):
            held = partitions.by_name.get(topic.name)
            before: Sequence[PartitionState] = ()
            if held is not None:
                before, held.topic = held.topic.partitions, topic
            yield from self._add(topic, topic.partitions[len(before) :], existing=True)
            for old, new in zip(before, topic.partitions, strict=False):
                if old != new:
                    self._change(topic, old, new)
                if self._slice.is_full():
                    yield
            yield from self._configure(topic.name)
        partitions.retirement.go_on()
        for directory in self._directories:
            for name in directory.deleted:
                partitions.removal.add(0, Doomed(Directory(directory.disk, name)))
            for partition in directory.found:
                if partition in directory.partitions:
                    continue
                home = Directory(directory.disk, str(partition))
                # A single node keeps stray partitions, because no other broker can have the records.
                if set_stray_aside(directory, home) and len(state.brokers) > 1:
                    delay_ms = partitions.config_of("").file_delete_delay_ms
                    partitions.removal.add(partitions.neighbours.steady_ms() + delay_ms, Doomed(home))
            directory.deleted, directory.found = [], {}

    # --- one change after the other

    def following(self, changes: Sequence[Change]) -> Steps:
        reconfigured: dict[str, None] = {}  # each topic once, however many of its settings changed
        for change in changes:
            try:
                match change:
                    case PartitionsAdded(topic, states):
                        yield from self._add(topic, states)
                    case TopicDeleted(topic):
                        yield from self._delete(topic)
                    case ConfigChanged(resource, _, _) if resource.type == ResourceType.TOPIC:
                        reconfigured[resource.name] = None
                    case ConfigChanged(resource, _, _) if resource.type == ResourceType.BROKER:
                        reconfigured |= dict.fromkeys(self._partitions.by_name)
                    case PartitionChanged(topic, old, new):
                        self._change(topic, old, new)
                        if self._slice.is_full():
                            yield
            except Exception:  # a bug in handling one change must not block the others
                log.exception("a %s could not be followed", type(change).__name__)
        self._partitions.retirement.go_on()  # renames some; upkeep renames the rest
        for name in reconfigured:
            yield from self._configure(name)

    def _add(self, topic: Topic, states: Sequence[PartitionState], *, existing: bool = False) -> Steps:
        partitions = self._partitions
        held = partitions.hold(topic)
        for at in range(0, len(states), limits.METADATA_RECORDS_PER_SLICE):
            some = states[at : at + limits.METADATA_RECORDS_PER_SLICE]
            here = [each for each in some if self._node_id in each.replicas]
            if len(self._directories) == 1 and partitions.all_usable and not partitions.preferred:
                self._place_all(topic, here)
                cost = len(some) // 10
            else:
                for state in here:
                    self._place(topic, state, existing=existing)
                cost = len(some)
            held.count = max(held.count, some[-1].index + 1)
            if self._slice.is_full(cost):
                yield

    def _place_all(self, topic: Topic, here: Sequence[PartitionState]) -> None:
        """Place partitions in the only directory there is."""
        directory, partitions = self._directories[0], self._partitions
        names = dict.fromkeys(TopicPartition(topic.name, state.index) for state in here)
        directory.partitions.update(names)
        partitions.place.update(dict.fromkeys(names, directory))
        partitions.unopened.update(names)

    def _place(self, topic: Topic, state: PartitionState, *, existing: bool) -> None:
        partitions = self._partitions
        name = TopicPartition(topic.name, state.index)
        preferred = partitions.preferred.pop(name, None)
        assigned = assigned_directory(state, self._node_id) if preferred is None else preferred.id
        directory = choose_directory(
            self._directories,
            name,
            topic.id,
            assigned,
            existing=existing,
            all_usable=partitions.all_usable,
            cordoned=partitions.cordoned() if len(self._directories) > 1 else (),
        )
        if directory is not None:
            directory.partitions[name] = None
            partitions.place[name] = directory
            partitions.unopened[name] = None

    def _change(self, topic: Topic, old: PartitionState, new: PartitionState) -> None:
        partitions = self._partitions
        held = partitions.by_name.get(topic.name)
        if held is None:
            return
        here = self._node_id in new.replicas
        if self._node_id in old.replicas and not here:
            self._remove(held, new.index, self._removed_at_ms(held))
        elif here and self._node_id not in old.replicas:
            self._place(topic, new, existing=False)
        elif here:
            partition = held.opened.get(new.index)
            if partition is not None:
                try:
                    partitions.assume(partition, new)
                except StorageError as error:
                    partitions.storage_failed(partition, error)
                partitions.changed(partition)

    def _delete(self, topic: Topic) -> Steps:
        """Forget the topic, so that its name is free at once; its directories are renamed a few at a time
        (`Retirement`).
        """
        partitions = self._partitions
        held = partitions.by_name.pop(topic.name, None)
        if held is None:
            return
        del partitions.by_id[topic.id]
        due_ms = self._removed_at_ms(held)
        for state in topic.partitions:
            if self._node_id in state.replicas:
                self._remove(held, state.index, due_ms)
                if self._slice.is_full():
                    yield

    def _configure(self, name: str) -> Steps:
        """Give a topic's current settings to its opened partitions."""
        for partition in self._partitions.opened_of(name):
            self._partitions.configure(partition)
            if self._slice.is_full():
                yield

    def _removed_at_ms(self, held: Held) -> int:
        opened = next(iter(held.opened.values()), None)
        config = self._partitions.config_of(held.topic.name) if opened is None else opened.log.config
        return self._partitions.neighbours.steady_ms() + config.file_delete_delay_ms

    def _remove(self, held: Held, index: int, due_ms: int) -> None:
        partitions = self._partitions
        name = TopicPartition(held.topic.name, index)
        partition = held.opened.pop(index, None)
        partitions.unopened.pop(name, None)
        directory = partitions.place.pop(name, None)
        if directory is not None:
            is_ours = partition is not None or name in directory.own
            directory.forget(name)
            opened = None if partition is None else partition.log
            if is_ours:
                partitions.retirement.add(directory.disk, str(name), due_ms, held.topic.id, opened)
        if partition is not None:
            partitions.flushed_by_time.pop(partition, None)
            partitions.gone(partition)
