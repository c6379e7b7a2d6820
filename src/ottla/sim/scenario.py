"""A scenario: everything that one seed decides before the simulation starts.

The durability setting and the kinds of crash are chosen together, so that it is known what may be lost:

| durability                              | crashes                    | guarantee |
|-----------------------------------------|----------------------------|-----------|
| page cache (Kafka's default)            | process                    | SAFE      |
| ottla.fsync.before.ack, flush.messages=1 | process, power             | SAFE      |
| page cache                              | process, power             | AT_RISK   |
| any                                     | any, and bits flip         | ROTTEN    |
"""

from __future__ import annotations

import enum
import random
from dataclasses import dataclass

from ottla.records.compress import Codec
from ottla.sim.check import Guarantee, SimWriter
from ottla.sim.workload import WriterPlan
from ottla.sim.world.links import LinkQuality


class Durability(enum.Enum):
    PAGE_CACHE = "page cache"
    FSYNC_BEFORE_ACK = "fsync before ack"
    FLUSH_EVERY_MESSAGE = "flush.messages=1"


class SimFault(enum.Enum):
    KILL = "kill -9"
    KILL_IN_WRITE = "kill -9 inside a disk operation"
    POWER_LOSS = "power loss"
    POWER_LOSS_IN_WRITE = "power loss inside a disk operation"
    RESTART = "clean restart"
    PAUSE = "the process stands still"
    RESET = "connections are reset"
    CUT = "the network is cut"
    SLOW_NETWORK = "the network is slow"
    SLOW_DISK = "writes and syncs are slow"
    FULL_DISK = "the disk is full"
    READ_ONLY_DISK = "the disk is read-only"
    FAILING_WRITES = "writes fail"
    FAILING_SYNCS = "syncs fail"
    FAILING_READS = "reads fail"
    CLOCK_JUMP = "the clock jumps"
    BIT_ROT = "a bit flips"
    CLIENT_PAUSE = "a client stands still"
    KILL_SEVERAL = "several nodes are killed at once"
    POWER_LOSS_OF_SEVERAL = "several machines lose power at once"
    ISOLATE = "a node is cut off"
    SPLIT = "the nodes are split in two"
    ONE_WAY = "a link between two nodes works one way only"
    FAR_NODE = "a node is far away"
    RESETS = "messages cost their connections"
    METADATA_ROT = "a bit flips in the metadata"
    ANSWERS = "some requests fail or are answered late"
    LATE_SYNC = "a node with slow syncs is cut off, comes back and loses power"


POWER_FAULTS = (SimFault.POWER_LOSS, SimFault.POWER_LOSS_IN_WRITE)
BETWEEN_NODES = (
    SimFault.KILL_SEVERAL,
    SimFault.POWER_LOSS_OF_SEVERAL,
    SimFault.ISOLATE,
    SimFault.SPLIT,
    SimFault.ONE_WAY,
    SimFault.FAR_NODE,
    SimFault.RESETS,
    SimFault.METADATA_ROT,
    SimFault.LATE_SYNC,
)
DISK_FAULTS = (
    SimFault.FULL_DISK,
    SimFault.READ_ONLY_DISK,
    SimFault.FAILING_WRITES,
    SimFault.FAILING_SYNCS,
    SimFault.FAILING_READS,
    SimFault.BIT_ROT,
)


@dataclass(frozen=True, slots=True)
class Scenario:
    seed: int
    durability: Durability
    guarantee: Guarantee
    partitions: int
    log_dirs: int
    topic_configs: dict[str, str]
    writers: tuple[WriterPlan, ...]
    following_readers: int
    jumping_readers: int
    erasers: int
    quality: LinkQuality
    garbage_rate: float
    faults: dict[SimFault, float]  # weights
    pause_between_faults_seconds: float
    chaos_seconds: float

    def lines(self) -> list[str]:
        """Return a description for the story of the run."""
        configs = ", ".join(f"{name}={value}" for name, value in self.topic_configs.items())
        return [
            f"seed {self.seed}: {self.durability.value}, {self.guarantee.value}",
            f"{self.partitions} partitions ({configs}) in {self.log_dirs} data directories",
            *(
                f"writer {plan.writer.number}: acks={plan.writer.acks}"
                f"{', idempotent' if plan.writer.idempotent else ''}, {plan.records} records of up to"
                f" {plan.value_bytes_max} bytes, {plan.codec.name.lower()}, linger {plan.linger_ms} ms"
                for plan in self.writers
            ),
            f"readers: {self.following_readers} following, {self.jumping_readers} jumping; erasers: {self.erasers}",
            f"faults about every {self.pause_between_faults_seconds:.1f} s for {self.chaos_seconds:.0f} s: "
            + ", ".join(fault.value for fault in self.faults),
        ]


def scenario(seed: int) -> Scenario:
    rng = random.Random(f"scenario {seed}")
    durability = rng.choice(list(Durability))
    power = durability is not Durability.PAGE_CACHE or rng.random() < 0.3
    at_risk = power and durability is Durability.PAGE_CACHE
    configs = {
        "internal.segment.bytes": str(rng.choice((4096, 16384, 65536, 1 << 20))),
        "index.interval.bytes": str(rng.choice((1, 512, 4096))),
    }
    if rng.random() < 0.2:
        configs["segment.ms"] = str(rng.choice((50, 1000)))
    if durability is Durability.FSYNC_BEFORE_ACK:
        configs["ottla.fsync.before.ack"] = "true"
    elif durability is Durability.FLUSH_EVERY_MESSAGE:
        configs["flush.messages"] = "1"
    elif rng.random() < 0.3:
        configs["flush.ms"] = str(rng.choice((100, 1000)))
    faults = _faults(rng, power=power)
    guarantee = Guarantee.AT_RISK if at_risk else Guarantee.SAFE
    if random.Random(f"rot {seed}").random() < 0.08:
        faults[SimFault.BIT_ROT] = 2.0
        guarantee = Guarantee.ROTTEN
    return Scenario(
        seed=seed,
        durability=durability,
        guarantee=guarantee,
        partitions=rng.randint(1, 4),
        log_dirs=random.Random(f"log dirs {seed}").choice((1, 1, 2)),
        topic_configs=configs,
        writers=tuple(_writer(rng, number) for number in range(rng.randint(1, 4))),
        following_readers=rng.randint(1, 2),
        jumping_readers=rng.randint(0, 2),
        erasers=int(rng.random() < 0.3),
        quality=_quality(rng),
        garbage_rate=rng.choice((0.0, 0.0, 0.2)),
        faults=faults,
        pause_between_faults_seconds=rng.uniform(0.5, 5.0),
        chaos_seconds=rng.uniform(5.0, 30.0),
    )


def survivable_faults(made: Scenario) -> dict[SimFault, float]:
    """Return the faults of a scenario that acknowledged data must survive: no bits flip, and power is lost only if
    everything is synced before it is acknowledged.
    """
    durable = made.durability is not Durability.PAGE_CACHE
    return {
        fault: weight
        for fault, weight in made.faults.items()
        if fault is not SimFault.BIT_ROT and (durable or fault not in POWER_FAULTS)
    }


def _writer(rng: random.Random, number: int) -> WriterPlan:
    acks = rng.choice((-1, -1, -1, 1, 0))
    return WriterPlan(
        writer=SimWriter(number, idempotent=acks == -1 and rng.random() < 0.7, acks=acks),
        records=rng.randint(50, 300),
        pause_seconds=rng.choice((0.01, 0.05, 0.2)),
        value_bytes_max=rng.choice((20, 200, 3000)),
        codec=rng.choice(list(Codec)) if rng.random() < 0.5 else Codec.NONE,
        linger_ms=rng.choice((0.0, 5.0, 50.0)),
        batch_size_bytes=rng.choice((200, 2000, 16384)),
    )


def _quality(rng: random.Random) -> LinkQuality:
    slow = rng.choice((0.0005, 0.003, 0.05))
    return LinkQuality(
        latency_seconds=(slow / 10, slow),
        spike_rate=rng.choice((0.0, 0.01, 0.1)),
        short_rate=rng.choice((0.0, 0.1, 0.5)),
        window_bytes=rng.choice((4096, 65536, 1 << 20)),
    )


def _faults(rng: random.Random, *, power: bool) -> dict[SimFault, float]:
    """Draw a few kinds of fault per seed, so that rare ones have their turn and a failure is easier to understand."""
    special = (
        SimFault.BIT_ROT,
        SimFault.CLIENT_PAUSE,
        SimFault.ANSWERS,
        *BETWEEN_NODES,
    )  # special simulations add these themselves
    kinds = [fault for fault in SimFault if fault not in special and (power or fault not in POWER_FAULTS)]
    chosen: dict[SimFault, float] = {fault: rng.uniform(0.2, 1.0) for fault in rng.sample(kinds, rng.randint(0, 4))}
    crashes = [SimFault.KILL, SimFault.KILL_IN_WRITE, *(POWER_FAULTS if power else ())]
    for fault in rng.sample(crashes, rng.randint(1, len(crashes))):
        chosen[fault] = rng.uniform(0.5, 1.5)
    return chosen
