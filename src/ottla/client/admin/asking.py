"""Questions that only certain brokers can answer: the leaders of partitions, or each of them; and what they say of each
part.

A broker that goes while it is asked is not waited for: whoever leads after it is asked instead, and one that the
cluster has forgotten has nothing to say.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from ottla.client.cluster import Absent, Cluster
from ottla.client.errors import ClientError, check, error_code
from ottla.client.metadata import TopicInfo
from ottla.client.outcomes import Outcomes, outcomes_of
from ottla.client.settling import settle
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.message import Request, Response

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R", bound=Response)


def told(parts: Iterable[K], answers: Iterable[tuple[K, V, int, str | None]]) -> Outcomes[K, V]:
    """The outcome of every part, from what an answer says: (part, value, error code, message). A part that the answer
    does not name has failed."""
    silence = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "the broker's answer does not name it")
    outcomes: Outcomes[K, V] = Outcomes(failed=dict.fromkeys(parts, silence))
    for part, value, code, message in answers:
        if code:
            outcomes.failed[part] = ApiError(error_code(code), message)
        else:
            outcomes.failed.pop(part, None)
            outcomes.found[part] = value
    return outcomes


async def one_by_one(parts: Iterable[K], work: Callable[[K], Awaitable[V]]) -> Outcomes[K, V]:
    """The outcomes of work that has to be done for each part by itself; some at a time."""
    parts = list(dict.fromkeys(parts))
    outcomes: Outcomes[K, V] = Outcomes()
    for first in range(0, len(parts), limits.CLIENT_CALLS_AT_ONCE):
        some = parts[first : first + limits.CLIENT_CALLS_AT_ONCE]
        outcomes.add(await outcomes_of({part: work(part) for part in some}))
    return outcomes


# --- leaders


async def ask_leaders(
    cluster: Cluster,
    partitions: Iterable[TopicPartition],
    ask: Callable[[int, list[TopicPartition]], Awaitable[Outcomes[TopicPartition, V]]],
) -> Outcomes[TopicPartition, V]:
    """Ask the leaders of partitions, all at the same time; what passes is asked again. `ask` gets a broker and those of
    the partitions that it leads."""

    async def attempt(left: list[TopicPartition]) -> Outcomes[TopicPartition, V]:
        by_leader, failed = await _leaders(cluster, left)
        outcomes: Outcomes[TopicPartition, V] = Outcomes(failed=failed)
        asked = [_ask(ask, node_id, led) for node_id, led in by_leader.items()]
        for answered in await asyncio.gather(*asked):
            outcomes.add(answered)
        for partition, error in outcomes.failed.items():
            if cluster.passes(error):
                cluster.metadata.mark_stale(partition.topic)
        return outcomes

    return await settle(cluster, partitions, attempt)


async def _leaders(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> tuple[dict[int, list[TopicPartition]], dict[TopicPartition, Exception]]:
    """The partitions by their leaders, and the failure of those without one. One that does not exist is not waited
    for."""
    wanted: dict[str, list[int]] = {}
    for name, index in partitions:
        wanted.setdefault(name, []).append(index)
    topics = await outcomes_of({name: _topic(cluster, name, indexes) for name, indexes in wanted.items()})
    by_leader: dict[int, list[TopicPartition]] = {}
    failed: dict[TopicPartition, Exception] = {}
    for partition in (TopicPartition(name, index) for name, indexes in wanted.items() for index in indexes):
        topic = topics.found.get(partition.topic)
        try:
            if topic is None:
                raise topics.failed[partition.topic]
            by_leader.setdefault(topic.leader(partition.partition)[0], []).append(partition)
        except ApiError as error:
            absent = topic is not None and topic.partition(partition.partition) is None
            failed[partition] = Absent(error.code, error.message) if absent else error
        except ClientError as lost:
            failed[partition] = lost
    return by_leader, failed


async def _topic(cluster: Cluster, name: str, indexes: Iterable[int]) -> TopicInfo:
    topic = await cluster.topic(name)
    if any(topic.partition(each) is None for each in indexes):
        cluster.metadata.mark_stale(name)  # it may have been added a moment ago
        topic = await cluster.topic(name)
    return topic


async def _ask(
    ask: Callable[[int, list[TopicPartition]], Awaitable[Outcomes[TopicPartition, V]]],
    node_id: int,
    partitions: list[TopicPartition],
) -> Outcomes[TopicPartition, V]:
    try:
        return await ask(node_id, partitions)
    except (ApiError, ClientError) as error:
        return Outcomes(failed=dict.fromkeys(partitions, error))


# --- every broker


async def ask_every_broker(
    cluster: Cluster, request: Request, answer: type[R], error_of: Callable[[R], int]
) -> Outcomes[int, R]:
    """What each of them says, in the order of their ids."""
    await cluster.refresh()
    asked = {each: _ask_broker(cluster, each, request, answer, error_of) for each in sorted(cluster.metadata.brokers)}
    outcomes = await outcomes_of(asked)
    return Outcomes({node_id: reply for node_id, reply in outcomes.found.items() if reply is not None}, outcomes.failed)


async def _ask_broker(
    cluster: Cluster, node_id: int, request: Request, answer: type[R], error_of: Callable[[R], int]
) -> R | None:
    async def attempt() -> R | None:
        try:
            reply = await (await cluster.connection(node_id)).request(request, answer)
        except ClientError:
            await cluster.refresh()
            if node_id not in cluster.metadata.brokers:
                return None
            raise
        check(error_of(reply))
        return reply

    return await cluster.retry(attempt, seeking=True)
