"""Marks in checkpoints: what we write, what the connector writes, and what others make of either."""

import json

from hypothesis import given
from hypothesis import strategies as st

from ottla.model.ids import NO_ID, TopicPartition
from ottla.spark.read.marks import INITIAL, ReachedOffsets, document_of_mark, is_initial, mark_of
from ottla.spark.read.offsets import offsets_of

PARTITIONS = st.builds(TopicPartition, st.sampled_from(["a", "a.b", "b-1", "b_1"]), st.integers(0, 12))
SOME = st.dictionaries(PARTITIONS, st.integers(0, 3))
ID = bytes(range(16))


@given(
    st.dictionaries(PARTITIONS, st.integers(0, 2**62)), SOME, SOME, st.dictionaries(st.sampled_from("a"), st.just(ID))
)
def test_marks_survive_a_checkpoint(
    offsets: dict[TopicPartition, int],
    epochs: dict[TopicPartition, int],
    begun: dict[TopicPartition, int],
    topic_ids: dict[str, bytes],
) -> None:
    def of_offsets(values: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        return {each: value for each, value in values.items() if each in offsets}

    known = {topic: topic_id for topic, topic_id in topic_ids.items() if any(each.topic == topic for each in offsets)}
    mark = ReachedOffsets(offsets, known, of_offsets(epochs), of_offsets(begun))
    document = document_of_mark(mark)
    assert mark_of(json.loads(json.dumps(document))) == mark
    # Whoever knows nothing of marks reads the offsets; our own readers of progress reports among them.
    assert offsets_of(document) == offsets
    assert {topic: places for topic, places in document.items() if places} == document_of_mark(ReachedOffsets(offsets))
    assert all("#" not in topic for topic, places in document.items() if places)


def test_what_a_mark_looks_like() -> None:
    offsets = {TopicPartition("sales", index): 20 + index for index in range(4)}
    epochs = {**dict.fromkeys(offsets, 5), TopicPartition("sales", 2): 7}
    mark = ReachedOffsets(offsets, {"sales": ID}, epochs, {TopicPartition("sales", 3): 17})
    assert document_of_mark(mark) == {
        "sales": {"0": 20, "1": 21, "2": 22, "3": 23},
        "sales#AAECAwQFBgcICQoLDA0ODw#0-1:5,2:7,3:5#3:17": {},
    }


def test_what_others_wrote() -> None:
    assert mark_of({"sales": {"0": 23}}) == ReachedOffsets({TopicPartition("sales", 0): 23})
    assert mark_of({}) == mark_of(INITIAL) == ReachedOffsets()
    assert is_initial(INITIAL) and not is_initial({}) and not is_initial({"sales": {"0": 1}})
    # From a version to come: what is understood counts.
    mark = mark_of({"sales": {"0": 23}, "sales#AAECAwQFBgcICQoLDA0ODw#0:5##more": {}, "sales#?": {}, "sales##0-:x": {}})
    assert mark.topic_id("sales") == ID and mark.epochs == {TopicPartition("sales", 0): 5} and not mark.begun
    assert mark.is_of_another("sales", bytes(15) + b"\1")
    assert not mark.is_of_another("sales", NO_ID) and not mark.is_of_another("other", ID)
