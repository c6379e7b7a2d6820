"""The pages of one group: its members, assignment and partitions, and its lag over time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator

import pytest
from tests.console.consoles import Visitor, running_console
from tests.console.pages.groups.people import fill, member
from tests.server.share_talk import REJECT, SMALL, Queue
from tests.support.ports import free_ports
from tests.support.requests.raw import RawConnection
from tests.support.requests.same import Side
from tests.support.requests.streamers import Troupe, subtopology, topology
from tests.support.waiting import until, until_async

from ottla.client.blocking.blocking import Blocking
from ottla.client.consumer.group_offsets import OffsetAndMetadata
from ottla.console.access import Access
from ottla.console.options import ConsoleOptions
from ottla.console.pages.groups.assignment import ranges
from ottla.console.pages.groups.deliveries import deliveries_in
from ottla.console.pages.groups.history import OTHERS, LagHistories, LagSeries, PlaceInLog
from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.observe.metrics.catalogue.lag import ACQUIRED, IN_FLIGHT
from ottla.operations.metrics.samples import MetricSamples
from ottla.testing.broker import EmbeddedBroker


def test_members_assignment_and_partitions(broker: EmbeddedBroker, visitor: Visitor) -> None:
    fill(broker.bootstrap, "drawn", {0: 40, 1: 5, 2: 0})
    with Blocking(broker.bootstrap) as client:
        place = OffsetAndMetadata(15, -1, "<b>mark</b>")
        client.admin.groups.set_offsets("drawers", {TopicPartition("drawn", 0): place})
    with member(broker.bootstrap, "drawers", "drawn", **{"group.instance.id": "static-1"}):
        page = visitor.get("/groups/drawers")
        assert "reader 127.0.0.1 static static-1 3 drawn" in page.words
        assert "Assignor range" in page.words and "Subscribed topics drawn" in page.words
        drawn = visitor.get("/groups/drawers/assignment")
        assert drawn.text.count('title="drawn-') == 3 and "nobody" not in drawn.words
        partitions = visitor.get("/groups/drawers/partitions")
        assert re.search(r"drawn-0 15 40 25 [\d.]+ \w+ static-1 <b>mark</b>", partitions.words)
        assert "<b>mark" not in partitions.text
        assert "drawn-1 - 5 - - static-1" in partitions.words
        part = until(lambda: visitor.part("/groups/drawers/now?kind=classic"), lambda found: "<polyline" in found.text)
        assert "records behind" in part.words and "25 records behind" in part.words
    with Blocking(broker.bootstrap) as client:
        client.admin.groups.set_offsets("empty", {TopicPartition("drawn", 0): 1})
    assert "no members: nobody reads" in visitor.get("/groups/empty").words
    assert "nothing is assigned" in visitor.get("/groups/empty/assignment").words


def test_a_partition_that_nobody_has(broker: EmbeddedBroker, visitor: Visitor) -> None:
    fill(broker.bootstrap, "grows", {0: 1, 1: 1})
    slow = {"topic.metadata.refresh.interval.ms": 600_000}
    with member(broker.bootstrap, "growers", "grows", **slow), Blocking(broker.bootstrap) as client:
        client.admin.topics.add_partitions("grows", 4)
        drawn = visitor.get("/groups/growers/assignment")
        assert drawn.text.count('class="lost"') == 2 and "nobody" in drawn.words


def test_a_large_assignment_is_summarised(
    broker: EmbeddedBroker, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CONSOLE_MATRIX_PARTITIONS_MAX", 5)
    fill(broker.bootstrap, "large", dict.fromkeys(range(8), 1))
    with member(broker.bootstrap, "large", "large"):
        assert "8 partitions, 1 of 1 members have some." in visitor.get("/groups/large/assignment").words
        assert "8 0-7" in visitor.get("/groups/large/assignment").words


def test_ranges() -> None:
    assert ranges([3, 1, 2, 7]) == "1-3, 7"
    assert ranges([]) == ""
    assert ranges(range(0, 100, 2), most=2) == "0, 2 and 48 more ranges"


@pytest.fixture(scope="module")
def sharing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EmbeddedBroker, Visitor]]:
    settings = {**SMALL, "ottla.metrics.listener": f"127.0.0.1:{free_ports(1)[0]}"}
    with (
        EmbeddedBroker(tmp_path_factory.mktemp("sharing"), settings) as broker,
        running_console(ConsoleOptions(broker.bootstrap, port=0)) as console,
    ):
        yield broker, Visitor(console.url)


def test_a_share_group(sharing: tuple[EmbeddedBroker, Visitor]) -> None:
    broker, visitor = sharing
    with RawConnection(broker.bootstrap) as connection, Queue(broker, connection) as queue:
        queue.put(b"bad", b"good", b"other")
        talker = queue.join("anna")
        assert talker.poll(max_records=1)
        talker.poll([(0, 0, [REJECT])])
        page = visitor.get(f"/groups/{queue.group}")
        assert "Kind share" in page.words and "anna" in page.words
        assert f"{queue.topic}-0 0 3 2" in visitor.get(f"/groups/{queue.group}/partitions").words
        assert "no API tells" in visitor.get(f"/groups/{queue.group}/partitions").words
        said = "2 held by members now 3 delivered 0 of these again 0 accepted 1 given up"
        part = f"/groups/{queue.group}/deliveries"
        until(lambda: visitor.part(part).words, lambda words: said in words)
        assert said in visitor.get(f"/groups/{queue.group}").words
        assert f"{queue.group} share Stable 1 1 2" in visitor.get("/groups").words
        refused = visitor.get(f"/groups/{queue.group}/reset/preview?to=latest")
        assert "the group has 1 member" in refused.words
        talker.heartbeat(-1)
    until(lambda: visitor.get(f"/groups/{queue.group}").words, lambda words: "Empty" in words)
    done = visitor.send(f"/groups/{queue.group}/reset/preview?to=latest", f"/groups/{queue.group}/reset")
    assert done.status == 200 and f"{queue.topic}-0 3 3 0" in done.words
    forgotten = visitor.send(f"/groups/{queue.group}/forget?topic={queue.topic}", f"/groups/{queue.group}/forget")
    assert "has forgotten topic" in forgotten.words and "no offsets" in forgotten.words


def test_deliveries_of_groups_that_nodes_do_not_name() -> None:
    def samples(*groups: str) -> MetricSamples:
        names = [IN_FLIGHT.name, ACQUIRED.name]
        return MetricSamples("\n".join(f'{name}{{group="{group}"}} 3' for name in names for group in groups))

    known = {1: samples("mine", "(other)"), 2: samples("(other)"), 3: samples()}
    found = deliveries_in(known, "mine", ("metrics of node 4: it does not answer",))
    assert (found.figures[IN_FLIGHT.name], found.figures[ACQUIRED.name], found.untold) == (3, 3, (2,))
    assert deliveries_in({}, "mine").figures == {}, "not known is not zero"


def test_deliveries_where_no_node_tells_them(broker: EmbeddedBroker, visitor: Visitor) -> None:
    with RawConnection(broker.bootstrap) as connection, Queue(broker, connection) as queue:
        queue.join("anna")
        shown = visitor.get(f"/groups/{queue.group}").words
        assert "What members hold is not known: no node tells its metrics here" in shown
        assert "it has no ottla.metrics.listener" in shown
    assert visitor.part("/groups/nobody/deliveries").status == 404


def test_a_streams_group(sharing: tuple[EmbeddedBroker, Visitor]) -> None:
    broker, visitor = sharing
    fill(broker.bootstrap, "clicks", {0: 5, 1: 5})
    troupe = Troupe(Side("ottla", broker.bootstrap), "counting")
    player = troupe.player("anna", topology(subtopology("sub-0", "clicks")))
    player.join()
    player.until(lambda answer: player.tasks["active_tasks"])
    player.confirm()
    page = visitor.get("/groups/counting")
    assert "Kind streams" in page.words and "Subtopology sub-0 reads clicks" in page.words
    assert "sub-0_0, sub-0_1" in page.words
    drawn = visitor.get("/groups/counting/assignment")
    assert drawn.text.count("held") == 2 and "Subtopology sub-0" in drawn.words
    assert "counting streams" in visitor.get("/groups").words


def test_series_are_bounded_and_have_gaps() -> None:
    series = LagSeries("g", "classic")
    names = [f"t{number}" for number in range(limits.CONSOLE_LAG_TOPICS_MAX + 3)]
    lag = {TopicPartition(name, 0): PlaceInLog(0, 10, number) for number, name in enumerate(names)}
    series.note(0.0, lag)
    (point,) = series.points
    assert len(point.by_topic) == limits.CONSOLE_LAG_TOPICS_MAX + 1 and point.by_topic[OTHERS] == 0 + 1 + 2
    assert (point.records, point.written_per_s) == (sum(range(len(names))), None)
    series.note(2.0, {at: each._replace(read=4, end=30) for at, each in lag.items()})
    assert (series.points[-1].written_per_s, series.points[-1].read_per_s) == (10 * len(names), 2 * len(names))
    series.pause(3.0)
    series.note(9.0, lag)
    assert series.points[-2].records is None and series.points[-1].read_per_s is None
    for number in range(limits.CONSOLE_LAG_POINTS + 5):
        series.note(10.0 + number, lag)
    assert len(series.points) == limits.CONSOLE_LAG_POINTS


def test_few_groups_are_followed_and_none_after_a_while(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(broker.bootstrap, "followed", 3)
    monkeypatch.setattr(limits, "CONSOLE_LAG_GROUPS_MAX", 2)
    monkeypatch.setattr(limits, "CONSOLE_LAG_EVERY_S", 0.01)
    monkeypatch.setattr(limits, "CONSOLE_LAG_IDLE_S", 0.3)

    async def work() -> None:
        access = Access(ConsoleOptions(broker.bootstrap))
        histories = LagHistories.of(access)

        async def nobody() -> bool:
            return not histories.running

        assert LagHistories.of(access) is histories
        await access.admin.groups.set_offsets("one", {TopicPartition("followed", 0): 1})
        first = histories.look("one", "classic")
        histories.look("two", "classic")
        assert histories.look("one", "classic") is first and histories.running == 2
        histories.look("three", "classic")  # the group that was looked at longest ago makes room
        assert histories.running == 2
        await until_async(nobody)
        assert [point.records for point in first.points][-1] == 2
        count = len(first.points)
        histories.look("one", "classic")
        assert len(first.points) == count + 1 and first.points[-1].records is None, "a gap"
        await access.close()
        await until_async(nobody)

    asyncio.run(work())
