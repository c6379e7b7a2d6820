"""ProducerIds: unique producer ids, from blocks that the controller allocates to this broker.

On a sole voter a block is available at once. Other brokers fetch the next block while half of the last one is left, so
that requests hardly ever wait.
"""

from __future__ import annotations

from ottla.client.errors import ClientError, error_code
from ottla.cluster.commands.allocate_producer_ids import AllocateProducerIds, ProducerIdBlock
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import ProducerId
from ottla.server.loop.later import Later
from ottla.server.loop.tasks import Tasks
from ottla.server.quorum.active_controller import ActiveController
from ottla.server.quorum.controller_link import ControllerLink, error_of_whole
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.quorum.quorum import Quorum
from ottla.wire.messages.cluster.allocate_producer_ids import AllocateProducerIdsRequest

_PASSING = (
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.STALE_BROKER_EPOCH,
    ErrorCode.BROKER_ID_NOT_REGISTERED,
    ErrorCode.REQUEST_TIMED_OUT,
)


class ProducerIds:
    def __init__(
        self, tasks: Tasks, quorum: Quorum, metadata: MetadataHost, controller: ActiveController, link: ControllerLink
    ) -> None:
        self._tasks = tasks
        self._quorum = quorum
        self._metadata = metadata
        self._controller = controller
        self._link = link
        self._now = ProducerIdBlock(0, 0)
        self._next = ProducerIdBlock(0, 0)
        self._fetching = False
        self._waiting: list[Later[ApiError | None]] = []

    def next_producer_id(self) -> ProducerId:
        """Return the next id. Raise COORDINATOR_LOAD_IN_PROGRESS if there is none at the moment and a block is being
        fetched.
        """
        if self._now.size == 0:
            self._now, self._next = self._next, ProducerIdBlock(0, 0)
        if self._now.size <= limits.PRODUCER_ID_BLOCK_SIZE // 2 and self._next.size == 0:
            self._refill()
        if self._now.size == 0:
            self._now, self._next = self._next, ProducerIdBlock(0, 0)
        first, size = self._now
        if size == 0:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the next producer ids are being fetched")
        self._now = ProducerIdBlock(first + 1, size - 1)
        return ProducerId(first)

    def ready(self) -> Later[ApiError | None]:
        """Return a `Later` that is set to None when an id is available, or to the error if there is none."""
        later: Later[ApiError | None] = Later()
        if self._now.size or self._next.size:
            later.set(None)
        else:
            self._waiting.append(later)
            self._refill()
        return later

    def _refill(self) -> None:
        if self._fetching:
            return
        self._fetching = True
        broker = self._metadata.state.brokers.get(self._metadata.node_id)
        if broker is None:
            self._settle(ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED))
        elif self._controller.active:
            # A sole node needs no second block: it would only lose more unused ids with every stop.
            if self._now.size and self._quorum.is_alone:
                self._fetching = False
                return
            self._controller.submit(AllocateProducerIds(broker.id, broker.epoch)).then(
                self._settle, lambda: self._settle(ApiError(ErrorCode.UNKNOWN_SERVER_ERROR))
            )
        else:
            self._tasks.spawn(self._fetch(AllocateProducerIdsRequest(broker_id=broker.id, broker_epoch=broker.epoch)))

    async def _fetch(self, request: AllocateProducerIdsRequest) -> None:
        try:
            answer = await self._link.ask(request, errors=error_of_whole)
        except ClientError as error:
            self._settle(ApiError(ErrorCode.REQUEST_TIMED_OUT, str(error)))
            return
        if answer.error_code:
            self._settle(ApiError(error_code(answer.error_code)))
        else:
            self._settle(ProducerIdBlock(answer.producer_id_start, answer.producer_id_len))

    def _settle(self, reply: ProducerIdBlock | ApiError) -> None:
        self._fetching = False
        problem = None
        if isinstance(reply, ApiError):
            problem = _told(reply)
        else:
            self._next = reply
        waiting, self._waiting = self._waiting, []
        for later in waiting:
            later.set(problem)


def _told(error: ApiError) -> ApiError:
    """Return the error for a producer: errors between this broker and the controllers become a retriable one, since a
    producer would give up on the original.
    """
    return ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, error.text) if error.code in _PASSING else error
