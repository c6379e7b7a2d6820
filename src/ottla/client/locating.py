"""Where a consumer begins: positions of places that have none, by a seek, by the group's commits, or by the options."""

from collections.abc import Sequence

from ottla.client.cluster import Cluster
from ottla.client.commits import GroupOffsets
from ottla.client.consumer_options import ConsumerOptions
from ottla.client.errors import NoOffset
from ottla.client.offsets import Time, resolve
from ottla.client.places import Place
from ottla.model.ids import TopicPartition


async def locate(
    cluster: Cluster, options: ConsumerOptions, group: GroupOffsets | None, places: Sequence[Place]
) -> None:
    """Give places a position: where a seek wants it, where the group left off, or as the options say."""
    unknown = [place for place in places if place.wanted is None]
    if group is not None and unknown:
        committed = await group.fetch([place.partition for place in unknown])
        for place in unknown:
            found = committed.get(place.partition)
            if found is not None and place.position is None and place.wanted is None:
                place.move(found.offset, found.leader_epoch)
                place.committed = found.offset
    times: dict[TopicPartition, Time] = {}
    for place in places:
        if place.position is None:
            time = place.wanted or options.reset
            if time is None:
                raise NoOffset(place.partition)
            times[place.partition] = time
    offsets = await resolve(cluster, times.items(), read_committed=options.read_committed)
    for place in places:
        partition = place.partition
        # Unless the caller went elsewhere meanwhile.
        if place.position is None and (place.wanted or options.reset) == times.get(partition):
            place.move(offsets[partition])
