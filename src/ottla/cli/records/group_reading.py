"""Print the records that a member of a group gets: `ottla consume --group` and `ottla share consume`.

Without `--follow`, both end when no record has come for a while, because a group has no end that is known beforehand.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from ottla.operations.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from ottla.client.consumer.consumer import Consumer
    from ottla.client.consumer.fetching import ConsumedRecord
    from ottla.client.share.consumer import ShareConsumer
    from ottla.client.share.options import Acknowledged

IDLE_MS = 3_000
_POLL_MS = 500


class Reading(NamedTuple):
    """Which records to read, how many, and how to show them."""

    bootstrap: str
    topic: str
    group: str
    from_beginning: bool
    follow: bool
    max_records: int | None
    show: Callable[[ConsumedRecord], bytes]


async def print_group(reading: Reading, *, read_committed: bool) -> None:
    """Read as a member of a consumer group, and commit the printed records."""
    from ottla.cli.options import client_options
    from ottla.cli.terminal.output import note
    from ottla.client.consumer.consumer import Consumer
    from ottla.client.consumer.options import ConsumerOptions

    options = ConsumerOptions(
        group_id=reading.group,
        auto_offset_reset="earliest" if reading.from_beginning else "latest",
        isolation_level="read_committed" if read_committed else "read_uncommitted",
    )
    async with Consumer(client_options(reading.bootstrap), options) as consumer:
        await consumer.cluster.topic(reading.topic)  # a member would wait without end for a missing topic
        has_committed = await _has_committed(consumer, reading)
        if not reading.from_beginning and not has_committed:
            note(f"group {reading.group} has committed nothing: it begins at the end (--from-beginning reads all)")
        if reading.from_beginning and has_committed:
            reset = f"ottla group reset-offsets {reading.group} -t {reading.topic} --to earliest --execute"
            note(f"group {reading.group} goes on from its committed offsets; `{reset}` sets them back")
        consumer.subscribe([reading.topic])

        async def poll(records_max: int) -> list[ConsumedRecord]:
            found = await consumer.poll(records_max, _POLL_MS)
            return [record for records in found.values() for record in records]

        await _print(reading, poll, lambda _: None, lambda: bool(consumer.assignment))


async def _has_committed(consumer: Consumer, reading: Reading) -> bool:
    from ottla.client.admin import Admin
    from ottla.model.errors import ApiError, ErrorCode

    try:
        committed = await Admin(consumer.cluster).groups.offsets(reading.group)
    except ApiError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return False
    return any(each.topic == reading.topic for each in committed)


async def print_share(reading: Reading, acknowledgement: str) -> None:
    """Read as a member of a share group. Records are released only at the end; otherwise they would
    be delivered again. Raise CommandError at the end if the broker refused acknowledgements.
    """
    from asyncio import CancelledError

    from ottla.cli.options import client_options
    from ottla.client.admin import Admin
    from ottla.client.cluster import Cluster
    from ottla.client.share.consumer import ShareConsumer
    from ottla.client.share.options import ShareOptions
    from ottla.model.group_settings import SHARE_AUTO_OFFSET_RESET
    from ottla.model.resources import Resource, ResourceType

    answers: list[Acknowledged] = []
    options = ShareOptions(
        reading.group,
        acknowledgement_mode="explicit",
        acquire_mode="record_limit",
        on_acknowledged=lambda answer: None if answer.error is None else answers.append(answer),
    )
    async with Cluster(client_options(reading.bootstrap)) as cluster:
        await cluster.topic(reading.topic)
        if reading.from_beginning:
            resource = Resource(ResourceType.GROUP, reading.group)
            await Admin(cluster).configs.set(resource, {SHARE_AUTO_OFFSET_RESET.name: "earliest"})
        try:
            async with ShareConsumer(cluster, options) as consumer:
                consumer.subscribe([reading.topic])
                await _print_share(reading, consumer, acknowledgement)
        except CancelledError:  # Ctrl-C: the consumer has sent what was left to acknowledge
            _raise_refused(answers, acknowledgement)
            raise
    _raise_refused(answers, acknowledgement)


def _raise_refused(refused: Sequence[Acknowledged], acknowledgement: str) -> None:
    if refused:
        count = sum(len(each.offsets) for each in refused)
        reasons = ", ".join(dict.fromkeys(f"{each.partition}: {each.error}" for each in refused))
        raise CommandError(
            f"the broker refused to {acknowledgement} {count} of the records: {reasons}",
            "the group delivers them again",
        )


async def _print_share(reading: Reading, consumer: ShareConsumer, acknowledgement: str) -> None:
    from ottla.client.share.delivery import Delivery

    def acknowledge(records: Sequence[ConsumedRecord]) -> None:
        for record in records:
            assert isinstance(record, Delivery)
            if acknowledgement == "accept":
                record.accept()
            elif acknowledgement == "reject":
                record.reject()

    async def poll(records_max: int) -> Sequence[ConsumedRecord]:
        return await consumer.poll(records_max, _POLL_MS)

    await _print(reading, poll, acknowledge, lambda: bool(consumer.assignment))


async def _print(
    reading: Reading,
    poll: Callable[[int], Awaitable[Sequence[ConsumedRecord]]],
    printed: Callable[[Sequence[ConsumedRecord]], None],
    has_partitions: Callable[[], bool],
) -> None:
    """Print until there are enough records, or until none has come for a while after the member got partitions."""
    from ottla.cli.terminal.output import err, note

    count, idle_ms = 0, 0
    while (reading.follow or idle_ms < IDLE_MS) and (left := (reading.max_records or sys.maxsize) - count) > 0:
        records = await poll(min(left, 500))
        for record in records:
            sys.stdout.buffer.write(reading.show(record))
        sys.stdout.buffer.flush()
        printed(records)
        count += len(records)
        idle_ms = 0 if records or not has_partitions() else idle_ms + _POLL_MS
    if err().is_terminal:
        note(f"{count} {'record' if count == 1 else 'records'}")
