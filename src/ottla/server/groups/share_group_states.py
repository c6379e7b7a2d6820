"""ShareGroupStates: requests of share groups to the share coordinators: to initialize and delete the state of
partitions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from itertools import islice

from ottla.groups.share.state_partitions import (
    BeginDeletingGroup,
    InitializeShares,
    PartitionsById,
    SharesInitialized,
    SharesNotInitialized,
)
from ottla.groups.view import GroupsView
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.server.coordination.host import Host
from ottla.server.coordination.hosts import Coordinators
from ottla.server.loop.later import Later, gather
from ottla.server.loop.runtime import Runtime
from ottla.server.shares.share_states import StateCommand
from ottla.server.shares.shares import Shares
from ottla.shares.state.batches import NO_OFFSET
from ottla.shares.state.commands import DeleteState, InitializeState

log = logging.getLogger(__name__)

Named = tuple[bytes, int]  # (topic id, partition)
Outcomes = dict[Named, ApiError | None]


class ShareGroupStates:
    def __init__(self, runtime: Runtime, groups: Coordinators[GroupsView], shares: Shares) -> None:
        self._loop = runtime.loop
        self._slices = runtime.slices
        self._groups = groups
        self._shares = shares.coordinators
        self._states = shares.states

    def initialize_soon(self, effect: InitializeShares, _: Host[GroupsView]) -> None:
        """Carry out the effect in a new turn of the loop, so that the reply to its command does not wait for it."""
        self._loop.call_soon(self._initialize, effect)

    def _initialize(self, effect: InitializeShares) -> None:
        offsets = {topic_id: dict.fromkeys(each, NO_OFFSET) for topic_id, each in effect.partitions.items()}

        def settled(outcomes: Outcomes) -> None:
            errors = [error for error in outcomes.values() if error is not None]
            if errors:
                log.warning("the state of share group %s could not be initialized: %s", effect.group_id, errors[0])
            command = SharesNotInitialized if errors else SharesInitialized
            self._groups.submit(effect.group_id, command(effect.group_id, effect.partitions))

        def failed() -> None:
            self._groups.submit(effect.group_id, SharesNotInitialized(effect.group_id, effect.partitions))

        self.initialize(effect.group_id, effect.state_epoch, offsets).then(settled, failed)

    def initialize(
        self, group_id: str, state_epoch: int, offsets: Mapping[bytes, Mapping[int, int]]
    ) -> Later[Outcomes]:
        """Initialize the state of share partitions at these offsets (NO_OFFSET: where the group's settings say)."""
        starts = {
            (topic_id, index): start for topic_id, each in offsets.items() for index, start in sorted(each.items())
        }
        return self._each(
            starts, lambda named: InitializeState(group_id, named[0], named[1], state_epoch, starts[named])
        )

    def delete(self, group_id: str, partitions: PartitionsById) -> Later[Outcomes]:
        """Delete the state of share partitions."""
        named = {(topic_id, index): None for topic_id, each in partitions.items() for index in sorted(each)}
        return self._each(named, lambda one: DeleteState(group_id, *one))

    async def delete_all(self, group_id: str) -> None:
        """Delete all state of a share group that is about to be deleted; other kinds of groups have none. Raises
        ApiError.
        """
        partitions = await self._groups.submit(group_id, BeginDeletingGroup(group_id))
        if isinstance(partitions, ApiError):
            raise partitions
        for error in (await self.delete(group_id, partitions)).values():
            if error is not None:
                raise error

    def _each(self, named: Mapping[Named, object], command: Callable[[Named], StateCommand[None]]) -> Later[Outcomes]:
        """Submit one command per partition, in slices, and return their answers."""
        outcomes: Later[Outcomes] = Later()
        asked: list[Later[ApiError | None]] = []
        left = iter(named)

        def ready(error: ApiError | None) -> None:
            if error is not None:
                outcomes.set(dict.fromkeys(named, error))
                return
            submit_some()

        def submit_some() -> None:
            asked.extend(self._states.submit(command(one)) for one in islice(left, limits.ITEMS_PER_SLICE))
            if len(asked) < len(named):
                self._slices.soon(submit_some)
            else:
                gather(asked).then(lambda values: outcomes.set(dict(zip(named, values, strict=True))), outcomes.fail)

        if named:
            self._shares.ensure_topic().then(ready, outcomes.fail)
        else:
            outcomes.set({})
        return outcomes
