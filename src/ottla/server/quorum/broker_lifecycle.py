"""Lifecycle: a broker's membership in the cluster: registration, heartbeats, controlled shutdown.

A broker is fenced until it has read the metadata up to its own registration and says that it is ready; its heartbeats
keep it unfenced. When it stops in order, it says so and goes on until the controller has found others to lead its
partitions. A registration that the controller no longer knows is made again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from ottla.client.errors import ClientError
from ottla.cluster.entities import Broker, BrokerChanged, Change, Controller, FeatureChanged
from ottla.cluster.features import DIRECTORIES, controllers_registered
from ottla.cluster.registration import list_endpoints, list_features
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_BROKER_EPOCH, BrokerEpoch
from ottla.model.settings.controller import (
    BROKER_HEARTBEAT_INTERVAL_MS,
    BROKER_SESSION_TIMEOUT_MS,
    INITIAL_BROKER_REGISTRATION_TIMEOUT_MS,
)
from ottla.model.settings.node import CONTROLLED_SHUTDOWN_ENABLE
from ottla.server.quorum.controller_link import ControllerLink
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.quorum.quorum import Quorum
from ottla.server.settings.configs import Configs
from ottla.server.storage.directories import cordoned
from ottla.server.storage.partitions import Partitions
from ottla.wire.messages.cluster.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.messages.cluster.broker_registration import BrokerRegistrationRequest
from ottla.wire.messages.cluster.controller_registration import ControllerRegistrationRequest

log = logging.getLogger(__name__)

_FOR_GOOD = (
    ErrorCode.INCONSISTENT_CLUSTER_ID,
    ErrorCode.INVALID_REGISTRATION,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
)


class Lifecycle:
    """`broker` is what it registers as; its epoch there is the one of the last clean stop, or -1."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        configs: Configs,
        partitions: Partitions,
        quorum: Quorum,
        metadata: MetadataHost,
        link: ControllerLink,
        broker: Broker,
    ) -> None:
        self.epoch = NO_BROKER_EPOCH  # of the present registration
        self._loop = loop
        self._configs = configs
        self._partitions = partitions
        self._quorum = quorum
        self._metadata = metadata
        self._link = link
        self._broker = broker
        self._obstacle = "no controller answers"  # why it is not registered yet
        self._ready = False
        self._leaving = False
        self._is_heard = False  # the controller expects heartbeats
        self._may_leave = asyncio.Event()
        self._hurry = asyncio.Event()
        self._beating: asyncio.Task[None] | None = None
        metadata.leaders.add(self._leader_changed)

    # --- joining

    async def register(self) -> None:
        """Returns when this node's own metadata shows the registration, and so everything before it. Raises ApiError if
        the cluster does not take it within `initial.broker.registration.timeout.ms`."""
        timeout_ms = self._configs.broker[INITIAL_BROKER_REGISTRATION_TIMEOUT_MS]
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._register()
        except TimeoutError:
            raise ApiError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"broker {self._broker.id} was not registered within {timeout_ms} ms "
                f"(initial.broker.registration.timeout.ms): {self._obstacle}",
            ) from None
        self._is_heard = True  # also by itself, should it have become the sole voter meanwhile
        self.beat()
        await self._metadata.until(lambda: self._registered() is not None)

    def registered(self, epoch: BrokerEpoch) -> None:
        """A sole node has registered itself and is unfenced."""
        self.epoch = epoch
        self._ready = True
        self.beat()

    async def unfence(self) -> None:
        """The broker is ready; returns when clients see it."""
        self._ready = True
        self._hurry.set()

        def unfenced() -> bool:
            broker = self._registered()
            return broker is not None and not broker.fenced

        await self._metadata.until(unfenced)

    def hurry(self) -> None:
        """Something is to be told that cannot wait: the next heartbeat leaves at once."""
        self._hurry.set()

    def _leader_changed(self, leader_id: int) -> None:
        """A new controller has a session with every broker and expects its heartbeats, also those of a broker that was
        the sole voter before."""
        if leader_id >= 0:
            self._is_heard = True
            self.hurry()

    def follow(self, changes: Iterable[Change]) -> None:
        """A broker that leaves waits until the others know: they say so at once. So does who has more to say than the
        cluster could know before."""
        if any(isinstance(change, FeatureChanged) or self._is_left_by(change) for change in changes):
            self.hurry()

    def _is_left_by(self, change: Change) -> bool:
        if not isinstance(change, BrokerChanged) or change.new is None:
            return False
        return change.new.in_controlled_shutdown and change.new.id != self._broker.id

    def _registered(self) -> Broker | None:
        found = self._metadata.state.brokers.get(self._broker.id)
        return found if found is not None and found.epoch == self.epoch else None

    async def _register(self) -> None:
        broker = self._broker
        previous = self.epoch if self.epoch >= 0 else broker.epoch
        request = BrokerRegistrationRequest(
            broker_id=broker.id,
            cluster_id=self._metadata.cluster_id,
            incarnation_id=broker.incarnation_id,
            listeners=list_endpoints(BrokerRegistrationRequest.Listener, broker.endpoints),
            features=list_features(BrokerRegistrationRequest.Feature, broker.features),
            rack=broker.rack,
            log_dirs=sorted(broker.directories),
            previous_broker_epoch=previous,
        )
        while True:
            try:
                answer = await self._link.ask(request)
            except ClientError as error:
                self._obstacle = str(error)
                log.warning("not registered yet: %s", error)
                continue
            if not answer.error_code:
                self.epoch = answer.broker_epoch
                log.info("registered with epoch %d", self.epoch)
                return
            code = ErrorCode(answer.error_code)
            if code in _FOR_GOOD:
                raise ApiError(code, f"the controller refuses broker {broker.id}: {code.name}")
            # Another broker with this id, or this one's former life whose session has not ended: wait for it.
            self._obstacle = f"the controller answers {code.name}"
            log.warning("not registered yet: %s", code.name)
            await asyncio.sleep(limits.REGISTRATION_RETRY_MS / 1000)

    # --- heartbeats

    def beat(self) -> None:
        if self._beating is None:
            self._beating = self._loop.create_task(self._beat())

    async def _beat(self) -> None:
        while True:
            try:
                # Whoever has always decided alone knows by itself that it lives. One that was heard once is expected to
                # be heard again, even if all other voters have left the quorum since.
                self._is_heard = self._is_heard or self._leaving or not self._quorum.is_alone
                await self._amend()
                if self._is_heard:
                    await self._beat_once()
            except Exception:
                log.exception("a heartbeat failed")
            interval_ms = self._configs.broker[BROKER_HEARTBEAT_INTERVAL_MS]
            if self._leaving:
                interval_ms = min(interval_ms, limits.LEAVING_HEARTBEAT_MS)
            elif self._ready and (registered := self._registered()) is not None and registered.fenced:
                interval_ms = min(interval_ms, limits.FENCED_HEARTBEAT_MS)
            try:
                async with asyncio.timeout(interval_ms / 1000):
                    await self._hurry.wait()
            except TimeoutError:
                continue
            finally:
                self._hurry.clear()

    async def _amend(self) -> None:
        """Whoever registered when the cluster could not know of directories (before 3.7) tells them as soon as it can;
        otherwise nobody would hear of one that fails."""
        found = self._registered()
        unknown = found is not None and not found.directories
        if unknown and self._metadata.state.metadata_version >= DIRECTORIES:
            await self._register()

    async def _beat_once(self) -> None:
        session_ms = self._configs.broker[BROKER_SESSION_TIMEOUT_MS]
        request = BrokerHeartbeatRequest(
            broker_id=self._broker.id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._metadata.end_offset - 1,
            want_fence=not self._ready,
            want_shut_down=self._leaving,
            offline_log_dirs=self._partitions.offline_directories(),
            cordoned_log_dirs=cordoned(self._partitions.directories, self._configs.broker),
        )
        timeout_ms = min(session_ms, limits.LEAVING_ANSWER_MS) if self._leaving else session_ms
        try:
            answer: BrokerHeartbeatResponse = await self._link.ask(request, timeout_ms=timeout_ms)
        except ClientError as error:
            log.warning("no heartbeat: %s", error)
            if request.want_shut_down:  # nobody is there to find other leaders: they are stopping, too
                self._may_leave.set()
            return
        if answer.error_code in (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED):
            if self._leaving:
                self._may_leave.set()
                return
            log.warning("the controller knows another registration of this broker: registering anew")
            await self._register()
            self._hurry.set()
        elif answer.error_code:
            log.warning("the controller refused a heartbeat: %s", ErrorCode(answer.error_code).name)
        elif answer.should_shut_down:
            self._may_leave.set()

    # --- leaving

    async def leave(self) -> None:
        """Controlled shutdown: returns when others lead what this broker led, or nobody can be found to."""
        enabled = self._configs.broker[CONTROLLED_SHUTDOWN_ENABLE]
        if not (enabled and self._beating is not None and self._ready and self._others()):
            await self.stop()
            return
        self._leaving = True
        self._hurry.set()
        try:
            async with asyncio.timeout(limits.CONTROLLED_SHUTDOWN_MS / 1000):
                await self._may_leave.wait()
        except TimeoutError:
            log.warning("the controller found no other leaders in time: stopping all the same")
        await self.stop()

    def _others(self) -> bool:
        """Whether there is another broker to lead anything."""
        brokers = self._metadata.state.brokers.values()
        return any(broker.id != self._broker.id and not broker.fenced for broker in brokers)

    async def stop(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)
            self._beating = None


async def register_controller(link: ControllerLink, metadata: MetadataHost, controller: Controller) -> None:
    """Makes a controller known to the cluster; returns when this node's own metadata shows it."""
    request = ControllerRegistrationRequest(
        controller_id=controller.id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=controller.zk_migration_ready,
        listeners=list_endpoints(ControllerRegistrationRequest.Listener, controller.endpoints),
        features=list_features(ControllerRegistrationRequest.Feature, controller.features),
    )

    def registered() -> bool:
        found = metadata.state.controllers.get(controller.id)
        return found is not None and found.incarnation_id == controller.incarnation_id

    def registrable() -> bool:
        return controllers_registered(metadata.state.metadata_version)

    while not registered():
        await metadata.until(registrable)
        try:
            answer = await link.ask(request)
            if answer.error_code:
                log.warning("the controller is not registered yet: %s", ErrorCode(answer.error_code).name)
        except ClientError as error:
            log.warning("the controller is not registered yet: %s", error)
        try:
            async with asyncio.timeout(limits.REGISTRATION_RETRY_MS / 1000):
                await metadata.until(registered)
        except TimeoutError:
            continue
