"""What the share consumer's tests share: groups that begin at the first record, and reading a certain number."""

from tests.client.consuming import fresh_name, topic_with
from tests.support.waiting import until_async

from ottla import Cluster
from ottla.client.admin import Admin
from ottla.client.share.consumer import ShareConsumer
from ottla.client.share.delivery import Delivery
from ottla.client.share.options import ShareOptions
from ottla.model.resources import Resource, ResourceType


async def share_group(cluster: Cluster, **settings: str) -> str:
    """A new share group that begins at the earliest record.

    A Kafka carries out changes a moment after it has acknowledged them, one lot after the other. What is created when
    something later than the settings is there belongs to the next lot, and is there when the settings are in force.
    """
    name = fresh_name()
    chosen = {"share.auto.offset.reset": "earliest"} | settings
    await Admin(cluster).configs.set(Resource(ResourceType.GROUP, name), chosen)
    for _ in range(2):
        await topic_with(cluster, 1, 1)
    return name


def sharer(cluster: Cluster | str, group_id: str, topic: str, **options: object) -> ShareConsumer:
    made = ShareConsumer(cluster, ShareOptions(group_id, fetch_max_wait_ms=200, **options))  # type: ignore[arg-type]
    made.subscribe([topic])
    return made


async def take(consumer: ShareConsumer, count: int, max_records: int | None = None) -> list[Delivery]:
    """At least so many deliveries."""
    found: list[Delivery] = []

    async def more() -> list[Delivery]:
        found.extend(await consumer.poll(max_records, timeout_ms=300))
        return found

    return await until_async(more, lambda _: len(found) >= count)


async def nothing_left(consumer: ShareConsumer) -> bool:
    return not await consumer.poll(timeout_ms=300) and not await consumer.poll(timeout_ms=300)


def numbers(deliveries: list[Delivery]) -> list[int]:
    return sorted(int(each.value or b"-1") for each in deliveries)
