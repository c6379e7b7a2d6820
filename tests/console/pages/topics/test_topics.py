"""The list of topics and the pages of one: what they show, and what their forms do to the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import quote

import pytest
from tests.console.consoles import Visitor, running_console

from ottla.client.admin import Admin
from ottla.client.admin.topics import NewTopic
from ottla.client.producer.producer import Producer
from ottla.console.options import ConsoleOptions
from ottla.model import limits
from ottla.model.resources import ConfigSource, Resource
from ottla.testing.broker import EmbeddedBroker

T = TypeVar("T")
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\u202eevil",
    "a\0b",
    "x" * 10_000,
    "../..",
    "new",
)


def run(bootstrap: str, work: Callable[[Admin], Awaitable[T]]) -> T:
    async def main() -> T:
        async with Admin(bootstrap) as admin:
            return await work(admin)

    return asyncio.run(main())


async def fill(bootstrap: str, topic: str, records: int, partition: int = 0) -> None:
    async with Producer(bootstrap) as producer:
        for number in range(records):
            await producer.post(topic, b"value %d" % number, b"key %d" % (number % 2), partition=partition)


def make(broker: EmbeddedBroker, name: str, partitions: int = 1, records: int = 0, **settings: str) -> None:
    named = {setting.replace("_", "."): value for setting, value in settings.items()}
    run(broker.bootstrap, lambda admin: admin.topics.create(name, partitions, configs=named))
    if records:
        asyncio.run(fill(broker.bootstrap, name, records))


# --- the list --------------------------------------------------------------------------------------------------------


def test_the_list_shows_figures_and_hides_internal_topics(broker: EmbeddedBroker, visitor: Visitor) -> None:
    make(broker, "listed", 3, 25)
    make(broker, "__hidden")
    shown = visitor.get("/topics?q=listed").words
    assert "listed 3 1 25" in shown
    assert "__hidden" not in visitor.get("/topics").words
    assert "__hidden internal" in visitor.get("/topics?internal=yes").words


def test_ten_thousand_topics_cost_the_requests_of_one_page(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Offsets and sizes are asked for the rows of the page alone: so many requests for ten topics as for 10,000."""
    with (
        EmbeddedBroker(tmp_path_factory.mktemp("many")) as broker,
        running_console(ConsoleOptions(broker.bootstrap, port=0)) as console,
    ):
        names = [f"topic-{number:05d}" for number in range(10_000)]
        for begin in range(0, len(names), 1_000):
            some = [NewTopic(name) for name in names[begin : begin + 1_000]]
            run(broker.bootstrap, lambda admin, some=some: admin.topics.create_each(some)).all()
        visitor = Visitor(console.url)
        visitor.get("/topics")  # connections are open from now on
        asked = {
            api: broker.fail(api, delay="0ms", times=None) for api in ("Metadata", "ListOffsets", "DescribeLogDirs")
        }
        shown = visitor.get("/topics?page=3")
        hits = {api: fault.hits for api, fault in asked.items()}
        made = visitor.send("/topics/+new", "/topics/%2Bnew", name="topic-x", settings="")
        assert made.status == 200
        assert "topic-x 1 1 0" in visitor.get("/topics?q=topic-x").words
    assert "10,000 topics" in shown.words
    assert "page 3 of 200" in shown.words
    assert "topic-00100 1 1 0" in shown.words
    assert len(shown.text) < 100_000
    assert hits["ListOffsets"] == 2
    assert hits["DescribeLogDirs"] == 1
    assert hits["Metadata"] <= 3


# --- creating --------------------------------------------------------------------------------------------------------


def test_a_topic_is_created_with_settings(broker: EmbeddedBroker, visitor: Visitor) -> None:
    fields = {"name": "made", "partitions": "3", "cleanup.policy": "compact", "settings": "max.message.bytes=2000\n\n"}
    checked = visitor.send("/topics/+new", "/topics/%2Bnew", check="on", **fields)
    assert "would create it with 3 partitions" in checked.words
    assert "made" not in run(broker.bootstrap, lambda admin: admin.topics.names())
    shown = visitor.send("/topics/+new", "/topics/%2Bnew", **fields)
    assert "Topic made was created" in shown.words
    described = run(broker.bootstrap, lambda admin: admin.topics.describe("made"))
    assert described.partition_count == 3
    entries = run(broker.bootstrap, lambda admin: admin.configs.describe(Resource.topic("made")))
    own = {each.name: each.value for each in entries if each.source == ConfigSource.TOPIC}
    assert own == {"cleanup.policy": "compact", "max.message.bytes": "2000"}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": ""}, "name is missing"),
        ({"name": "ok", "partitions": "many"}, "partitions is a number"),
        ({"name": "ok", "partitions": "0"}, "partitions is a number from 1"),
        ({"name": "ok", "replicas": "9"}, "replication factor of 9 cannot be reached"),
        ({"name": "ok", "settings": "no.such.thing=1"}, "no.such.thing"),
        ({"name": "ok", "settings": "nonsense"}, "NAME=VALUE"),
        ({"name": "ok", "retention.ms": "soon"}, "retention.ms"),
    ],
)
def test_what_the_brokers_refuse_is_said_above_the_form(visitor: Visitor, fields: dict[str, str], said: str) -> None:
    shown = visitor.send("/topics/+new", "/topics/%2Bnew", **{"settings": "", **fields})
    assert shown.status == 400
    assert said in shown.words
    assert 'action="/topics/%2Bnew"' in shown.text
    assert fields["name"] in shown.text


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text(visitor: Visitor, name: str) -> None:
    shown = visitor.send("/topics/+new", "/topics/%2Bnew", name=name)
    assert "<script>alert" not in shown.text
    assert "<img" not in shown.text
    for path in ("", "/records", "/settings", "/delete", "/live", "/search", "/produce", "/heat"):
        shown = visitor.get(f"/topics/{quote(name, safe='')}{path}")
        assert shown.status < 500
        assert "<script>alert" not in shown.text
        assert "<img" not in shown.text


# --- one topic -------------------------------------------------------------------------------------------------------


def test_the_overview_shows_partitions(broker: EmbeddedBroker, visitor: Visitor) -> None:
    make(broker, "seen", 2, 7)
    shown = visitor.get("/topics/seen").words
    assert "0 in sync 1 1 leader 0 7 7" in shown
    assert "1 in sync 1 1 leader 0 0 0 0 B" in shown
    assert visitor.get("/topics/nosuch").status == 404


def test_settings_say_where_they_come_from(broker: EmbeddedBroker, visitor: Visitor) -> None:
    make(broker, "tuned", retention_ms="86400000")
    shown = visitor.get("/topics/tuned/settings").words
    assert "retention.ms 86400000 1 d this topic How long records are kept" in shown
    assert "segment.ms 604800000 7 d Kafka's default 604800000 Age at which" in shown
    assert "flush.messages 9223372036854775807 no limit" in shown
    one = visitor.get("/topics/tuned/settings/retention.ms").words
    assert "retention.ms 86400000 this topic" in one
    assert (
        "min.insync.replicas 1 the cluster's default" in visitor.get("/topics/tuned/settings/min.insync.replicas").words
    )
    assert visitor.get("/topics/tuned/settings/nonsense").status == 404


def test_a_setting_is_checked_changed_and_reset(broker: EmbeddedBroker, visitor: Visitor) -> None:
    make(broker, "changed")
    path = "/topics/changed/settings/retention.ms"

    def value() -> tuple[str | None, ConfigSource]:
        found = run(broker.bootstrap, lambda admin: admin.configs.describe(Resource.topic("changed"), ["retention.ms"]))
        return found[0].value, found[0].source

    refused = visitor.send(path, path, value="soon")
    assert (refused.status, "soon" in refused.text) == (400, True)
    assert "would accept" in visitor.send(path, path, value="1000", check="on").words
    assert value()[1] != ConfigSource.TOPIC
    assert "is now 1000" in visitor.send(path, path, value="1000").words
    assert value() == ("1000", ConfigSource.TOPIC)
    assert "was reset" in visitor.send(path, path, what="reset").words
    assert value()[1] != ConfigSource.TOPIC


def test_deletion_asks_for_the_name(broker: EmbeddedBroker, visitor: Visitor) -> None:
    make(broker, "doomed", 1, 3)
    path = "/topics/doomed/delete"
    assert "Records 3" in visitor.get(path).words
    assert visitor.send(path, path, name="other").status == 400
    assert "doomed" in run(broker.bootstrap, lambda admin: admin.topics.names())
    assert "Topic doomed was deleted" in visitor.send(path, path, name="doomed").words
    assert "doomed" not in run(broker.bootstrap, lambda admin: admin.topics.names())


def test_partitions_are_added(broker: EmbeddedBroker, visitor: Visitor) -> None:
    make(broker, "grown", 2)
    path = "/topics/grown/partitions"
    assert visitor.send(path, path, total="1").status == 400
    assert "would accept 5" in visitor.send(path, path, total="5", check="on").words
    assert "now has 5 partitions" in visitor.send(path, path, total="5").words
    assert run(broker.bootstrap, lambda admin: admin.topics.describe("grown")).partition_count == 5


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("before=offset&offset=4", 6),
        ("before=all", 0),
        ("before=time&time=2100-01-01", 0),
        ("before=offset&offset=99", 0),
    ],
)
def test_records_are_deleted_as_the_preview_said(
    broker: EmbeddedBroker, visitor: Visitor, query: str, left: int
) -> None:
    topic = "short-" + query.translate(str.maketrans("&=", "--"))
    make(broker, topic, 2, 10)
    path = f"/topics/{topic}/delete-records"
    page = f"{path}?partition=0&{query}"
    assert f"{10 - left} records would be deleted" in visitor.get(page).words
    assert visitor.send(page, f"{path}/now", name="other").status == 400
    assert "were deleted" in visitor.send(page, f"{path}/now", name=topic).words
    bounds = run(broker.bootstrap, lambda admin: admin.topics.bounds(topic))
    assert bounds[0].end - bounds[0].start == left


def test_deleting_no_record_is_said(broker: EmbeddedBroker, visitor: Visitor) -> None:
    make(broker, "kept", 1, 3)
    shown = visitor.get("/topics/kept/delete-records?before=offset&offset=0")
    assert "No record would be deleted" in shown.words
    for query in ("before=offset&offset=x", "before=time&time=soon", "before=luck", "before=all&partition=7"):
        assert visitor.get(f"/topics/kept/delete-records?{query}").status in (400, 404)


def test_heat_tells_hot_keys(broker: EmbeddedBroker, visitor: Visitor) -> None:
    make(broker, "warm", 2, 400)
    assert 'data-stream="/topics/warm/heat/run' in visitor.get("/topics/warm/heat").text
    (part,) = visitor.stream("/topics/warm/heat/run?seconds=1")
    assert part["into"] == "heat"
    assert "key 0" in part["html"]
    assert "50.0%" in part["html"]


def test_figures_are_bounded(broker: EmbeddedBroker, visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    make(broker, "bounded", 6, 5)
    monkeypatch.setattr(limits, "CONSOLE_FIGURES_PARTITIONS_MAX", 2)
    shown = visitor.get("/topics/bounded").words
    assert "0 in sync 1 1 leader 0 5 5" in shown
    assert "5 in sync 1 1 leader ? ? ? ?" in shown


def test_in_read_only_mode_there_are_no_forms(broker: EmbeddedBroker) -> None:
    make(broker, "watched")
    with running_console(ConsoleOptions(broker.bootstrap, port=0, read_only=True)) as console:
        visitor = Visitor(console.url)
        for path in (
            "+new",
            "watched/delete",
            "watched/partitions",
            "watched/produce",
            "watched/settings/retention.ms",
        ):
            shown = visitor.get(f"/topics/{path}")
            assert (shown.status, 'method="post"' in shown.text) == (200, False), path
