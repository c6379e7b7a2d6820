"""Questions that only certain brokers can answer: the leader of a partition, or each of them.

A broker that goes while it is asked is not waited for: whoever leads after it is asked instead, and one that the
cluster has forgotten has nothing to say.
"""

from collections.abc import Callable
from typing import TypeVar

from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError, check, error_code
from ottla.model.ids import TopicPartition
from ottla.wire.message import Request, Response

R = TypeVar("R", bound=Response)


async def ask_leader(
    cluster: Cluster, partition: TopicPartition, request: Request, answer: type[R], error_of: Callable[[R], int]
) -> R:
    """One question to whoever leads now; what fails, fails at once, with the metadata marked stale."""
    node_id, _ = await cluster.leader(partition)
    reply = await cluster.ask_leader(node_id, [partition.topic], request, answer)
    if error_code(error_of(reply)).retriable:
        cluster.metadata.mark_stale(partition.topic)
        check(error_of(reply))
    return reply


async def ask_every_broker(
    cluster: Cluster, request: Request, answer: type[R], error_of: Callable[[R], int]
) -> list[R]:
    """What they say, in the order of their ids."""
    await cluster.refresh()
    found = [await _ask(cluster, node_id, request, answer, error_of) for node_id in sorted(cluster.metadata.brokers)]
    return [each for each in found if each is not None]


async def _ask(
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
        if error_code(error_of(reply)).retriable:
            check(error_of(reply))
        return reply

    return await cluster.retry(attempt, seeking=True)
