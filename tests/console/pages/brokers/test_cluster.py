"""The pages of brokers with three of them: plans are shown, then carried out; a broker that is killed is seen."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator

import pytest
from tests.console.consoles import Visitor, running_console
from tests.support.processes.local_cluster import LocalCluster
from tests.support.waiting import until

from ottla.client.blocking.blocking import Blocking
from ottla.console.options import ConsoleOptions
from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.model.resources import Resource

_VALUE = bytes(100_000)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    cluster = LocalCluster(tmp_path_factory.mktemp("cluster") / "data", "--brokers", "3")
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def client(cluster: LocalCluster) -> Iterator[Blocking]:
    with Blocking(cluster.bootstrap) as client:
        yield client


@pytest.fixture(scope="module")
def guest(cluster: LocalCluster) -> Iterator[Visitor]:
    with running_console(ConsoleOptions(cluster.bootstrap, port=0)) as console:
        yield Visitor(console.url)


def on_one_broker(client: Blocking, topic: str, broker: int, partitions: int = 6) -> list[TopicPartition]:
    """A topic whose replicas are all on one broker."""
    client.admin.topics.create(topic, partitions=partitions, replication_factor=1, configs={"min.insync.replicas": "1"})
    places = [TopicPartition(topic, each) for each in range(partitions)]
    client.admin.replicas.reassign({at: [broker] for at in places})
    until(lambda: client.admin.replicas.reassignments(), lambda found: not found)
    until(lambda: leaders(client, topic), lambda found: found == [broker] * partitions)
    return places


def leaders(client: Blocking, topic: str) -> list[int]:
    return [each.leader for each in client.admin.topics.describe(topic).partitions]


def replicas(client: Blocking, topic: str) -> list[tuple[int, ...]]:
    return [each.replicas for each in client.admin.topics.describe(topic).partitions]


def plan_number(text: str) -> str:
    found = re.search(r'name="plan" value="(\d+)"', text)
    assert found, "a plan is shown"
    return found[1]


def test_brokers_and_their_pages(guest: Visitor) -> None:
    shown = guest.get("/brokers")
    assert (shown.status, "3 of 3" in shown.words) == (200, True)
    assert "All partitions have leaders" in shown.words
    one = guest.get("/brokers/2")
    assert (one.status, "Broker 2" in one.words) == (200, True)
    assert "metadata.version" in one.words and "node-2" in one.words
    assert guest.get("/brokers/9").status == 404
    assert guest.get("/brokers/%3Cscript%3E").status == 404


def test_the_quorum(guest: Visitor) -> None:
    shown = guest.get("/brokers/quorum")
    assert (shown.status, shown.words.count(" voter ")) == (200, 2)
    assert "1 may fail" in shown.words and " leader " in shown.words


def test_a_setting_is_changed_and_reset(guest: Visitor, client: Blocking) -> None:
    listed = guest.get("/brokers/1/settings?q=cleaner.threads")
    assert "log.cleaner.threads" in listed.words and "num.network.threads" not in listed.words
    name = "message.max.bytes"
    page, action = f"/brokers/1/settings/{name}", f"/brokers/1/settings/{name}/set"
    assert "default" in guest.get(page).words

    def value() -> str | None:
        return client.admin.configs.describe(Resource.broker(1), [name])[0].value

    before = value()
    shown = guest.send(page, action, value="2000000", scope="1")
    assert (shown.status, "message.max.bytes of broker 1 is set" in shown.words) == (200, True)
    until(value, lambda found: found == "2000000")
    assert "set for this broker" in guest.get(page).words
    assert "message.max.bytes" in guest.get("/brokers/1/settings?set=1").words
    shown = guest.send(page, action, value="many", scope="1")
    assert (shown.status, value(), 'value="many"' in shown.text) == (400, "2000000", True), "what was typed is kept"
    guest.send(page, action, reset="on", scope="1")
    until(value, lambda found: found == before)
    guest.send(page, action, value="3000000", scope="all")
    until(value, lambda found: found == "3000000")
    guest.send(page, action, reset="on", scope="all")
    until(value, lambda found: found == before)
    assert guest.get("/brokers/1/settings/no.such").status == 404


def test_features(guest: Visitor) -> None:
    assert "metadata.version" in guest.get("/brokers/features").words
    page = "/brokers/features/metadata.version"
    level = re.search(r'<option value="(\d+)" selected', guest.get(page).text)
    assert level
    shown = guest.send(page, page, level=level[1], dry_run="on")
    assert (shown.status, "the cluster would accept" in shown.words) == (200, True)
    assert guest.send(page, page, level="999999").status == 400
    assert guest.get("/brokers/features/nosuch").status == 404


def test_a_plan_is_shown_and_then_carried_out(guest: Visitor, client: Blocking) -> None:
    on_one_broker(client, "uneven", 1)
    before = leaders(client, "uneven")
    shown = guest.get("/brokers/balance")
    assert (shown.status, "uneven" in shown.words) == (200, True)
    assert leaders(client, "uneven") == before, "a plan changes nothing"
    begun = guest.send("/brokers/balance", "/brokers/balance/apply", throttle="100MiB", at_once="3")
    assert (begun.path, "Balancing has begun" in begun.words) == ("/brokers/moves", True)
    until(lambda: guest.part("/brokers/moves/now").words, lambda words: "It is done." in words)
    assert len(set(leaders(client, "uneven"))) == 3
    again = guest.get("/brokers/balance")
    assert "There is nothing to move." in again.words
    assert "is set on" not in guest.get("/brokers/moves").words, "the throttle is taken off"


def test_an_old_plan_and_a_wrong_throttle_are_refused(
    guest: Visitor, client: Blocking, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_one_broker(client, "late", 2)
    wrong = guest.send("/brokers/balance", "/brokers/balance/apply", throttle="fast")
    assert (wrong.status, "is no rate" in wrong.words) == (400, True)
    monkeypatch.setattr(limits, "CONSOLE_PLAN_S", 0)
    late = guest.send("/brokers/balance", "/brokers/balance/apply", throttle="")
    assert (late.status, "too old" in late.words) == (400, True)
    assert leaders(client, "late") == [2] * 6
    client.admin.topics.delete("late")


def test_moves_are_shown_and_cancelled(guest: Visitor, client: Blocking) -> None:
    on_one_broker(client, "heavy", 3, partitions=2)
    for _ in range(20):
        client.send("heavy", _VALUE, partition=0)
    shown = guest.get("/brokers/3/drain")
    assert "heavy" in shown.words
    begun = guest.send("/brokers/3/drain", "/brokers/balance/apply", throttle="1000", at_once="1")
    assert (begun.status, "off broker 3 has begun" in begun.words) == (200, True)
    moving = until(
        lambda: guest.get("/brokers/moves").words, lambda words: "Cancel all" in words and "Throttle" in words
    )
    assert "off broker 3" in moving
    now = until(lambda: guest.get("/").words, lambda words: "1 moving" in words)
    assert "under-replicated" not in now, "a replica that is coming is not behind"
    page = guest.get("/brokers/moves/cancel")
    assert "Replicas stay where they were" in page.words
    done = guest.send("/brokers/moves/cancel", "/brokers/moves/cancel")
    assert (done.status, "cancelled" in done.words) == (200, True)
    until(lambda: client.admin.replicas.reassignments(), lambda found: not found)
    assert "is set on" not in until(lambda: guest.get("/brokers/moves").words, lambda words: "is set on" not in words)
    assert guest.get("/brokers/moves/cancel").status == 400, "nothing moves any more"
    client.admin.topics.delete("heavy")


def test_leaders_are_moved_away_and_elected_again(guest: Visitor, client: Blocking) -> None:
    client.admin.topics.create("led", partitions=6)
    until(lambda: set(leaders(client, "led")), lambda found: found == {1, 2, 3})
    guest.send("/brokers/1/drain?leaders_only=on", "/brokers/balance/apply", throttle="")
    until(lambda: guest.part("/brokers/moves/now").words, lambda words: "It is done." in words)
    until(lambda: set(leaders(client, "led")), lambda found: found == {2, 3})
    # Another order of replicas, without an election: the preferred ones do not lead.
    turned = {TopicPartition("led", at): tuple(reversed(each)) for at, each in enumerate(replicas(client, "led"))}
    client.admin.replicas.reassign(turned)
    until(lambda: "led by another" in guest.get("/brokers").words)
    shown = guest.send("/brokers/leaders", "/brokers/leaders")
    assert (shown.status, "elected" in shown.words) == (200, True)
    wanted = [turned[TopicPartition("led", at)][0] for at in range(6)]
    until(lambda: leaders(client, "led"), lambda found: found == wanted)


def test_read_only_shows_plans_without_a_button(cluster: LocalCluster) -> None:
    with running_console(ConsoleOptions(cluster.bootstrap, port=0, read_only=True)) as console:
        visitor = Visitor(console.url)
        for path in ("/brokers/balance", "/brokers/1/settings/message.max.bytes", "/brokers/moves", "/brokers/leaders"):
            shown = visitor.get(path)
            assert (shown.status, 'method="post"' in shown.text) == (200, False), path


def test_a_killed_broker_is_seen(cluster: LocalCluster, guest: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONSOLE_SAMPLE_S", 1)
    assert "3 of 3 brokers up" in until(lambda: guest.get("/").words, lambda words: "3 of 3 brokers up" in words)
    until(lambda: guest.part("/overview/health").words, lambda words: "checks have found nothing" in words)
    pid = cluster.node_pid(3)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until(lambda: guest.part("/overview/now").words, lambda words: "2 of 3 brokers up broker 3 is down" in words)
    until(lambda: guest.part("/overview/flow").words, lambda words: "broker 3 is down" in words)
    until(lambda: guest.part("/overview/now").words, lambda words: "under-replicated" in words)
    shown = guest.get("/brokers")
    assert (shown.status, "under-replicated" in shown.words) == (200, True)
    assert "It does not answer" in guest.get("/brokers/3").words
    until(lambda: guest.part("/overview/health").words, lambda words: "Do: " in words and "problem" in words, 45)
