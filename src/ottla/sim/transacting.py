"""Transactions under chaos: producers that commit and abort across partitions, a read_committed reader, and the ledger
that knows what may be visible.

A producer that fails starts again under the same transactional id, which must end the transaction that it left open.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

from ottla.client.errors import ClientError
from ottla.client.producer.producer import Producer
from ottla.model.errors import ApiError
from ottla.sim.check import Guarantee
from ottla.sim.faults import Chaos
from ottla.sim.ledger import CommittedReader, Found, Ledger, TransactionName, read_all_committed
from ottla.sim.run import WORK_SECONDS_MAX, Simulation
from ottla.sim.scenario import Durability, Scenario, SimFault, scenario, survivable_faults
from ottla.sim.transactional import TRANSACTION_SETTINGS, Changed, take_over, transactional_producer
from ottla.sim.workload import Surroundings, create_topic

TRANSACTION_TIMEOUT_MS = 20_000


class TransactingClient:
    """A producer with its own transactional id."""

    def __init__(self, around: Surroundings, ledger: Ledger, number: int, count: int, rng: random.Random) -> None:
        self._around = around
        self._ledger = ledger
        self._number = number
        self._left = count
        self._rng = rng

    async def run(self) -> None:
        while self._left > 0:
            try:
                async with self._producer() as producer:
                    while self._left > 0:
                        await self._transaction(producer)
            except (ClientError, ApiError) as error:
                self._around.tell(f"producer {self._number} begins anew: {error}")
                await asyncio.sleep(self._rng.uniform(0.1, 1.0))
        await take_over(f"producer-{self._number}", self._producer, self._ledger.violations.append)

    def _producer(self) -> Producer:
        name = f"producer-{self._number}"
        return transactional_producer(self._around, name, name, TRANSACTION_TIMEOUT_MS, self._rng)

    async def _transaction(self, producer: Producer) -> None:
        name = TransactionName(self._number, self._left)
        self._left -= 1
        ledger, rng = self._ledger, self._rng
        ledger.begin(name)
        try:
            async with producer.transaction():
                for record in range(rng.randint(1, 6)):
                    partition = rng.choice(self._around.partitions)
                    ledger.written[name][record] = partition
                    await producer.enqueue(partition.topic, name.value(record), partition=partition.partition)
                    if rng.random() < 0.2:
                        await asyncio.sleep(rng.expovariate(10))
                if rng.random() < 0.3:
                    raise Changed
                del ledger.refused[name]  # from here on the outcome is unknown until the producer reports it
        except Changed:
            return
        ledger.committed[name] = None


def transacting(seed: int) -> Scenario:
    """Return a scenario in which acknowledged data must survive."""
    base = scenario(seed)
    faults = survivable_faults(base)
    return replace(
        base, guarantee=Guarantee.SAFE, faults=faults or {SimFault.KILL: 1.0}, writers=(), erasers=0, topic_configs={}
    )


class TransactionSimulation(Simulation):
    """A simulation with transactions instead of single records."""

    def _settings(self) -> dict[str, str]:
        durable = self.scenario.durability is not Durability.PAGE_CACHE
        fsync = {"ottla.fsync.before.ack": str(durable).lower()}
        return super()._settings() | fsync | TRANSACTION_SETTINGS

    async def _main(self) -> None:
        supervisor = self.loop.create_task(self.machine.supervise())
        await self.machine.wait_until_ready()
        around, ledger, rng = self._around, Ledger(), self._stream("transactions")
        await self._as_client("admin", create_topic(around, {}, self._stream("admin")))
        producers = []
        for number in range(rng.randint(1, 3)):
            client = TransactingClient(around, ledger, number, rng.randint(10, 40), self._stream(f"producer {number}"))
            producers.append(self._as_client(f"producer-{number}", client.run()))
        reader = self._as_client("reader", CommittedReader(around, ledger, self._stream("reader")).run())
        chaos = Chaos(self.scenario, self.net, [self.machine], self._clients, self._stream("chaos"), self.tell)
        await chaos.run()
        await self.machine.wait_until_ready()
        assert self.machine.node is not None
        if len(self.machine.node.storage.directories) < len(self.machine.disks):
            self.machine.restart()  # as in Kafka, a directory that failed at the last start is used after the next one
        self._chaos_done = {fault.value: count for fault, count in chaos.done.items()}
        _, unfinished = await asyncio.wait(producers, timeout=WORK_SECONDS_MAX)
        if unfinished:
            self.history.blame(f"{len(unfinished)} producers did not finish although all faults are over")
        await self._end([reader], "reader")
        await self._end(producers, "producer")
        found: Found = {}
        await self._as_client("last-reader", read_all_committed(around, found, self._stream("last reader")))
        ledger.judge(found)
        for violation in ledger.violations:
            self.history.blame(violation)
        self._chaos_done |= {"transactions": len(ledger.written), "committed": len(ledger.committed)}
        await self.machine.retire()
        await supervisor
        self._verify_disks()
