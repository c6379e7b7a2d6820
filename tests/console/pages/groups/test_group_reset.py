"""Resetting and deleting offsets: the preview, exactly that, and refusals."""

from __future__ import annotations

import json
import time

import pytest
from tests.console.consoles import Visitor
from tests.console.pages.groups.people import HOSTILE, fill, member, token

from ottla.client.blocking.blocking import Blocking
from ottla.console.named import named_path
from ottla.model.ids import TopicPartition
from ottla.testing.broker import EmbeddedBroker

ORDERS = [TopicPartition("moved", 0), TopicPartition("moved", 1)]


@pytest.fixture(scope="module")
def client(broker: EmbeddedBroker) -> Blocking:
    fill(broker.bootstrap, "moved", {0: 100, 1: 50})
    return Blocking(broker.bootstrap)


def start(client: Blocking, group: str, first: int = 60, second: int = 10) -> None:
    client.admin.groups.set_offsets(group, dict(zip(ORDERS, (first, second), strict=True)))


def offsets(client: Blocking, group: str) -> list[int]:
    found = client.admin.groups.offsets(group)
    return [found[at].offset for at in ORDERS]


@pytest.mark.parametrize(
    ("asked", "new", "told"),
    [
        ("to=earliest", [0, 0], "60 records are read again"),
        ("to=latest", [100, 50], "40 records are skipped"),
        ("to=offset&value=70", [70, 50], "there is no offset 70"),
        ("to=shift&value=-15", [45, 0], "15 records are read again"),
        ("to=back&value=1h", [0, 0], "10 records are read again"),
        ("to=time&value=2100-01-01", [100, 50], "40 records are skipped"),
        ("to=offset&value=5&topics=moved:1", [60, 5], "5 records are read again"),
        ("to=latest&topics=moved", [100, 50], "partitions that change"),
    ],
)
def test_what_the_preview_shows_is_applied(
    client: Blocking, visitor: Visitor, asked: str, new: list[int], told: str
) -> None:
    start(client, "mover")
    preview = f"/groups/mover/reset/preview?{asked}"
    assert told in visitor.get(preview).words
    assert offsets(client, "mover") == [60, 10], "a preview changes nothing"
    done = visitor.send(preview, "/groups/mover/reset")
    assert done.status == 200 and "goes on from the new offsets" in done.words
    assert offsets(client, "mover") == new


def test_a_name_with_slashes(client: Blocking, visitor: Visitor) -> None:
    for name in (HOSTILE, ".."):
        start(client, name)
        to = named_path("groups", name, "reset")
        preview = named_path("groups", name, "reset", "preview", to="latest")
        assert visitor.send(preview, to).status == 200
        assert offsets(client, name) == [100, 50]
        deletion = named_path("groups", name, "delete")
        assert visitor.send(deletion, deletion, name=name).status == 200
        assert name not in {each.group_id for each in client.admin.groups.all()}


def test_offsets_that_moved_since_the_preview_stay(client: Blocking, visitor: Visitor) -> None:
    start(client, "mover")
    moves = json.dumps([["moved", 0, 59, 3]])
    page = visitor.send("/groups/mover/reset/preview?to=earliest", "/groups/mover/reset", moves=moves)
    assert page.status == 400 and "other offsets since the preview: moved-0" in page.words
    assert offsets(client, "mover") == [60, 10]
    wrong = (
        "{",
        "[1]",
        '[["moved", 0, 1]]',
        "null",
        '[["moved", "x", 1, 2]]',
        '[["moved", 0, 1, 1e999]]',
        "[" * 200_000,
    )
    for text in wrong:
        assert visitor.send("/groups/mover/reset/preview?to=earliest", "/groups/mover/reset", moves=text).status == 400


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("to=nowhere", "there is no way"),
        ("to=offset", "is missing"),
        ("to=offset&value=-1", "from 0 to"),
        ("to=time&value=yesterday", "neither milliseconds"),
        ("to=back&value=a+while", "a while"),
        ("to=latest&topics=moved:7", "no such partition"),
        ("to=latest&topics=nosuch", "nosuch"),
        ("to=shift&value=1&topics=other", "nothing to shift"),
    ],
)
def test_wrong_input_keeps_the_form(client: Blocking, visitor: Visitor, asked: str, told: str) -> None:
    if "other" not in client.admin.topics.names():
        client.admin.topics.create("other", 1)
    start(client, "mover")
    page = visitor.get(f"/groups/mover/reset/preview?{asked}")
    assert page.status in (400, 404) and told in page.words
    assert offsets(client, "mover") == [60, 10]


def test_a_group_with_members_is_refused_with_the_reason(
    broker: EmbeddedBroker, client: Blocking, visitor: Visitor
) -> None:
    start(client, "busy")
    with member(broker.bootstrap, "busy", "moved"):
        preview = visitor.get("/groups/busy/reset/preview?to=earliest")
        assert "the group has 1 member (reader), which would commit over them" in preview.words
        assert "Apply exactly this" not in preview.words
        secret = token(visitor, "/groups/mover/delete")
        moves = json.dumps([["moved", 0, 60, 0]])
        refused = visitor.post("/groups/busy/reset", {"_token": secret, "moves": moves})
        assert refused.status == 400 and "which would commit over them" in refused.words
        assert "The group has members: reader." in visitor.get("/groups/busy/delete").words
        forget = visitor.get("/groups/busy/forget?topic=moved")
        assert "Members read the topic: reader." in forget.words
        for action, fields in (("delete", {"name": "busy"}), ("forget", {"topic": "moved"})):
            shown = visitor.post(f"/groups/busy/{action}", {"_token": secret, **fields})
            assert shown.status == 400, shown.words
        assert offsets(client, "busy") == [60, 10]


def test_delete_offsets_of_a_topic_then_the_group(client: Blocking, visitor: Visitor) -> None:
    if "second" not in client.admin.topics.names():
        client.admin.topics.create("second", 1)
    start(client, "gone")
    client.admin.groups.set_offsets("gone", {TopicPartition("second", 0): 0})
    assert "moved 2 nobody" in visitor.get("/groups/gone/delete").words
    assert "moved-1 10" in visitor.get("/groups/gone/forget?topic=moved").words
    assert "has forgotten topic moved" in visitor.send("/groups/gone/forget?topic=moved", "/groups/gone/forget").words
    assert list(client.admin.groups.offsets("gone")) == [TopicPartition("second", 0)]
    wrong = visitor.send("/groups/gone/delete", "/groups/gone/delete", name="gon")
    assert wrong.status == 400 and "nothing was deleted" in wrong.words
    done = visitor.send("/groups/gone/delete", "/groups/gone/delete", name="gone")
    assert "Group gone was deleted" in done.words and visitor.get("/groups/gone").status == 404


def test_offsets_of_a_deleted_topic(client: Blocking, visitor: Visitor) -> None:
    client.admin.topics.create("brief", 1)
    start(client, "late")
    client.admin.groups.set_offsets("late", {TopicPartition("brief", 0): 0})
    began_s = time.monotonic()
    client.admin.topics.delete("brief")
    for part in ("", "/partitions", "/reset/preview?to=latest", "/delete"):
        assert visitor.get(f"/groups/late{part}").status == 200
    assert time.monotonic() - began_s < 15, "nobody waits for a topic that is gone"
