"""Moving one partition by hand, and voters that come and go, with three nodes that vote."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.console.consoles import Visitor, marked, running_console
from tests.console.signed_in import secured_console, signed_in
from tests.support.processes.local_cluster import LocalCluster
from tests.support.waiting import until

from ottla.client.blocking.blocking import Blocking
from ottla.console.options import ConsoleOptions
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.secure import SecureBroker

BY_HAND = "/brokers/moves/new"
HOSTILE = "%3Cscript%3Ealert(1)%3C/script%3E"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    cluster = LocalCluster(tmp_path_factory.mktemp("cluster") / "data", "--brokers", "3")
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def client(cluster: LocalCluster) -> Iterator[Blocking]:
    with Blocking(cluster.bootstrap) as client:
        client.admin.topics.create("moved", partitions=2, replication_factor=2, configs={"min.insync.replicas": "2"})
        yield client


@pytest.fixture(scope="module")
def guest(cluster: LocalCluster, client: Blocking) -> Iterator[Visitor]:
    with running_console(ConsoleOptions(cluster.bootstrap, port=0)) as console:
        yield Visitor(console.url)


def replicas(client: Blocking, partition: int) -> tuple[int, ...]:
    found = client.admin.topics.describe("moved").partition(partition)
    assert found is not None
    return found.replicas


def test_a_partition_is_moved_by_hand(guest: Visitor, client: Blocking) -> None:
    before = replicas(client, 0)
    (other,) = {1, 2, 3} - {*before}
    assert f'href="{BY_HAND}?topic=moved&amp;partition=0"' in guest.get("/topics/moved").text
    asked = guest.get(f"{BY_HAND}?topic=moved&partition=0")
    assert "Now: moved-0" in asked.words and f'value="{before[0]}, {before[1]}"' in asked.text
    assert "Carry it out" not in asked.words, "where to has not been said"
    question = f"{BY_HAND}?topic=moved&partition=0&replicas={other},{before[0]}"
    shown = guest.get(question)
    assert f"moved 0 {before[0]}, {before[1]} {other} , {before[0]}" in shown.words, shown.words
    assert replicas(client, 0) == before, "a plan changes nothing"
    begun = guest.send(question, "/brokers/balance/apply", throttle="100MiB")
    assert (begun.path, f"Moving moved-0 to {other}, {before[0]} has begun" in begun.words) == ("/brokers/moves", True)
    until(lambda: guest.part("/brokers/moves/now").words, lambda words: "It is done." in words)
    assert replicas(client, 0) == (other, before[0])
    until(lambda: client.admin.topics.describe("moved").leader(0)[0], lambda leader: leader == other)
    again = guest.get(question)
    assert "There is nothing to move." in again.words and "/brokers/balance/apply" not in again.text


def test_a_preview_warns(guest: Visitor, client: Blocking) -> None:
    one = replicas(client, 1)[0]
    shown = guest.get(f"{BY_HAND}?topic=moved&partition=1&replicas={one}")
    assert "nothing can be written with acks=all: min.insync.replicas is 2" in shown.words
    assert "It has 2 replicas now, and would have 1" in shown.words
    internal = guest.get(f"{BY_HAND}?topic=_schemas&partition=0&replicas=1,2,3")
    assert internal.status == 400 or "This is an internal topic" in internal.words


@pytest.mark.parametrize(
    ("words", "field", "said"),
    [
        ("topic=nosuch&replicas=1", "topic", "there is no topic nosuch"),
        (f"topic={HOSTILE}", "topic", "there is no topic"),
        ("topic=moved&partition=7", "partition", "topic moved has no partition 7"),
        ("topic=moved&partition=x", "partition", "partition is a number"),
        ("topic=moved&partition=0&replicas=1,9", "replicas", "there is no broker '9'"),
        ("topic=moved&partition=0&replicas=1,1", "replicas", "broker 1 is named twice"),
        (f"topic=moved&partition=0&replicas={HOSTILE}", "replicas", "there is no broker"),
        ("topic=moved&partition=0&replicas=,", "replicas", "there is no broker ''"),
        ("topic=moved&partition=0&replicas=%C2%B2", "replicas", "there is no broker"),
    ],
)
def test_what_cannot_be_moved_is_said_beside_its_field(guest: Visitor, words: str, field: str, said: str) -> None:
    shown = guest.get(f"{BY_HAND}?{words}")
    assert (shown.status, said in shown.words, marked(shown)) == (400, True, [field]), shown.words
    assert "<script>alert" not in shown.text and "/brokers/balance/apply" not in shown.text


def roles(guest: Visitor) -> dict[int, str]:
    rows = re.findall(r"<tr>.*?</tr>", guest.get("/brokers/quorum").text, re.DOTALL)
    texts = [" ".join(re.sub("<[^>]*>", " ", each).split()).split() for each in rows]
    return {int(each[0]): each[1] for each in texts if each[0].isdecimal()}


def test_voters_go_and_come(guest: Visitor) -> None:
    before = roles(guest)
    assert sorted(before.values()) == ["leader", "voter", "voter"]
    node = next(each for each, role in before.items() if role == "voter")
    leave, come = f"/brokers/quorum/{node}/remove", f"/brokers/quorum/{node}/add"
    assert f'href="{leave}"' in guest.get("/brokers/quorum").text
    shown = guest.get(leave)
    assert "3 now, 2 then" in shown.words and "2 voters are no safer than 1" in shown.words
    wrong = guest.send(leave, leave, name=str(node + 1))
    assert (wrong.status, marked(wrong), roles(guest)) == (400, ["name"], before)
    assert f"Node {node} votes already." in guest.get(come).words
    gone = guest.send(leave, leave, name=str(node))
    assert (gone.path, f"Node {node} no longer votes" in gone.words) == ("/brokers/quorum", True), gone.words
    until(lambda: roles(guest).get(node), lambda role: role == "observer")
    assert f"Node {node} does not vote." in guest.get(leave).words
    other = next(each for each, role in roles(guest).items() if role == "voter")
    assert "2 now, 1 then" in guest.get(f"/brokers/quorum/{other}/remove").words
    again = guest.get(come)
    assert "2 now, 3 then" in again.words and "127.0.0.1:" in again.text
    bad = guest.send(come, come, listen="nowhere:x")
    assert (bad.status, marked(bad), 'value="nowhere:x"' in bad.text) == (400, ["listen"], True)
    told = dict(re.findall('name="(listen|listener)" value="([^"]+)"', again.text))
    back = guest.send(come, come, **told)
    assert f"Node {node} votes" in back.words, back.words
    until(lambda: sorted(roles(guest).values()), lambda found: found == ["leader", "voter", "voter"])
    for path in ("/brokers/quorum/99/add", "/brokers/quorum/99/remove", f"/brokers/quorum/{HOSTILE}/add"):
        shown = guest.get(path)
        assert (shown.status, "<script>" in shown.text) == (404, False)


def test_the_only_voter_stays(broker: EmbeddedBroker, visitor: Visitor) -> None:
    shown = visitor.get("/brokers/quorum/1/remove")
    assert shown.status == 200 and 'method="post"' not in shown.text.partition("<main")[2]
    assert "is the only voter" in shown.words or "are fixed in the property files" in shown.words


def test_read_only_changes_no_voters(cluster: LocalCluster, client: Blocking) -> None:
    with running_console(ConsoleOptions(cluster.bootstrap, port=0, read_only=True)) as console:
        visitor = Visitor(console.url)
        assert "take its vote away" not in visitor.get("/brokers/quorum").words
        for path in ("/brokers/quorum/1/remove", f"{BY_HAND}?topic=moved&partition=0&replicas=1,2,3"):
            shown = visitor.get(path)
            assert (shown.status, 'method="post"' in shown.text) == (200, False), path


def test_a_user_without_rights_changes_no_voters(tmp_path: Path) -> None:
    with SecureBroker(tmp_path / "data") as broker:
        broker.add_user("weak")
        with secured_console(broker) as url:
            weak = signed_in(url, "weak", broker.security_of("weak")["sasl.password"])
            for path in (BY_HAND, "/brokers/quorum/1/remove", "/brokers/quorum/1/add"):
                assert weak.get(path).status == 403, path
            token = {"_token": weak.get("/requests").text.partition('name="_token" value="')[2].partition('"')[0]}
            for path in ("/brokers/quorum/1/remove", "/brokers/quorum/1/add"):
                assert weak.post(path, {**token, "name": "1", "listen": "127.0.0.1:1"}).status in (400, 403)
