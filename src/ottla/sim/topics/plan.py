"""The plan of topics that change, drawn from a seed: the topics, their writers, and the operators' changes."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from ottla.records.compress import Codec
from ottla.sim.scaled import FEW_ABORTED
from ottla.sim.transactional import TRANSACTION_SETTINGS

POLICIES = ("delete", "compact", "compact,delete")
COMPRESSIONS = ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")
# Periodic work that is done every few minutes or hours by default is done every moment, so that it happens in a short
# run.
UPKEEP = {
    "log.cleaner.backoff.ms": "300",
    "log.retention.check.interval.ms": "500",
    "log.flush.offset.checkpoint.interval.ms": "700",
}
SETTINGS = {
    **UPKEEP,
    **TRANSACTION_SETTINGS,
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "500",
}


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """One topic, as it is created each time."""

    name: str
    partitions: int
    configs: dict[str, str]
    transactional: bool


@dataclass(frozen=True, slots=True)
class KeyedWriterPlan:
    """A producer for one topic, or (with transactions) for all transactional topics."""

    number: int
    topics: tuple[TopicPlan, ...]
    transactional: bool
    abort_rate: float
    idempotent: bool
    codec: Codec
    pause_seconds: float
    value_bytes_max: int


@dataclass(frozen=True, slots=True)
class TopicsPlan:
    """The topics of a run and their changes."""

    topics: tuple[TopicPlan, ...]
    writers: tuple[KeyedWriterPlan, ...]
    keys: int
    records: int  # of each writer, at most
    changes: tuple[str, ...]  # the kinds of changes that operators make
    pause_between_changes_seconds: float
    staying_members: int = 0  # consumers that join a group and stay
    protocol: str = "classic"  # of that group
    undisturbed: bool = False  # only the clock is disturbed: no session and no transaction may time out
    strangers: bool = False  # there are foreign files in the data directories
    aborted_per_fetch_max: int | None = None  # a small limit, or None for the usual one

    @property
    def limits(self) -> Mapping[str, object]:
        """The limits of the nodes that are small in this run."""
        most = self.aborted_per_fetch_max
        return {} if most is None else {"ottla.model.limits.ABORTED_PER_FETCH_MAX": most, **FEW_ABORTED}

    def __str__(self) -> str:
        topics = "; ".join(
            f"{each.name}: {each.partitions} partitions ({', '.join(f'{k}={v}' for k, v in each.configs.items())})"
            for each in self.topics
        )
        writers = ", ".join(f"{'transactional ' * each.transactional}{each.number}" for each in self.writers)
        return f"{topics}; writers: {writers}; {self.keys} keys; operators: {', '.join(self.changes)}"


CHANGES = ("policy", "compression", "segments", "erase", "recreate")


def draw_topics(rng: random.Random, *, transactions: bool, replicated: bool = False) -> TopicsPlan:
    """`transactions`: whether there may be any; without syncing a power loss may tear them."""
    # As in Kafka, a follower that fetches only after its leader has dropped a tombstone never learns of it: in clusters
    # tombstones stay.
    tombstones_stay = {"delete.retention.ms": "86400000"} if replicated else {}
    topics = tuple(
        TopicPlan(
            name=f"k{number}",
            partitions=rng.randint(1, 2),
            configs={
                "cleanup.policy": rng.choice(POLICIES),
                "compression.type": rng.choice(COMPRESSIONS),
                "internal.segment.bytes": str(rng.choice((1024, 2048, 8192))),
                "index.interval.bytes": str(rng.choice((1, 512))),
                "min.cleanable.dirty.ratio": rng.choice(("0.01", "0.5")),
                "delete.retention.ms": rng.choice(("100", "3000", "86400000")),
                "file.delete.delay.ms": rng.choice(("0", "1000")),
                "retention.ms": "-1",
                # Clocks jump by hours, including those of clients.
                "message.timestamp.after.max.ms": str(1 << 50),
            }
            | tombstones_stay,
            transactional=transactions and rng.random() < 0.5,
        )
        for number in range(rng.randint(1, 2))
    )
    writers = [_writer(rng, number, (rng.choice(topics),), False) for number in range(rng.randint(1, 2))]
    taking = tuple(each for each in topics if each.transactional)
    writers += [_writer(rng, len(writers), taking, True)] if taking else []
    changes = tuple(rng.sample(CHANGES, rng.randint(1, 4)))
    if rng.random() < 0.2:
        changes += ("retention",)
    return TopicsPlan(
        topics=topics,
        writers=tuple(writers),
        keys=rng.choice((2, 6, 20)),
        records=60 if replicated else 400,
        changes=changes,
        pause_between_changes_seconds=rng.choice((0.3, 0.6) if replicated else (0.4, 1.0, 2.0)),
        strangers=rng.random() < 0.3,
        aborted_per_fetch_max=rng.choice((None, 2, 5)),
    )


def _writer(rng: random.Random, number: int, topics: tuple[TopicPlan, ...], transactional: bool) -> KeyedWriterPlan:
    return KeyedWriterPlan(
        number=number,
        topics=topics,
        transactional=transactional,
        abort_rate=rng.choice((0.3, 0.9)),
        idempotent=True,
        codec=rng.choice((Codec.NONE, Codec.NONE, Codec.LZ4, Codec.GZIP)),
        pause_seconds=rng.choice((0.01, 0.03)),
        value_bytes_max=rng.choice((10, 100, 500)),
    )
