"""A user without rights sees and changes nothing of others' groups, transactions and letters."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.console.consoles import Visitor
from tests.console.pages.groups.people import token, weak_visitor

from ottla.client.blocking.blocking import Blocking
from ottla.model.ids import TopicPartition
from ottla.testing.secure import SecureBroker

AT = TopicPartition("secret", 0)


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    with SecureBroker(tmp_path_factory.mktemp("secure")) as broker:
        yield broker


@pytest.fixture(scope="module")
def owner(secure: SecureBroker) -> Iterator[Blocking]:
    with Blocking(secure.bootstrap, security=secure.security) as client:
        client.admin.topics.create("secret", 1)
        client.send_all("secret", [(None, b"x")] * 9)
        client.admin.groups.set_offsets("theirs", {AT: 5})
        yield client


@pytest.fixture(scope="module")
def weak(secure: SecureBroker, owner: Blocking) -> Iterator[Visitor]:
    with weak_visitor(secure, "weak") as visitor:
        yield visitor


def test_groups_of_others_are_not_shown(weak: Visitor) -> None:
    assert "theirs" not in weak.get("/groups").words
    for part in ("", "/assignment", "/partitions", "/lag", "/reset", "/delete"):
        assert weak.get(f"/groups/theirs{part}").status in (403, 404)


def test_what_may_be_read_may_not_be_changed(secure: SecureBroker, owner: Blocking, weak: Visitor) -> None:
    secure.allow("weak", "Describe", group="theirs")
    secure.allow("weak", "Describe", topic="secret")
    assert "theirs classic Empty" in weak.get("/groups").words
    partitions = weak.get("/groups/theirs/partitions").words
    assert "5 9 4 unknown" in partitions and "No permission" in partitions, "ages take a right to read the topic"
    preview = "/groups/theirs/reset/preview?to=earliest"
    assert "5 records are read again" in weak.get(preview).words
    refused = weak.send(preview, "/groups/theirs/reset")
    assert refused.status in (400, 403) and "No permission" in refused.words, refused.words
    for action, fields in (("delete", {"name": "theirs"}), ("forget", {"topic": "secret"})):
        secret = token(weak, "/groups/theirs/delete")
        refused = weak.post(f"/groups/theirs/{action}", {"_token": secret, **fields})
        assert refused.status in (400, 403) and "No permission" in refused.words, refused.words
    assert owner.admin.groups.offsets("theirs")[AT].offset == 5
