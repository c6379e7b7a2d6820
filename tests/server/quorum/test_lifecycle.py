"""The membership of a broker, without a cluster around it."""

import asyncio
from types import SimpleNamespace
from typing import Any

from tests.support.waiting import WAIT_S

from ottla.cluster.entities import Broker
from ottla.server.loop.subscribers import Subscribers
from ottla.server.quorum.broker_lifecycle import Lifecycle
from ottla.server.settings.configs import Configs
from ottla.wire.messages.cluster.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.messages.cluster.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse

EPOCH = 7


class Cluster:
    """A controller that takes every registration, and the metadata that show it."""

    def __init__(self, broker: Broker) -> None:
        self.state = SimpleNamespace(brokers={broker.id: broker._replace(epoch=EPOCH)}, metadata_version=0)
        self.end_offset = 100
        self.cluster_id = "c"
        self.beats: list[BrokerHeartbeatRequest] = []
        self.heard = asyncio.Event()
        self.leaders: Subscribers[[int]] = Subscribers("a new controller")

    async def ask(self, request: Any, errors: Any, timeout_ms: int = 0) -> Any:
        if isinstance(request, BrokerRegistrationRequest):
            return BrokerRegistrationResponse(error_code=0, broker_epoch=EPOCH)
        self.beats.append(request)
        self.heard.set()
        return BrokerHeartbeatResponse()

    async def until(self, condition: Any) -> None:
        assert condition()


def test_a_broker_that_became_the_sole_voter_while_it_registered_is_heard() -> None:
    """Else it would wait for ever until it is unfenced (seed 700008 of the cluster simulator)."""
    asyncio.run(_register_alone())


async def _register_alone() -> None:
    cluster, lifecycle = alone()
    try:
        await lifecycle.register()
        async with asyncio.timeout(WAIT_S):
            await cluster.heard.wait()
    finally:
        await lifecycle.stop()
    assert (cluster.beats[0].broker_id, cluster.beats[0].broker_epoch) == (1, EPOCH)


def test_a_sole_node_that_was_elected_once_more_is_heard() -> None:
    """Its controller gave up over a disk that could not be read, and presumes now that its own broker beats."""

    async def test() -> None:
        cluster, lifecycle = alone()
        try:
            lifecycle.registered(EPOCH)
            await asyncio.sleep(0)
            assert not cluster.beats, "nobody waits for it"
            cluster.leaders.tell(1)
            async with asyncio.timeout(WAIT_S):
                await cluster.heard.wait()
        finally:
            await lifecycle.stop()

    asyncio.run(test())


def alone() -> tuple[Cluster, Lifecycle]:
    """A broker in the process of the sole voter."""
    settings = {
        "initial.broker.registration.timeout.ms": "60000",
        "broker.heartbeat.interval.ms": "60000",
        "broker.session.timeout.ms": "9000",
    }
    broker = Broker(1, -1, b"i" * 16, (), (), None, fenced=True)
    cluster = Cluster(broker)
    partitions: Any = SimpleNamespace(offline_directories=list, directories=[])
    quorum: Any = SimpleNamespace(is_alone=True)
    metadata: Any = cluster
    link: Any = cluster
    lifecycle = Lifecycle(asyncio.get_running_loop(), Configs(settings), partitions, quorum, metadata, link, broker)
    return cluster, lifecycle
