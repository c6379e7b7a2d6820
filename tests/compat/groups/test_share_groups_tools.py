"""Kafka's tools for share groups, and its readers of their internal topics, tell the same of Ottla as of a Kafka."""

import json
from collections.abc import Callable, Iterator

import pytest
from tests.compat.conftest import Names
from tests.support.clients.assigned import Java, Message
from tests.support.java.journals import journal_words
from tests.support.java.programs import JavaServer
from tests.support.requests.same import Both, Plain, Side
from tests.support.requests.shares import LEAVE, ShareTalk

from ottla.model.ids import uuid_text

TOOLS = "org.apache.kafka.tools."
SHARES = TOOLS + "consumer.group.ShareGroupCommand"
CONSOLE = TOOLS + "consumer.ConsoleConsumer"
OF_THE_MOMENT = ("createTimestamp", "writeTimestamp", "assignmentTimestamp", "metadataHash")
Run = Callable[..., str]


@pytest.fixture
def run(java_commands: JavaServer) -> Run:
    """run(side, main, *words): the tool's output."""

    def call(side: Side, main: str, *words: str) -> str:
        words = ("--bootstrap-server", side.bootstrap, *words)
        answer = java_commands.ask({"main": main, "args": list(words), "stdin": ""})
        return str(answer["out"] + answer["err"])

    return call


def lines(out: str) -> Plain:
    """What is printed, whatever the widths of the columns and the order of the rows."""
    return sorted(" ".join(line.split()) for line in out.splitlines() if line.strip())


def test_share_groups_command(both: Both, java_431: Java, run: Run, new_name: Names) -> None:
    topic, name = new_name("topic"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        def tool(*words: str) -> Plain:
            return lines(run(side, SHARES, *words).replace(side.bootstrap, "ADDRESS"))

        side.create(topic, 2)
        java_431.produce(side.bootstrap, topic, 0, [Message(b"x")] * 7)
        group = ShareTalk(side, name)
        group.join("anna", topic)
        for what in ((), ("--members", "--verbose"), ("--state", "--verbose"), ("--verbose",)):
            yield tool("--describe", "--group", name, *what)
        yield [line for line in tool("--list", "--state") if name in line]
        yield tool("--group", name, "--topic", topic, "--reset-offsets", "--to-earliest", "--execute")
        yield tool("--delete", "--group", name)
        group.beat("anna", LEAVE)
        yield tool("--group", name, "--topic", topic, "--reset-offsets", "--to-earliest", "--dry-run")
        yield tool("--group", name, "--topic", topic, "--reset-offsets", "--to-latest", "--execute")
        yield tool("--describe", "--group", name)
        yield tool("--group", name, "--all-topics", "--reset-offsets", "--to-earliest", "--execute")
        yield tool("--describe", "--group", name)
        yield tool("--describe", "--group", name, "--state")
        yield tool("--group", name, "--topic", topic, "--delete-offsets")
        yield tool("--describe", "--group", name)
        yield tool("--delete", "--group", name)
        yield tool("--describe", "--group", name)

    both.same(script)


def test_internal_topics(both: Both, run: Run, new_name: Names) -> None:
    """The journals of both coordinators, record by record."""
    topic, name = new_name("topic"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        def read(internal: str, key: str, formatter: str) -> Plain:
            out = run(side, CONSOLE, *journal_words(side.bootstrap, internal, key, formatter))
            return [_plain(each, side) for each in records(out) if each["key"]["data"]["groupId"] == name]

        topic_id = side.create(topic, 1)
        group = ShareTalk(side, name)
        group.join("anna", topic)
        group.beat("anna", LEAVE)
        group.alter({topic: {0: 5}})
        group.delete_offsets(topic)
        key = f"{name}:{uuid_text(topic_id)}:0"
        yield read("__share_group_state", key, "group.share.ShareGroupStateMessageFormatter")
        yield read("__consumer_offsets", name, "ShareGroupMessageFormatter")

    assert all(len(records) > 1 for records in both.same(script))


def records(out: str) -> Iterator[Plain]:
    """The formatters print one record after the other, with or without a line between them."""
    at = out.find("{")
    while at >= 0:
        found, end = json.JSONDecoder().raw_decode(out, at)
        yield found
        at = out.find("{", end)


def _plain(value: Plain, side: Side) -> Plain:
    if isinstance(value, dict):
        return {key: "MOMENT" if key in OF_THE_MOMENT else _plain(each, side) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each, side) for each in value]
    names = {uuid_text(topic_id): name for name, topic_id in side.ids.items()}
    return names.get(value, value) if isinstance(value, str) else value
