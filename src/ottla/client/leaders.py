"""Requests to the leaders of partitions: one request per leader with all its partitions, all in parallel.

One Metadata request asks for all topics whose leaders are not known.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from typing import TypeVar

from ottla.client.cluster import Absent, Cluster
from ottla.client.errors import ClientError, error_code
from ottla.client.metadata import NoPartition
from ottla.client.outcomes import Outcomes, told_by
from ottla.client.retried_parts import settle
from ottla.model.errors import ApiError
from ottla.model.ids import LeaderEpoch, TopicPartition
from ottla.wire.message import Request, Response

V = TypeVar("V")
R = TypeVar("R", bound=Response)
# Sends a request to one leader: takes its node id, and its partitions with their leader epochs.
Ask = Callable[[int, Mapping[TopicPartition, LeaderEpoch]], Awaitable[Outcomes[TopicPartition, V]]]


async def ask_leaders(
    cluster: Cluster,
    partitions: Iterable[TopicPartition],
    ask: Ask[V],
    *,
    is_over: Callable[[Exception], bool] = lambda error: False,
) -> Outcomes[TopicPartition, V]:
    """Return the outcome of each partition; transient errors are retried, unless `is_over` says that retries do not
    help.
    """

    async def attempt(wanted: list[TopicPartition]) -> Outcomes[TopicPartition, V]:
        return await _ask_once(cluster, wanted, ask)

    return await settle(cluster, partitions, attempt, is_over=is_over)


async def _ask_once(cluster: Cluster, partitions: Iterable[TopicPartition], ask: Ask[V]) -> Outcomes[TopicPartition, V]:
    topics = await cluster.topics(dict.fromkeys(each.topic for each in partitions))
    smaller = dict.fromkeys(
        name for name, index in partitions if name in topics.found and topics.found[name].partition(index) is None
    )
    for name in smaller:  # a partition may have been added since the metadata was fetched
        cluster.metadata.mark_stale(name)
    topics.add(await cluster.topics(smaller))
    outcomes: Outcomes[TopicPartition, V] = Outcomes()
    by_leader: dict[int, dict[TopicPartition, LeaderEpoch]] = {}
    for partition in partitions:
        info = topics.found.get(partition.topic)
        try:
            if info is None:
                raise topics.failed[partition.topic]
            node_id, epoch = info.leader(partition.partition)
        except NoPartition as error:
            is_new = cluster.metadata.is_new(partition.topic, asyncio.get_running_loop().time())
            outcomes.failed[partition] = error if is_new else Absent(error.code, error.message)
        except (ApiError, ClientError) as error:
            if info is not None:
                cluster.metadata.mark_stale(partition.topic)
            outcomes.failed[partition] = error
        else:
            by_leader.setdefault(node_id, {})[partition] = epoch
    for answered in await asyncio.gather(*(ask(node_id, epochs) for node_id, epochs in by_leader.items())):
        outcomes.add(answered)
    return outcomes


async def ask_one(
    cluster: Cluster,
    node_id: int,
    partitions: Collection[TopicPartition],
    request: Request[R],
    read: Callable[[R], Iterable[tuple[TopicPartition, V, int]]],
) -> Outcomes[TopicPartition, V]:
    """Send one request to the leader of all these partitions; `read` finds (partition, value, error code) in its
    answer. A retriable error marks the topic's metadata as stale: its leaders may have changed.
    """

    def heard(reply: R) -> Iterator[tuple[TopicPartition, V, int, None]]:
        for partition, value, code in read(reply):
            if partition in partitions:
                if error_code(code).retriable:
                    cluster.metadata.mark_stale(partition.topic)
                yield partition, value, code, None

    asking = cluster.ask_leader(node_id, dict.fromkeys(each.topic for each in partitions), request)
    return await told_by(asking, partitions, heard, f"broker {node_id} gave no answer for this partition")
