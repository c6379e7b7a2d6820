"""A scenario for a cluster: everything that one seed decides before the simulation starts.

What may be lost, and what may not
----------------------------------
Kafka acknowledges (acks=all) when all in-sync replicas have a record in their page caches, and commits nothing while
fewer than `min.insync.replicas` are in sync. A process that crashes keeps its page cache: any number of nodes may be
killed at any time. A machine that loses power loses what was not synced: at most `min.insync.replicas` - 1 machines may
lose power before they have caught up again, and no other replica may end uncleanly meanwhile, because a controller
cannot tell one kind of unclean end from the other. All topics here have three replicas and min.insync.replicas=2, so:

| durability                   | crashes                                                                  | guarantee |
|------------------------------|--------------------------------------------------------------------------|-----------|
| page cache (Kafka's default) | any number of processes; or the power of one machine while all others    | SAFE      |
|                              | are in sync, and then nothing else crashes before it is in sync again    |           |
| ottla.fsync.before.ack       | any number of processes and machines at once                             | SAFE      |
| page cache                   | processes; bits flip in the metadata of one node at a time (`rot.py`)    | SAFE      |
| any                          | as above, and bits flip in the files of partitions                       | ROTTEN    |

`power.py` enforces the second column. The metadata log is always synced before it is committed: a power loss never
takes committed metadata. Elections are clean everywhere (unclean.leader.election.enable=false). Records that were
acknowledged by fewer than all in-sync replicas (acks=0, acks=1) may be lost whenever leadership moves.

Members
-------
In a third of the runs the cluster itself changes (`Voting`, `changes`): controllers become voters of the quorum and are
removed again, including the leader; fixed voters are upgraded to dynamic ones; brokers join, or are drained, stopped
and unregistered. All claims hold throughout.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ottla.records.compress import Codec
from ottla.sim.check import Guarantee, SimWriter
from ottla.sim.coordinated import WorkloadPlans
from ottla.sim.copying import draw_copying
from ottla.sim.grouping import draw_group
from ottla.sim.scenario import DISK_FAULTS, POWER_FAULTS, Durability, Scenario, SimFault
from ottla.sim.shares.sharing import draw_sharing
from ottla.sim.topics.plan import UPKEEP, TopicsPlan, draw_topics
from ottla.sim.workload import WriterPlan
from ottla.sim.world.links import LinkQuality

COMBINED, CONTROLLER, BROKER = "broker,controller", "controller", "broker"
SHAPES: tuple[tuple[Sequence[str], float], ...] = (
    ((COMBINED, COMBINED, COMBINED), 6.0),
    ((CONTROLLER, CONTROLLER, CONTROLLER, BROKER, BROKER, BROKER), 1.5),
    ((COMBINED, COMBINED, COMBINED, BROKER), 1.0),
    ((CONTROLLER, BROKER, BROKER, BROKER), 1.0),
    ((COMBINED, BROKER, BROKER), 0.5),
    ((COMBINED, COMBINED, COMBINED, COMBINED, COMBINED), 1.0),
)
REPLICAS, IN_SYNC_MIN = 3, 2
NO_WORKLOADS = WorkloadPlans(groups=(), copying=None, sharing=None)

POWER = (*POWER_FAULTS, SimFault.POWER_LOSS_OF_SEVERAL)
CRASHES = (SimFault.KILL, SimFault.KILL_IN_WRITE, SimFault.KILL_SEVERAL, SimFault.RESTART, *POWER)
NETWORK = (SimFault.ISOLATE, SimFault.SPLIT, SimFault.ONE_WAY, SimFault.CUT, SimFault.RESET, SimFault.RESETS)
DELAYS = (SimFault.PAUSE, SimFault.FAR_NODE, SimFault.SLOW_NETWORK, SimFault.SLOW_DISK, SimFault.CLIENT_PAUSE)
OTHERS = (
    SimFault.CLOCK_JUMP,
    SimFault.FULL_DISK,
    SimFault.READ_ONLY_DISK,
    SimFault.FAILING_WRITES,
    SimFault.FAILING_SYNCS,
    SimFault.FAILING_READS,
)


class Voting(enum.Enum):
    """The kind of quorum: fixed voters, or voters that can change, and which controllers vote at first."""

    FIXED = "fixed voters"
    UPGRADED = "fixed voters that become ones that change"
    ALL = "voters that change, at first all controllers"
    FIRST = "voters that change, at first one controller"


@dataclass(frozen=True, slots=True)
class ClusterScenario(Scenario):
    """A scenario with what is specific to a cluster."""

    shape: tuple[str, ...]  # the roles of each node
    spares: tuple[str, ...]  # the roles of nodes that join during the run
    settings: dict[str, str]  # of every node
    operations: int  # how many operations operators carry out meanwhile
    workloads: WorkloadPlans
    second_look: bool = True  # read everything again after all nodes were killed at once
    clean_end: bool = True  # stop all nodes cleanly and verify their disks
    voting: Voting = Voting.FIXED
    changes: int = 0  # how many changes of the cluster's members, beside the other operations
    topics: TopicsPlan | None = None  # topics that change while they are used

    def lines(self) -> list[str]:
        settings = ", ".join(f"{name}={value}" for name, value in self.settings.items())
        nodes = f"{len(self.shape)} nodes ({'; '.join(self.shape)}) and to come: {'; '.join(self.spares) or 'none'}"
        return [
            *Scenario.lines(self),
            nodes,
            settings,
            f"{self.operations} operations; {self.voting.value}; {self.changes} changes of members",
            *self.workloads.lines(),
            *([str(self.topics)] if self.topics is not None else ()),
        ]


def clustered(seed: int) -> ClusterScenario:
    """Draw a short run: most bugs need one or two faults, and many short runs find more than a few long ones."""
    rng = random.Random(f"clustered {seed}")
    durability = rng.choice((Durability.PAGE_CACHE, Durability.PAGE_CACHE, Durability.FSYNC_BEFORE_ACK))
    shape = rng.choices([shape for shape, _ in SHAPES], [weight for _, weight in SHAPES])[0]
    faults = _faults(rng)
    if not _durable(durability) and any(fault in faults for fault in POWER):
        # A failing disk makes its node end uncleanly, too, which would be a second crash beside the power loss.
        faults = {fault: weight for fault, weight in faults.items() if fault not in DISK_FAULTS}
    rotten = rng.random() < 0.04
    if rotten:
        faults[SimFault.BIT_ROT] = 2.0
    configs = {
        "internal.segment.bytes": str(rng.choice((4096, 16384, 1 << 20))),
        "index.interval.bytes": str(rng.choice((1, 512, 4096))),
    }
    return _with_changes(
        seed,
        ClusterScenario(
            seed=seed,
            durability=durability,
            guarantee=Guarantee.ROTTEN if rotten else Guarantee.SAFE,
            partitions=rng.randint(1, 3),
            log_dirs=rng.choice((1, 1, 1, 2)),
            topic_configs=configs,
            writers=tuple(_writer(rng, number) for number in range(rng.randint(1, 2))),
            following_readers=1,
            jumping_readers=int(rng.random() < 0.3),
            erasers=int(rng.random() < 0.15),
            quality=_quality(rng),
            garbage_rate=rng.choice((0.0, 0.0, 0.2)),
            faults=faults,
            pause_between_faults_seconds=rng.uniform(0.15, 0.8),
            chaos_seconds=rng.uniform(1.0, 3.5),
            shape=tuple(shape),
            spares=(BROKER,) * (rng.random() < 0.15),
            settings=_settings(rng) | ({"ottla.fsync.before.ack": "true"} if _durable(durability) else {}),
            operations=0 if rotten else rng.choice((0, 0, 0, 2, 4)),
            workloads=NO_WORKLOADS if rotten else _draw_workloads(rng),
            second_look=rng.random() < 0.25,
            clean_end=rng.random() < 0.4,
        ),
    )


def topical(seed: int) -> ClusterScenario:
    """A cluster with topics that are compacted, shortened, deleted and created again while faults happen."""
    rng = random.Random(f"topical {seed}")
    made = clustered(seed)
    faults: dict[SimFault, float] = {
        fault: weight for fault, weight in made.faults.items() if fault is not SimFault.BIT_ROT
    }
    if _durable(made.durability) and rng.random() < 0.5:
        faults[SimFault.LATE_SYNC] = 1.5
    if rng.random() < 0.3:
        faults[SimFault.ANSWERS] = 1.0
    made = replace(made, guarantee=Guarantee.SAFE, faults=faults or {SimFault.KILL: 1.0}, workloads=NO_WORKLOADS)
    return with_topics(made, draw_topics(rng, transactions=True, replicated=True))


def with_topics(made: ClusterScenario, topics: TopicsPlan) -> ClusterScenario:
    return replace(made, topics=topics, writers=made.writers[:1], settings=made.settings | UPKEEP)


def _with_changes(seed: int, made: ClusterScenario) -> ClusterScenario:
    """Let the members of some clusters change during the run."""
    rng = random.Random(f"members {seed}")
    if made.guarantee is Guarantee.ROTTEN:
        return made
    if rng.random() > 0.35:
        return _with_damage(made, rng) if not _durable(made.durability) and rng.random() < 0.2 else made
    voting = rng.choice((Voting.FIXED, Voting.UPGRADED, Voting.ALL, Voting.ALL, Voting.FIRST))
    spares = made.spares
    if voting is not Voting.FIXED:
        spares += rng.choice(((), (CONTROLLER,), (COMBINED,)))
    elif BROKER not in (*made.shape, *spares):
        spares += (BROKER,)
    settings = made.settings
    if voting is not Voting.FIXED and rng.random() < 0.3:
        settings = settings | {"controller.quorum.auto.join.enable": "true"}
    return replace(made, voting=voting, spares=spares, settings=settings, changes=rng.randint(2, 4))


def _with_damage(made: ClusterScenario, rng: random.Random) -> ClusterScenario:
    """Let bits flip in the metadata of single nodes, without other disk faults."""
    faults = {fault: weight for fault, weight in made.faults.items() if fault not in (*POWER, *DISK_FAULTS)}
    faults[SimFault.METADATA_ROT] = 2.0
    voting, settings = Voting.FIXED, made.settings
    if rng.random() < 0.5:
        # A voter with an empty disk is a new voter, and has to be added to the quorum again.
        voting, settings = Voting.ALL, settings | {"controller.quorum.auto.join.enable": "true"}
    return replace(made, faults=faults, voting=voting, settings=settings, log_dirs=1)


def _durable(durability: Durability) -> bool:
    return durability is not Durability.PAGE_CACHE


def _settings(rng: random.Random) -> dict[str, str]:
    """Return short timeouts, so that everything happens in a short run, which differ between runs."""
    election_ms = rng.choice((200, 500, 1000))
    session_ms = rng.choice((1500, 3000, 9000))
    return {
        "controller.quorum.election.timeout.ms": str(election_ms),
        "controller.quorum.election.backoff.max.ms": str(election_ms),
        "controller.quorum.fetch.timeout.ms": str(rng.choice((1000, 1500, 2000))),
        "controller.quorum.request.timeout.ms": str(rng.choice((900, 2000))),
        "broker.session.timeout.ms": str(session_ms),
        "broker.heartbeat.interval.ms": str(session_ms // 5),
        "replica.lag.time.max.ms": str(rng.choice((1000, 3000, 10000))),
        "replica.fetch.wait.max.ms": str(rng.choice((100, 500))),
        "replica.fetch.backoff.ms": str(rng.choice((50, 1000))),
        "replica.socket.timeout.ms": "5000",
        "replica.high.watermark.checkpoint.interval.ms": str(rng.choice((500, 5000))),
        "metadata.log.max.record.bytes.between.snapshots": str(rng.choice((1500, 20_000, 20_971_520))),
        "metadata.log.segment.bytes": str(8 * 1024 * 1024),
        "metadata.max.idle.interval.ms": "0",  # so that the story of a run shows only what was done
        "default.replication.factor": str(REPLICAS),
        "min.insync.replicas": str(IN_SYNC_MIN),
        "unclean.leader.election.enable": "false",
    }


def _writer(rng: random.Random, number: int) -> WriterPlan:
    acks = rng.choice((-1, -1, -1, -1, 1))
    return WriterPlan(
        writer=SimWriter(number, idempotent=acks == -1 and rng.random() < 0.7, acks=acks),
        records=rng.randint(15, 40),
        pause_seconds=rng.choice((0.02, 0.05, 0.1)),
        value_bytes_max=rng.choice((20, 200, 2000)),
        codec=Codec.NONE if rng.random() < 0.8 else Codec.LZ4,
        linger_ms=rng.choice((0.0, 5.0, 50.0)),
        batch_size_bytes=rng.choice((200, 2000, 16384)),
    )


def _quality(rng: random.Random) -> LinkQuality:
    slow = rng.choice((0.0005, 0.003, 0.02))
    return LinkQuality(
        latency_seconds=(slow / 10, slow),
        spike_rate=rng.choice((0.0, 0.01, 0.05)),
        short_rate=rng.choice((0.0, 0.1)),
        window_bytes=rng.choice((65536, 1 << 20)),
        give_up_seconds=rng.choice((3.0, 15.0)),
    )


def _faults(rng: random.Random) -> dict[SimFault, float]:
    """Draw a few kinds of fault per seed; crashes and cuts are frequent, because they move leadership."""
    chosen: dict[SimFault, float] = {}
    for kinds, most in ((CRASHES, 3), (NETWORK, 3), (DELAYS, 1), (OTHERS, 1)):
        for fault in rng.sample(kinds, rng.randint(0, most)):
            chosen[fault] = rng.uniform(0.3, 1.5)
    return chosen or {SimFault.KILL: 1.0}


def _draw_workloads(rng: random.Random) -> WorkloadPlans:
    """Draw coordinated clients for some of the runs only, because they take longer."""
    part = rng.random()
    return WorkloadPlans(
        groups=(draw_group(rng, "group-0"),) if part < 0.05 else (),
        copying=draw_copying(rng) if 0.05 <= part < 0.09 else None,
        sharing=draw_sharing(rng) if 0.09 <= part < 0.12 else None,
    )
