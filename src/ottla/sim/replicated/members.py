"""The members of the cluster, and how operators change them while it runs: voters of the quorum are added and removed,
including the leader; fixed voters are upgraded to dynamic ones; brokers join, or leave for good.

A change may fail, be refused, or take effect although its answer was lost. When all faults are over, the next change
must succeed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from ottla.client.admin import Admin
from ottla.client.admin.voters import QuorumReplica, QuorumState, VoterEndpoint
from ottla.client.errors import ClientError
from ottla.cluster.state import ClusterState
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.sim.cluster import CONTROLLER_PORT, SimMachine
from ottla.sim.process import WorkloadStage
from ottla.sim.replicated.nodes import LISTENER
from ottla.sim.replicated.scenario import BROKER, CONTROLLER, REPLICAS, ClusterScenario, Voting

DRAIN_SECONDS_MAX = 6.0
Change = Callable[[Admin], Awaitable[None]]


class Members:
    """The cluster as its operators know it."""

    def __init__(
        self,
        stage: WorkloadStage,
        scenario: ClusterScenario,
        machines: Sequence[SimMachine],
        start: Callable[[int], None],
        stop: Callable[[int], Awaitable[None]],
        state: Callable[[], ClusterState | None],
    ) -> None:
        roles = enumerate((*scenario.shape, *scenario.spares), 1)
        self._roles = dict(roles)
        self.brokers = [number for number, role in enumerate(scenario.shape, 1) if role != CONTROLLER]
        self._forgotten: list[int] = []
        self.spares = list(range(len(scenario.shape) + 1, len(self._roles) + 1))
        self._machines = machines
        self._start = start
        self._stop = stop
        self._state = state
        self._tell = stage.around.tell
        self._rng = stage.stream("members")
        self.changes: tuple[Change, ...] = (self.remove_broker,)
        if scenario.voting is not Voting.FIXED:
            self.changes = (self.add_voter, self.add_voter, self.remove_voter, self.remove_leader, self.remove_broker)
        if scenario.voting is Voting.UPGRADED:
            self.changes += (self.upgrade, self.upgrade)
        self._upgrades = scenario.voting is Voting.UPGRADED

    def join(self) -> None:
        """Start a node that was not part of the cluster before."""
        spare = self.spares.pop()
        self._tell(f"operator: node {spare} joins as {self._roles[spare]}")
        self._start(spare)
        if self._roles[spare] != CONTROLLER:
            self.brokers.append(spare)

    # -- voters

    async def upgrade(self, admin: Admin) -> None:
        """Upgrade from fixed voters to dynamic ones."""
        await admin.nodes.update_features({"kraft.version": 1})
        self._upgrades = False

    async def add_voter(self, admin: Admin) -> None:
        quorum = await admin.nodes.quorum()
        waiting = self._waiting(quorum)
        if waiting:
            chosen = self._rng.choice(waiting)
            self._tell(f"operator: controller {chosen.node_id} shall vote")
            address = self._machines[chosen.node_id - 1].host.address
            end = VoterEndpoint(LISTENER, address, CONTROLLER_PORT)
            await admin.voters.add(chosen.node_id, chosen.directory_id, [end])

    async def remove_voter(self, admin: Admin) -> None:
        await self._remove(admin, lambda voter, _: True)

    async def remove_leader(self, admin: Admin) -> None:
        await self._remove(admin, lambda voter, leader_id: voter.node_id == leader_id)

    async def _remove(self, admin: Admin, wanted: Callable[[QuorumReplica, int], bool]) -> None:
        quorum = await admin.nodes.quorum()
        found = [voter for voter in quorum.voters if wanted(voter, quorum.leader_id)]
        if found and len(quorum.voters) > 1:
            chosen = self._rng.choice(found)
            self._tell(f"operator: controller {chosen.node_id} shall not vote any more")
            await admin.voters.remove(chosen.node_id, chosen.directory_id)

    def _waiting(self, quorum: QuorumState) -> list[QuorumReplica]:
        """Return the controllers that are observers and could become voters."""
        voting = {voter.node_id for voter in quorum.voters}
        controllers = [each for each in quorum.observers if self._roles.get(each.node_id, BROKER) != BROKER]
        return [each for each in controllers if each.node_id not in voting]

    async def settle(self, admin: Admin) -> bool:
        """After all faults, let waiting controllers become voters. False if there is more to do."""
        if self._upgrades:
            await self.upgrade(admin)
        elif self.add_voter in self.changes and self._waiting(await admin.nodes.quorum()):
            await self.add_voter(admin)
        else:
            return True
        return False

    # -- brokers

    async def remove_broker(self, admin: Admin) -> None:
        """Remove a broker that is no controller for good: move its replicas away, stop it and unregister it."""
        leaving = [broker for broker in self.brokers if self._roles[broker] == BROKER]
        if len(self.brokers) <= REPLICAS or not leaving:
            return
        broker = self._rng.choice(leaving)
        self.brokers.remove(broker)  # so that no replica is moved there
        try:
            await self._drain(admin, broker)
        finally:
            if self._held(broker):
                self.brokers.append(broker)
        if broker in self.brokers:
            return
        self._tell(f"operator: broker {broker} leaves")
        await self._stop(broker)
        if self._held(broker):
            self._tell(f"operator: broker {broker} got something to keep, and comes back")
            await asyncio.sleep(3)  # by then its machine is at rest
            self._start(broker)
            self.brokers.append(broker)
            return
        await self._forget(admin, broker)

    async def _drain(self, admin: Admin, broker: int) -> None:
        self._tell(f"operator: broker {broker} is drained")
        moves = {}
        for partition, replicas in self._held(broker).items():
            others = [each for each in self.brokers if each not in replicas]
            if broker in replicas:
                moves[partition] = [self._rng.choice(others) if each == broker else each for each in replicas]
        (await admin.replicas.reassign_each(moves)).answered()
        until = asyncio.get_running_loop().time() + DRAIN_SECONDS_MAX
        while asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0.3)
            if not self._held(broker):
                return

    def _held(self, broker: int) -> dict[TopicPartition, tuple[int, ...]]:
        """Return the replicas on a broker by the newest known state, each with the partition's present and future
        replicas.
        """
        state = self._state()
        return {
            TopicPartition(topic.name, number): tuple(
                each for each in partition.replicas if each not in partition.removing
            )
            for topic in (state.topics.values() if state is not None else ())
            for number, partition in enumerate(topic.partitions)
            if broker in partition.replicas
        }

    def remembered(self) -> list[int]:
        """Return the brokers that were unregistered but are still registered."""
        state = self._state()
        return [broker for broker in self._forgotten if state is not None and broker in state.brokers]

    async def _forget(self, admin: Admin, broker: int) -> None:
        while True:
            try:
                await admin.nodes.unregister(broker)
                self._forgotten.append(broker)
                return
            except (ClientError, ApiError) as error:
                state = self._state()
                if state is not None and broker not in state.brokers:
                    return
                self._tell(f"operator: broker {broker} is not forgotten yet: {error}")
                await asyncio.sleep(1)
