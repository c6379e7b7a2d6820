"""Kafka Streams with its own group protocol (KIP-1071): two instances, crashes of one and of the broker; the tool."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.compat.conftest import Names, Node
from tests.compat.groups.test_groups_tools import rows
from tests.compat.test_streams import HALF, Application
from tests.support.clients.assigned import Java
from tests.support.clients.members import until
from tests.support.java.apps import App
from tests.support.java.programs import CLASSPATH_STREAMS, JavaServer
from tests.support.requests.raw import RawConnection

from ottla.wire.messages.groups.streams_group_describe import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse

Group = StreamsGroupDescribeResponse.DescribedGroup
COMMAND = "org.apache.kafka.tools.streams.StreamsGroupCommand"


def described(bootstrap: str, group: str) -> Group:
    with RawConnection(bootstrap) as connection:
        request = StreamsGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)
        answer = connection.call(request, 0)
    assert isinstance(answer, StreamsGroupDescribeResponse)
    return answer.groups[0]


def tasks(group: Group) -> list[set[tuple[str, int]]]:
    """Of each member."""
    return [
        {(each.subtopology_id, partition) for each in member.assignment.active_tasks for partition in each.partitions}
        for member in group.members
    ]


class Pair:
    """Two instances of one application, on a node that may be killed."""

    def __init__(self, node: Node, name: str, java: Java, directory: Path) -> None:
        self.node, self.name = node, name
        self.first = Application(name, "streams", node.bootstrap, java, directory)
        words = (node.bootstrap, name, str(directory / "second"), "streams")
        self.second = App(directory / "second.log", "ottla.StreamsApp", *words, classpath=CLASSPATH_STREAMS)

    def group(self) -> Group:
        return described(self.node.bootstrap, self.name)

    def shares(self, members: int) -> bool:
        """Whether all tasks are dealt out to so many members."""
        group = self.group()
        return group.group_state == "Stable" and len(group.members) == members and all(tasks(group))

    def said(self) -> str:
        return self.first.app.said() + self.second.said()

    def counted(self, lines: int) -> None:
        until(lambda: len(self.first.counts()["all"]) >= lines, self.said)


@pytest.fixture
def pair(mortal: Node, java_431: Java, new_name: Names, tmp_path: Path) -> Iterator[Pair]:
    made = Pair(mortal, new_name("pair"), java_431, tmp_path)
    yield made
    made.first.app.kill()
    made.second.kill()


@pytest.mark.tool("Kafka Streams 4.3.1")
@pytest.mark.feature("streams groups: two instances, kill -9 of one and of the broker")
def test_two_instances(pair: Pair) -> None:
    pair.first.feed(range(HALF))
    pair.first.app.start()
    pair.second.start()
    until(lambda: pair.shares(2), pair.said)
    one, other = tasks(pair.group())
    assert not one & other
    pair.counted(HALF)
    before = pair.group()
    pair.node.kill()
    pair.node.start()
    pair.first.feed(range(HALF, 2 * HALF))
    pair.counted(2 * HALF)
    after = pair.group()
    assert (after.group_epoch, tasks(after)) == (before.group_epoch, tasks(before))  # nothing was dealt out anew
    pair.second.kill()
    pair.first.feed(range(2 * HALF, 3 * HALF))
    until(lambda: pair.shares(1), pair.said)
    assert set().union(*tasks(pair.group())) == one | other
    pair.counted(3 * HALF)
    words = [word for at in range(3 * HALF) for word in ("all", f"odd-{at % 2}", f"seventh-{at % 7}")]
    assert pair.first.counts() == {word: list(range(1, words.count(word) + 1)) for word in words}


@pytest.mark.tool("kafka-streams-groups 4.3.1")
@pytest.mark.feature("tool")
def test_the_tool(brisk_node: Node, java_431: Java, java_commands: JavaServer, new_name: Names, tmp_path: Path) -> None:
    name = new_name("tooled")
    application = Application(name, "streams", brisk_node.bootstrap, java_431, tmp_path)

    def run(*words: str, code: int = 0) -> str:
        words = ("--bootstrap-server", brisk_node.bootstrap, *words)
        answer = java_commands.ask({"main": COMMAND, "args": list(words), "stdin": ""})
        assert answer["code"] == code, answer
        return str(answer["out"] + answer["err"])

    application.feed(range(HALF))
    application.app.start()
    try:
        until(lambda: len(application.counts()["all"]) >= HALF, application.app.said)
        assert name in run("--list").split()
        assert rows(run("--list", "--state"), name, "Stable")
        assert rows(run("--describe", "--group", name, "--state"), name, "Stable")[0][-1] == "1"
        (member,) = rows(run("--describe", "--group", name, "--members", "--verbose"), name, "streams")
        assert "ACTIVE:" in member
        lines = rows(run("--describe", "--group", name, "--offsets", "--verbose"), f"{name}-lines")
        assert sum(int(each[3]) for each in lines) == HALF
        assert "is not EMPTY" in run("--delete", "--group", name)
    finally:
        application.app.kill()
    until(lambda: described(brisk_node.bootstrap, name).group_state == "Empty", application.app.said)
    topic = ("--group", name, "--input-topic", f"{name}-lines")
    for mode in ("--dry-run", "--execute"):
        plan = rows(run("--reset-offsets", *topic, "--to-earliest", mode), f"{name}-lines")
        assert sorted(each[2:] for each in plan) == [["0", "0"], ["1", "0"]]
    deleted = rows(run("--delete-offsets", *topic), f"{name}-lines", "Successful")
    assert sorted(each[1] for each in deleted) == ["0", "1"]
    assert "was successful" in run("--delete", "--group", name)
    assert name not in run("--list").split()
