"""DeleteTopics, by name and by id."""

from __future__ import annotations

import pytest
from tests.cluster.bench import Cluster, verdict

from ottla.cluster.commands.delete_topics import DeleteTopics, DoomedTopic, TopicDeletion
from ottla.cluster.entities import TopicDeleted
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID
from ottla.model.resources import Resource

UNKNOWN = b"\x07" * 16


def delete(cluster: Cluster, *topics: DoomedTopic) -> list[TopicDeletion]:
    deletions: list[TopicDeletion] = cluster.submit(DeleteTopics(topics))
    return deletions


def test_by_name_with_everything_that_belongs_to_it() -> None:
    cluster = Cluster()
    cluster.create("t", 2, configs=(("retention.ms", "1"),))
    topic = cluster.state.topics["t"]
    cluster.changes.clear()
    assert delete(cluster, DoomedTopic("t")) == [TopicDeletion("t", topic.id, None)]
    assert cluster.changes == [TopicDeleted(topic)]
    assert not cluster.state.topics and not cluster.state.topic_by_id and not cluster.state.colliding
    assert Resource(2, "t") not in cluster.state.configs
    assert cluster.state.partition_count == 0


def test_by_id() -> None:
    cluster = Cluster()
    cluster.create("t")
    topic_id = cluster.state.topics["t"].id
    found, missing = delete(cluster, DoomedTopic(id=UNKNOWN), DoomedTopic(id=topic_id))
    assert (found.name, found.id, verdict(found.error)) == (None, UNKNOWN, ("UNKNOWN_TOPIC_ID", None))
    assert missing == TopicDeletion("t", topic_id, None)


def test_what_makes_no_sense_deletes_nothing() -> None:
    cluster = Cluster()
    cluster.create("t")
    cluster.create("u")
    topic_id = cluster.state.topics["t"].id
    cases = {
        (DoomedTopic(),): "Neither topic name nor id were specified.",
        (DoomedTopic("t", topic_id),): "You may not specify both topic name and topic id.",
        (DoomedTopic("t"), DoomedTopic("t")): "Duplicate topic name.",
        (DoomedTopic(id=topic_id), DoomedTopic(id=topic_id)): "Duplicate topic id.",
        (
            DoomedTopic(id=topic_id),
            DoomedTopic("t"),
        ): "The provided topic name maps to an ID that was already supplied.",
    }
    for asked, message in cases.items():
        (deletion,) = delete(cluster, *asked)
        assert verdict(deletion.error) == ("INVALID_REQUEST", message)
    assert list(cluster.state.topics) == ["t", "u"]


def test_an_unknown_name() -> None:
    (deletion,) = delete(Cluster(), DoomedTopic("nope"))
    assert (deletion.name, deletion.id) == ("nope", NO_ID)
    assert verdict(deletion.error) == ("UNKNOWN_TOPIC_OR_PARTITION", None)


def test_deletion_can_be_switched_off() -> None:
    cluster = Cluster(properties={"delete.topic.enable": "false"})
    cluster.create("t")
    with pytest.raises(ApiError) as refused:
        delete(cluster, DoomedTopic("t"))
    assert refused.value.code == ErrorCode.TOPIC_DELETION_DISABLED


def test_a_name_is_free_again() -> None:
    cluster = Cluster()
    cluster.create("a.b")
    first = cluster.state.topics["a.b"].id
    delete(cluster, DoomedTopic("a.b"))
    cluster.create("a_b")
    assert cluster.state.topics["a_b"].id != first
