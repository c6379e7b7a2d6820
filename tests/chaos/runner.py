"""One run: a cluster, its network and disks, the workloads, the faults, and at the end the judgement."""

from __future__ import annotations

import asyncio
import random
import subprocess
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.copier import OUTPUT, Copier
from tests.chaos.faults import Faults
from tests.chaos.links import links
from tests.chaos.readers import Readers
from tests.chaos.work import PARTITIONS, Entrance, Work, connect
from tests.chaos.writers import TOPIC, Writers
from tests.server.security.secured import GUARDED, Certificates, SecureCluster
from tests.support.processes.clusters import KafkaCluster, OttlaCluster, Place, ProcessCluster

from ottla.client.admin import Admin
from ottla.client.errors import ClientError
from ottla.model.errors import ApiError
from ottla.model.resources import Resource, ResourceType

DISK_MIB = 512
NODES = (1, 2, 3)
# Small enough for tmpfs of that size, and quick to notice silence; all else is as people have it.
SETTINGS = {
    "log.segment.bytes": str(16 * 1024 * 1024),
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
    "share.coordinator.state.topic.num.partitions": "5",
}


@dataclass(slots=True)
class Verdict:
    problems: list[str] = field(default_factory=list)
    facts: dict[str, int] = field(default_factory=dict)


def run(
    kind: str,
    directory: Path,
    seconds: float,
    seed: int,
    tell: Callable[[str], None],
    *,
    cut_by: str | None = None,
    only: Collection[str] = (),
    secure: bool = False,
) -> Verdict:
    """Breaks a cluster of this kind ("ottla", "kafka") for `seconds`; what is wrong with it afterwards.

    `secure`: one of Ottla without a plaintext port, with an authorizer, whose certificates are renewed meanwhile.

    `cut_by`: one of `links.KINDS`, or the best there can be. `only`: these kinds of faults, or all.
    """
    with ExitStack() as stack:
        place = stack.enter_context(links(cut_by, NODES, tell))
        mounted = [stack.enter_context(small_disk(directory / f"node-{id}" / "data")) for id in NODES]
        small_disks = all(mounted)
        if not small_disks:
            tell("disks are not filled: a tmpfs cannot be mounted here (needs root)")
        cluster = _cluster(kind, directory, place, secure=secure)
        stack.callback(cluster.stop)
        if place is not None:
            place.watch(cluster.started)
        cluster.start()
        faults = Faults(cluster, place, random.Random(seed), tell, small_disks=small_disks, only=only)
        return asyncio.run(_run(_entrance(cluster), faults, directory, seconds, tell))


def _cluster(kind: str, directory: Path, place: Place | None, *, secure: bool) -> ProcessCluster:
    if secure:
        assert kind == "ottla", "only Ottla is secured here"
        certificates = Certificates.make(directory / "certificates")
        return SecureCluster(directory, certificates, SETTINGS | GUARDED, place=place)
    kinds: dict[str, type[ProcessCluster]] = {"ottla": OttlaCluster, "kafka": KafkaCluster}
    return kinds[kind](directory, properties=SETTINGS, place=place)


def _entrance(cluster: ProcessCluster) -> Entrance:
    return Entrance(cluster.bootstrap, cluster.ours("admin") if isinstance(cluster, SecureCluster) else None)


async def _run(
    entrance: Entrance, faults: Faults, directory: Path, seconds: float, tell: Callable[[str], None]
) -> Verdict:
    await _prepare(entrance)
    works: list[Work] = [
        Writers(entrance),
        Copier(entrance, directory),
        Readers("classic", entrance),
        Readers("consumer", entrance),
        Readers("share", entrance),
    ]
    for work in works:
        work.start()
    await asyncio.sleep(3)
    await faults.play(seconds)
    tell("the faults are over")
    verdict = Verdict(facts={"faults": faults.count})
    for work in works:  # the writers first: the others come to the end of what they wrote
        tell(f"{work.name} come to rest")
        verdict.problems += await _trying(work, work.rest())
    for work in works:
        verdict.problems += await _trying(work, work.judge())
        verdict.facts |= {f"{work.name}: {name.replace('_', ' ')}": count for name, count in work.facts().items()}
    return verdict


async def _trying(work: Work, attempt: Awaitable[list[str] | None]) -> list[str]:
    """What is wrong; a cluster that does not answer when it is whole again is."""
    try:
        return await attempt or []
    except (ClientError, ApiError, OSError, TimeoutError) as error:
        return [f"{work.name}: {error!r}"]


async def _prepare(entrance: Entrance) -> None:
    async with connect(entrance) as cluster, Admin(cluster) as admin:
        for topic in (TOPIC, OUTPUT):
            await admin.topics.create(topic, PARTITIONS, len(NODES))
        share = Resource(ResourceType.GROUP, "chaos-share")
        await admin.configs.set(share, {"share.auto.offset.reset": "earliest"})


@contextmanager
def small_disk(path: Path) -> Iterator[bool]:
    """A file system of its own for a node's data, where that is possible."""
    path.mkdir(parents=True)
    words = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(path)]
    mounted = subprocess.run(words, capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(path)], check=True)
