"""The pages of topics and records with the rights of the user who signed in: what is refused is said, and not done."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.console.consoles import Visitor, running_console

from ottla.client.blocking.blocking import Blocking
from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.console.options import ConsoleOptions
from ottla.testing.secure import SecureBroker

PASSWORD = "correct horse"


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    """A broker with a topic that the user `reader` may read, and one that is hidden from them."""
    with SecureBroker(tmp_path_factory.mktemp("secure") / "data") as broker:
        broker.add_user("reader", PASSWORD)
        broker.allow("reader", "Read", "Describe", topic="shown")
        with Blocking(broker.bootstrap, security=broker.security) as client:
            client.admin.topics.create("shown")
            client.admin.topics.create("secret")
            for topic in ("shown", "secret"):
                client.send(topic, b"payload-42")
        yield broker


@pytest.fixture(scope="module")
def reader(secure: SecureBroker) -> Iterator[Visitor]:
    security = ClientOptions(parse_bootstrap(secure.bootstrap), security=secure.security).known_security
    options = ConsoleOptions(secure.bootstrap, port=0, security=security, signs_in=True)
    with running_console(options) as console:
        visitor = Visitor(console.url)
        shown = visitor.send("/sign-in", "/sign-in", user="reader", password=PASSWORD)
        assert shown.status == 200, shown.words
        yield visitor


def test_the_list_has_what_the_user_may_describe(reader: Visitor) -> None:
    shown = reader.get("/topics")
    assert ("shown 1 1 1 ?" in shown.words, "secret" in shown.words) == (True, False)


def test_records_are_read_with_the_rights_of_the_user(reader: Visitor) -> None:
    assert "payload-42" in reader.get("/topics/shown/records").words
    assert "payload-42" in "".join(
        each["html"] for each in reader.stream("/topics/shown/search/run?in=value&text=payload")
    )
    for page in ("", "/records", "/records/0/0", "/settings", "/live", "/search", "/storage", "/heat", "/delete"):
        shown = reader.get(f"/topics/secret{page}")
        assert (shown.status, "payload-42" in shown.words) in ((403, False), (404, False)), page


def test_storage_shows_what_the_user_may_see(reader: Visitor) -> None:
    shown = reader.get("/topics/shown/storage").words
    assert "Sizes are not told" in shown
    assert "1 segments" in shown
    assert "settings are not told" in shown


@pytest.mark.parametrize(
    ("page", "fields"),
    [
        ("/topics/+new", {"name": "mine", "settings": ""}),
        ("/topics/shown/delete", {"name": "shown"}),
        ("/topics/shown/partitions", {"total": "3"}),
        ("/topics/shown/delete-records?before=all", {"name": "shown"}),
        ("/topics/shown/produce", {"key_format": "null", "value_format": "text", "value": "mine", "partition": ""}),
    ],
)
def test_changes_are_refused(secure: SecureBroker, reader: Visitor, page: str, fields: dict[str, str]) -> None:
    action = page.replace("?before=all", "/now").replace("+", "%2B")
    shown = reader.send(page, action, **fields)
    assert shown.status == 403, shown.words
    with Blocking(secure.bootstrap, security=secure.security) as client:
        assert client.admin.topics.names() == ["secret", "shown"]
        assert client.admin.topics.describe("shown").partition_count == 1
        assert client.admin.topics.bounds("shown") == {0: (0, 1)}


def test_settings_need_their_own_right(secure: SecureBroker, reader: Visitor) -> None:
    assert reader.get("/topics/shown/settings").status == 403
    secure.allow("reader", "DescribeConfigs", topic="shown")
    assert "retention.ms" in reader.get("/topics/shown/settings").words
    path = "/topics/shown/settings/retention.ms"
    assert reader.send(path, path, value="1").status == 403
