"""What share groups ask of the share coordinators: to begin, to tell and to delete the state of their partitions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from ottla.groups.machine import GroupsMachine
from ottla.groups.share.state_partitions import (
    BeginDeletingGroup,
    InitializeShares,
    SharesInitialized,
    SharesNotInitialized,
    Wanted,
)
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.server.coordination.host import Host
from ottla.server.coordination.hosts import Coordinators
from ottla.server.loop.later import Later, gather
from ottla.shares.state.batches import NO_OFFSET
from ottla.shares.state.commands import DeleteState, InitializeState

if TYPE_CHECKING:
    from ottla.server.api.context import Services

log = logging.getLogger(__name__)

Named = tuple[bytes, int]  # a topic's id and a partition
Outcomes = dict[Named, ApiError | None]


def perform_effects(services: Services, groups: Coordinators[GroupsMachine]) -> None:
    """Carries out the effects of share groups; in a new turn of the loop, so that replies need not wait for it."""

    def initialize_soon(effect: InitializeShares, _: Host[GroupsMachine]) -> None:
        groups.loop.call_soon(_initialize, services, effect)

    groups.on_effect(InitializeShares, initialize_soon)


def _initialize(services: Services, effect: InitializeShares) -> None:
    offsets = {topic_id: dict.fromkeys(each, NO_OFFSET) for topic_id, each in effect.partitions.items()}

    def settled(outcomes: Outcomes) -> None:
        errors = [error for error in outcomes.values() if error is not None]
        if errors:
            log.warning("the state of share group %s could not be initialised: %s", effect.group_id, errors[0])
        command = SharesNotInitialized if errors else SharesInitialized
        services.groups.submit(effect.group_id, command(effect.group_id, effect.partitions))

    initialize(services, effect.group_id, effect.state_epoch, offsets).then(settled)


def initialize(
    services: Services, group_id: str, state_epoch: int, offsets: Mapping[bytes, Mapping[int, int]]
) -> Later[Outcomes]:
    """Begins the state of share partitions at these offsets (NO_OFFSET: where the group's settings say)."""
    starts = {(topic_id, index): start for topic_id, each in offsets.items() for index, start in sorted(each.items())}
    return _each(
        services,
        starts,
        lambda named: InitializeState(group_id, named[0], named[1], state_epoch, starts[named]),
    )


def delete(services: Services, group_id: str, partitions: Wanted) -> Later[Outcomes]:
    """Deletes the state of share partitions."""
    named = {(topic_id, index): None for topic_id, each in partitions.items() for index in sorted(each)}
    return _each(services, named, lambda one: DeleteState(group_id, *one))


async def delete_group_state(services: Services, group_id: str) -> None:
    """Deletes all state of a share group that is about to be deleted; other groups have none. Raises ApiError."""
    partitions = await services.groups.submit(group_id, BeginDeletingGroup(group_id))
    if isinstance(partitions, ApiError):
        raise partitions
    for error in (await delete(services, group_id, partitions)).values():
        if error is not None:
            raise error


def _each(services: Services, named: Mapping[Named, Any], command: Callable[[Named], Any]) -> Later[Outcomes]:
    """The answers to one command each, submitted in slices."""
    outcomes: Later[Outcomes] = Later()
    asked: list[Later[Any]] = []
    left = iter(named)

    def ready(error: ApiError | None) -> None:
        if error is not None:
            outcomes.set(dict.fromkeys(named, error))
            return
        submit_some()

    def submit_some() -> None:
        asked.extend(services.share_states.submit(command(one)) for one in islice(left, limits.ITEMS_PER_SLICE))
        if len(asked) < len(named):
            services.slices.soon(submit_some)
        else:
            gather(asked).then(lambda values: outcomes.set(dict(zip(named, values, strict=True))))

    if named:
        services.shares.ensure_topic().then(ready)
    else:
        outcomes.set({})
    return outcomes
