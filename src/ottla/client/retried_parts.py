"""Operations over several parts with retries of the parts whose errors are transient: each part gets its outcome."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from ottla.client.cluster import Cluster
from ottla.client.outcomes import Outcomes

K = TypeVar("K")
V = TypeVar("V")


async def settle(
    cluster: Cluster,
    parts: Iterable[K],
    attempt: Callable[[list[K]], Awaitable[Outcomes[K, V]]],
    *,
    is_over: Callable[[Exception], bool] = lambda error: False,
) -> Outcomes[K, V]:
    """Return the outcome of every part. Parts with a transient error (unless `is_over` says that retries do not help)
    are tried again, without the others, until `api_timeout_ms` are over; calls inside an attempt have the same
    deadline.
    """

    def is_asked_again(error: Exception | None) -> bool:
        return error is not None and cluster.passes(error) and not is_over(error)

    outcomes: Outcomes[K, V] = Outcomes()
    left = list(dict.fromkeys(parts))
    tries = 0
    with cluster.patience() as over_at_s:
        while left:
            outcomes.add(await attempt(left))
            left = [part for part in left if is_asked_again(outcomes.failed.get(part))]
            tries += 1
            wait_s = cluster.options.seeking_ms(tries) / 1000
            if not left or asyncio.get_running_loop().time() + wait_s >= over_at_s:
                break
            await asyncio.sleep(wait_s)
    return outcomes
