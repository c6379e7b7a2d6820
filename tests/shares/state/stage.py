"""A stage for the share coordinator: two topics, and settings that make its upkeep quick."""

from typing import Any

from tests.support.script import Stage, Verb

from ottla.machine.keyed import Entry, types_of
from ottla.machine.kit import Timer
from ottla.model.node_config import NodeConfig
from ottla.shares.state.batches import StateBatch
from ottla.shares.state.commands import (
    DeleteState,
    InitializeState,
    ReadState,
    ReadSummary,
    StoredShareState,
    Summary,
    WriteState,
)
from ottla.shares.state.machine import SharesMachine
from ottla.shares.state.partition import batches_of
from ottla.shares.state.upkeep import PruneBelow, TopicsDeleted
from ottla.shares.state.view import SharesState, ShareStatesView
from ottla.wire.journal import share_state

SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "share.coordinator.snapshot.update.records.per.snapshot": "2",
    "share.coordinator.cold.partition.snapshot.interval.ms": "10000",
    "share.coordinator.state.topic.prune.interval.ms": "15000",
}
IDS = {"orders": b"o" * 16, "bills": b"b" * 16, "missing": b"m" * 16}
SIZES = {IDS["orders"]: 2, IDS["bills"]: 2}
NAMES = {topic_id: name for name, topic_id in IDS.items()}
STATES = {"available": 0, "acked": 2, "archived": 4}


def machine() -> SharesMachine:
    config = NodeConfig(SETTINGS)
    return SharesMachine(ShareStatesView(SharesState(), lambda topic_id: SIZES.get(topic_id, 0), lambda: config.broker))


def batch(text: str) -> StateBatch:
    """`10-19:acked:2`, two deliveries."""
    offsets, state, count = text.split(":")
    first, _, last = offsets.partition("-")
    return StateBatch(int(first), int(last or first), STATES[state], int(count))


def shown(batches: tuple[StateBatch, ...]) -> str:
    names = {number: name for name, number in STATES.items()}
    return " ".join(f"{one[0]}-{one[1]}:{names[one[2]]}:{one[3]}" for one in batches) or "nothing"


def show(thing: Any) -> str | None:
    match thing:
        case Entry(key=share_state.ShareSnapshotKey(), value=None):
            return f"deleted {_where(thing.key)}"
        case Entry(key=share_state.ShareSnapshotKey()):
            value = thing.value
            return (
                f"snapshot {value.snapshot_epoch} of {_where(thing.key)}: state epoch {value.state_epoch}, "
                f"leader epoch {value.leader_epoch}, start {value.start_offset}, done {value.delivery_complete_count}, "
                f"{shown(batches_of(value))}"
            )
        case Entry(key=share_state.ShareUpdateKey()):
            value = thing.value
            return (
                f"update of snapshot {value.snapshot_epoch} of {_where(thing.key)}: leader epoch {value.leader_epoch}, "
                f"start {value.start_offset}, done {value.delivery_complete_count}, {shown(batches_of(value))}"
            )
        case StoredShareState():
            return f"state epoch {thing.state_epoch}, start {thing.start_offset}, {shown(thing.batches)}"
        case Summary():
            epochs = f"state epoch {thing.state_epoch}, leader epoch {thing.leader_epoch}"
            return f"{epochs}, start {thing.start_offset}, done {thing.delivery_complete_count}"
        case PruneBelow():
            return f"prune below {thing.offset}"
        case Timer():
            return f"{thing.key} in {thing.deadline_ms} ms"
        case _:
            return None


def _where(key: Any) -> str:
    return f"{key.group_id} {NAMES[key.topic_id]}-{key.partition}"


def make_stage() -> tuple[Stage[SharesMachine], dict[str, Verb]]:
    stage = Stage(machine, types_of(share_state), show)

    def named(where: str) -> tuple[str, bytes, int]:
        topic, _, index = where.partition("-")
        return "shop", IDS[topic], int(index)

    def begin(where: str, epoch: str = "1", start: str = "-1") -> None:
        stage.submit(where, InitializeState(*named(where), int(epoch), int(start)))

    def read(where: str, leader: str = "-1") -> None:
        stage.submit(where, ReadState(*named(where), int(leader)))

    def write(where: str, *batches: str, **of: str) -> None:
        command = WriteState(
            *named(where),
            int(of.get("epoch", "1")),
            int(of.get("leader", "0")),
            int(of.get("start", "-1")),
            int(of.get("done", "0")),
            tuple(batch(each) for each in batches),
        )
        stage.submit(where, command)

    def summary(where: str) -> None:
        stage.submit(where, ReadSummary(*named(where)))

    def delete(where: str) -> None:
        stage.submit(where, DeleteState(*named(where)))

    def gone(topic: str) -> None:
        stage.submit(topic, TopicsDeleted(frozenset({IDS[topic]})))

    return stage, {"begin": begin, "read": read, "write": write, "summary": summary, "delete": delete, "gone": gone}
