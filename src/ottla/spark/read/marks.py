"""Marks: the offsets that a stream has reached, in the form in which its checkpoint stores them.

    {"sales": {"0": 23, "1": 7}, "sales#mVuz7AotTv2rK0mRbvVGgg#0-1:5": {}}

Offsets have the form that Spark's own Kafka connector writes. A second key per topic has no offsets as its value. The
key itself consists of these parts, separated by `#`: the topic, its id, the leader epochs (partitions 0 to 1: epoch 5)
under which the offsets were read, and, if there are any, the partitions that the batch before this mark did not
continue but began at some offset.

Rules:
- The connector and other readers of such documents use the offsets and find none under the second key. A mark that the
  connector wrote has no ids and no epochs: then only offsets can be compared.
- Names of topics cannot contain `#`.
- A second key that cannot be parsed is ignored.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from ottla.model.ids import NO_ID, TopicPartition, uuid_bytes, uuid_text
from ottla.spark.read.offsets import Offsets, document_of, offsets_of

Document = dict[str, dict[str, int]]
# The mark for the beginning of a query: it has no offsets, and differs from the mark of a pattern that matches no
# topic.
INITIAL: Document = {"": {}}


@dataclass(frozen=True, slots=True)
class ReachedOffsets:
    """The offsets that a stream has reached, with the ids of the topics and the leader epochs."""

    offsets: Offsets = field(default_factory=dict)
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)
    epochs: Offsets = field(default_factory=dict)  # of the leaders, where they are known
    begun: Offsets = field(default_factory=dict)  # where the batch before this mark began, if not at the mark before it

    def topic_id(self, topic: str) -> bytes:
        """The id of a topic; NO_ID if it is not known."""
        return self.topic_ids.get(topic, NO_ID)

    def is_of_another(self, topic: str, topic_id: bytes) -> bool:
        """Whether the topic that has this id now is surely another one than the topic that was read under this name."""
        return NO_ID not in (topic_id, self.topic_id(topic)) and topic_id != self.topic_id(topic)


def is_initial(document: Mapping[str, Any]) -> bool:
    return "" in document


def mark_of(document: Mapping[str, Mapping[str, Any]]) -> ReachedOffsets:
    """Parse the document of a checkpoint, Ottla's or the connector's. Raises ValueError, TypeError or AttributeError if
    it is none.
    """
    mark = ReachedOffsets(offsets_of(document))
    topic_ids = {}
    for key in document:
        topic, separator, told = key.partition("#")
        parts = told.split("#")
        try:
            if separator and parts[0]:
                topic_ids[topic] = uuid_bytes(parts[0])
            for values, text in zip((mark.epochs, mark.begun), parts[1:], strict=False):
                values.update(_unpack(topic, text))
        except ValueError:
            continue
    return ReachedOffsets(mark.offsets, topic_ids, mark.epochs, mark.begun)


def document_of_mark(mark: ReachedOffsets) -> Document:
    """The document of a mark for the checkpoint."""
    document = document_of(mark.offsets)
    for topic in list(document):
        topic_id = mark.topic_id(topic)
        indexes = [int(index) for index in document[topic]]
        parts = [_pack(topic, indexes, values) for values in (mark.epochs, mark.begun)]
        told = "#".join([topic, "" if topic_id == NO_ID else uuid_text(topic_id), *parts]).rstrip("#")
        if told != topic:
            document[told] = {}
    return dict(sorted(document.items()))


def _pack(topic: str, indexes: Iterable[int], values: Mapping[TopicPartition, int]) -> str:
    """`0-3:5,4:7`: neighbouring partitions with the same value as one range."""
    known = [(index, values[TopicPartition(topic, index)]) for index in indexes if (topic, index) in values]
    runs = []
    for (_, value), group in groupby(enumerate(known), lambda each: (each[1][0] - each[0], each[1][1])):
        run = [index for _, (index, _) in group]
        runs.append(f"{run[0]}:{value}" if len(run) == 1 else f"{run[0]}-{run[-1]}:{value}")
    return ",".join(runs)


def _unpack(topic: str, text: str) -> Iterator[tuple[TopicPartition, int]]:
    for run in filter(None, text.split(",")):
        indexes, _, value = run.partition(":")
        first, _, last = indexes.partition("-")
        for index in range(int(first), int(last or first) + 1):
            yield TopicPartition(topic, index), int(value)
