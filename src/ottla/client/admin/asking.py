"""Requests that only certain brokers can answer (the leaders of partitions, the coordinator of a group, or every
broker), with an outcome per part.

A broker that fails while a request waits for its answer is not waited for: the new leader is asked instead. A broker
that is no longer registered in the cluster has no entry in the result.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import TypeVar

from ottla.client import leaders
from ottla.client.checks import checked_partitions
from ottla.client.cluster import Cluster
from ottla.client.coordinator import CoordinatorKind, call_once
from ottla.client.errors import ClientError, check
from ottla.client.metadata import NoPartition
from ottla.client.outcomes import Outcomes, outcomes_of, told_by
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.model.ids import LeaderEpoch, TopicPartition
from ottla.wire.message import Request, Response

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R", bound=Response)


async def one_by_one(parts: Iterable[K], work: Callable[[K], Awaitable[V]]) -> Outcomes[K, V]:
    """Do the work for each part by itself, some parts at a time, and return the outcome of each."""
    parts = list(dict.fromkeys(parts))
    outcomes: Outcomes[K, V] = Outcomes()
    for first in range(0, len(parts), limits.CLIENT_CALLS_AT_ONCE):
        some = parts[first : first + limits.CLIENT_CALLS_AT_ONCE]
        outcomes.add(await outcomes_of({part: work(part) for part in some}))
    return outcomes


async def ask_leaders(
    cluster: Cluster, partitions: Iterable[TopicPartition], ask: leaders.Ask[V]
) -> Outcomes[TopicPartition, V]:
    """Ask the leaders of partitions as `client.leaders` does, but do not wait for a partition that does not exist."""
    partitions = checked_partitions(partitions)
    for name, index in partitions:
        known = cluster.metadata.topics.get(name)
        if known is not None and known.partition(index) is None:
            cluster.metadata.mark_stale(name)  # the partition may have been added a moment ago

    async def guarded(node_id: int, led: Mapping[TopicPartition, LeaderEpoch]) -> Outcomes[TopicPartition, V]:
        try:
            outcomes = await ask(node_id, led)
        except (ApiError, ClientError) as error:
            outcomes = Outcomes(failed=dict.fromkeys(led, error))
        for partition, failure in outcomes.failed.items():
            if cluster.passes(failure):
                cluster.metadata.mark_stale(partition.topic)
        return outcomes

    return await leaders.ask_leaders(cluster, partitions, guarded, is_over=lambda error: isinstance(error, NoPartition))


async def ask_coordinator(
    cluster: Cluster,
    group_id: str,
    request: Request[R],
    parts: Collection[K],
    error_of: Callable[[R], tuple[int, str | None]],
    read: Callable[[R], Iterable[tuple[K, int, str | None]]],
) -> Outcomes[K, None]:
    """Ask a group's coordinator for changes of several parts; `error_of` returns the error of the whole answer with its
    message, `read` those of the parts.
    """
    asking = call_once(cluster, group_id, CoordinatorKind.GROUP, request, lambda answer: error_of(answer)[0])

    def checked(answer: R) -> list[tuple[K, None, int, str | None]]:
        check(*error_of(answer))
        return [(part, None, code, message) for part, code, message in read(answer)]

    return await told_by(asking, parts, checked)


async def ask_every_broker(cluster: Cluster, request: Request[R], error_of: Callable[[R], int]) -> Outcomes[int, R]:
    """Send the request to every broker and return their answers in the order of the broker ids."""
    await cluster.refresh()
    asked = {each: _ask_broker(cluster, each, request, error_of) for each in sorted(cluster.metadata.brokers)}
    outcomes = await outcomes_of(asked)
    return Outcomes({node_id: reply for node_id, reply in outcomes.found.items() if reply is not None}, outcomes.failed)


async def _ask_broker(cluster: Cluster, node_id: int, request: Request[R], error_of: Callable[[R], int]) -> R | None:
    async def attempt() -> R | None:
        try:
            reply = await (await cluster.connection(node_id)).request(request)
        except ClientError:
            await cluster.refresh()
            if node_id not in cluster.metadata.brokers:
                return None
            raise
        check(error_of(reply))
        return reply

    return await cluster.retry(attempt, seeking=True)
