"""Lifecycle: a broker's membership in the cluster: registration, heartbeats, controlled shutdown.

A broker is fenced until it has read the metadata up to its own registration and says that it is ready; its heartbeats
keep it unfenced. In a controlled shutdown it says so and goes on until the controller has elected other leaders for its
partitions. If the controller no longer knows its registration, the broker registers again.
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
from ottla.server.quorum.controller_link import ControllerLink, error_of_whole
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.quorum.quorum import Quorum
from ottla.server.settings.configs import Configs
from ottla.server.storage.directories import cordoned
from ottla.server.storage.partitions import Partitions
from ottla.wire.messages.cluster.broker_heartbeat import BrokerHeartbeatRequest
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
    """`broker` is the registration; its epoch is the broker epoch of the last clean stop, or -1."""

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
        self.epoch = NO_BROKER_EPOCH  # the broker epoch of the current registration
        self._loop = loop
        self._configs = configs
        self._partitions = partitions
        self._quorum = quorum
        self._metadata = metadata
        self._link = link
        self._broker = broker
        self._obstacle = "no controller answers"  # why the broker is not registered yet
        self._ready = False
        self._leaving = False
        self._is_heard = False  # the controller expects heartbeats
        self._may_leave = asyncio.Event()
        self._hurry = asyncio.Event()
        self._beating: asyncio.Task[None] | None = None
        metadata.leaders.add(self._leader_changed)

    # --- joining

    async def register(self) -> None:
        """Register the broker; return when this node's own metadata contains the registration, and so everything before
        it.

        Raise ApiError if the controller does not accept it within `initial.broker.registration.timeout.ms`.
        """
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
        self._is_heard = True  # also if this node is the sole voter, and so the controller, by now
        self.beat()
        await self._metadata.until(lambda: self._registered() is not None)

    def registered(self, epoch: BrokerEpoch) -> None:
        """Take over the registration of a sole node, which has registered and unfenced itself."""
        self.epoch = epoch
        self._ready = True
        self.beat()

    async def unfence(self) -> None:
        """Declare the broker ready; return when the metadata shows it unfenced."""
        self._ready = True
        self._hurry.set()

        def unfenced() -> bool:
            broker = self._registered()
            return broker is not None and not broker.fenced

        await self._metadata.until(unfenced)

    def hurry(self) -> None:
        """Send the next heartbeat at once, because it has urgent news."""
        self._hurry.set()

    def _leader_changed(self, leader_id: int) -> None:
        """Send a heartbeat to a new controller, which has a session with every broker and expects heartbeats even from
        a broker that was the sole voter before.
        """
        if leader_id >= 0:
            self._is_heard = True
            self.hurry()

    def follow(self, changes: Iterable[Change]) -> None:
        """Send a heartbeat at once when another broker begins its controlled shutdown, because that waits until the
        remaining brokers have read the metadata; also when a new feature level allows to report more.
        """
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
                answer = await self._link.ask(request, errors=error_of_whole)
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
            # Another broker has this id, or the session of this broker's former process has not ended: try again later.
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
                # A node that always was the sole voter need not send heartbeats to itself. After the first heartbeat
                # the controller expects more, even if all other voters have left the quorum since.
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
        """Register again with the directory ids if the first registration was made before the cluster supported them
        (before 3.7); otherwise the controller could not be told of a directory that fails.
        """
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
            answer = await self._link.ask(request, errors=error_of_whole, timeout_ms=timeout_ms)
        except ClientError as error:
            log.warning("no heartbeat: %s", error)
            if request.want_shut_down:  # no controller can elect other leaders: all nodes are stopping
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
        """Do a controlled shutdown: return when other brokers lead this broker's partitions, or no other leaders can be
        found.
        """
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
        """Return whether there is another unfenced broker."""
        brokers = self._metadata.state.brokers.values()
        return any(broker.id != self._broker.id and not broker.fenced for broker in brokers)

    async def stop(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)
            self._beating = None


async def register_controller(link: ControllerLink, metadata: MetadataHost, controller: Controller) -> None:
    """Register a controller; return when this node's own metadata shows it."""
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
            answer = await link.ask(request, errors=error_of_whole)
            if answer.error_code:
                log.warning("the controller is not registered yet: %s", ErrorCode(answer.error_code).name)
        except ClientError as error:
            log.warning("the controller is not registered yet: %s", error)
        try:
            async with asyncio.timeout(limits.REGISTRATION_RETRY_MS / 1000):
                await metadata.until(registered)
        except TimeoutError:
            continue
