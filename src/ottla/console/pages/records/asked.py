"""What the query of a page about records asks for: which partitions, from where, how many, read in which formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.client.consumer.offsets import LATEST, NOT_FOUND, PartitionBounds, Time
from ottla.client.metadata import TopicInfo
from ottla.console.call import PageCall
from ottla.console.html import Markup
from ottla.console.pages.records.places import place_of
from ottla.console.pages.topics.frame import is_offline
from ottla.console.parts.forms import check_box, choice, field
from ottla.console.refusals import WrongInput
from ottla.console.times import time_of
from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.operations.records.contents import ContentFormat, RecordReader
from ottla.operations.records.reading import Place

FORMATS = (
    (ContentFormat.auto.value, "guess"),
    (ContentFormat.registry.value, "by the registry's schemas"),
    (ContentFormat.json.value, "JSON"),
    (ContentFormat.msgpack.value, "MessagePack"),
    (ContentFormat.text.value, "text"),
    (ContentFormat.number.value, "number (4 or 8 bytes)"),
    (ContentFormat.hex.value, "hex"),
)


@dataclass(frozen=True, slots=True)
class AskedPartitions:
    """The partitions that are read: their bounds, and why others are left out."""

    bounds: Mapping[int, PartitionBounds]
    problems: Mapping[int, str]


async def asked_partitions(call: PageCall, topic: TopicInfo) -> AskedPartitions:
    """Look up the partitions that are asked for, one or all. Raises WrongInput if there is no such partition."""
    indexes = [each.index for each in topic.partitions]
    wanted = call.query.get("partition", "").strip()
    if wanted:
        index = call.number("partition", most=limits.INT32_MAX)
        if index not in indexes:
            raise WrongInput(f"topic {topic.name} has no partition {index}")
        indexes = [index]
    elif len(indexes) > limits.CONSOLE_BROWSED_PARTITIONS_MAX:
        indexes = indexes[:1]
    offline = {each.index for each in topic.partitions if is_offline(each)}
    asked = [TopicPartition(topic.name, index) for index in indexes if index not in offline]
    found = await call.admin.topics.bounds_each(asked)
    bounds = {at.partition: each for at, each in found.found.items()}
    problems = {at.partition: str(error) for at, error in found.failed.items()}
    if is_committed(call):
        stable = await call.admin.topics.offsets_each(dict.fromkeys(asked, LATEST), read_committed=True)
        for at, answer in stable.found.items():
            if at.partition in bounds:
                start, end = bounds[at.partition]
                bounds[at.partition] = PartitionBounds(start, max(start, min(end, answer.offset)))
    problems |= {index: "it has no leader" for index in indexes if index in offline}
    return AskedPartitions(bounds, problems)


async def asked_place(call: PageCall, topic: str, bounds: Mapping[int, PartitionBounds]) -> tuple[Place, bool]:
    """Where to begin, and whether to read on from there forwards."""
    if "place" in call.query:
        return place_of(call.query["place"]), call.query.get("go") == "later"
    start = call.query.get("start", "newest")
    match start:
        case "newest":
            return {index: each.end for index, each in bounds.items()}, False
        case "oldest":
            return {index: each.start for index, each in bounds.items()}, True
        case "offset":
            offset = call.number("from")
            return dict.fromkeys(bounds, offset), True
        case "time":
            return await place_at(call, topic, bounds, time_of(call.text("from"))), True
    raise WrongInput(f"records are read from the newest, the oldest, an offset or a time, not from {start[:40]!r}")


async def place_at(call: PageCall, topic: str, bounds: Mapping[int, PartitionBounds], time_ms: int) -> Place:
    """The first records since a time; the end where there are none."""
    answers = await call.admin.topics.offsets(topic, Time(time_ms), bounds)
    return {index: bounds[index].end if each.offset == NOT_FOUND else each.offset for index, each in answers.items()}


def is_committed(call: PageCall) -> bool:
    return call.query.get("committed") == "on"


def reader_of(call: PageCall) -> RecordReader:
    """The reader for the formats that are asked for."""
    return RecordReader(call.access.registry, _format(call, "key"), _format(call, "value"))


def partition_field(call: PageCall, topic: TopicInfo) -> Markup:
    """The choice between one partition and all."""
    count = topic.partition_count
    if count > limits.CONSOLE_BROWSED_PARTITIONS_MAX:
        hint = f"one of {count:,}; more than {limits.CONSOLE_BROWSED_PARTITIONS_MAX} are not read together"
        return field("partition", "Partition", call.query.get("partition", "0"), hint=hint)
    options = [("", "all"), *((str(each.index), str(each.index)) for each in topic.partitions)]
    return choice("partition", "Partition", options, call.query.get("partition", ""))


def format_fields(call: PageCall) -> tuple[Markup, ...]:
    """The choice of formats, and whether records of open and aborted transactions are left out."""
    return (
        choice("key", "Keys are", FORMATS, call.query.get("key", "")),
        choice("value", "Values are", FORMATS, call.query.get("value", "")),
        check_box("committed", "Only committed records", is_checked=is_committed(call)),
    )


def kept_query(call: PageCall) -> dict[str, str | None]:
    """The words of the query that say how records are read, for addresses of other pages about them."""
    return {name: call.query.get(name) or None for name in ("key", "value", "committed")}


def _format(call: PageCall, name: str) -> ContentFormat:
    given = call.query.get(name) or ContentFormat.auto.value
    try:
        return ContentFormat(given)
    except ValueError:
        raise WrongInput(f"there is no format {given[:40]!r}") from None
