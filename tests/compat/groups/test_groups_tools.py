"""Kafka's own command-line tools for groups, share groups and transactions, and its readers of the internal topics."""

import json
import re
from collections.abc import Callable

import pytest
from tests.compat.conftest import Names, Node
from tests.support.clients.assigned import Java, Message
from tests.support.clients.members import JavaGroups, Joining, Member, until
from tests.support.java.journals import journal_words
from tests.support.java.programs import JavaServer, run_tool
from tests.support.waiting import WAIT_MS

TOOLS = "org.apache.kafka.tools."
GROUPS = TOOLS + "consumer.group.ConsumerGroupCommand"
SHARES = TOOLS + "consumer.group.ShareGroupCommand"
CONSOLE = TOOLS + "consumer.ConsoleConsumer"
Run = Callable[..., str]


@pytest.fixture
def run(java_commands: JavaServer, brisk_node: Node) -> Run:
    """run(main, *words, code): the tool's output; the node's address is added."""

    def call(main: str, *words: str, code: int = 0, stdin: str = "") -> str:
        words = ("--bootstrap-server", brisk_node.bootstrap, *words)
        answer = java_commands.ask({"main": main, "args": list(words), "stdin": stdin})
        assert answer["code"] == code, answer
        return str(answer["out"] + answer["err"])

    return call


@pytest.fixture
def filled(brisk_node: Node, java_431: Java, new_name: Names) -> str:
    """A topic of two partitions with ten records each."""
    topic = new_name("tool")
    java_431.ask("create_topic", brisk_node.bootstrap, topic=topic, partitions=2)
    for partition in range(2):
        sent = [Message(b"value %d-%d" % (partition, at)) for at in range(10)]
        java_431.produce(brisk_node.bootstrap, topic, partition, sent)
    return topic


def rows(out: str, *words: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines() if all(word in line.split() for word in words)]


def joined(java: Java, bootstrap: str, group: str, topic: str, protocol: str) -> Member:
    """A member that has received everything and committed it."""
    member = JavaGroups(java._server, java.version).join(bootstrap, Joining(group, [topic], protocol))
    until(lambda: len(member.state().records) == 20, member.state)
    member.commit()
    return member


@pytest.mark.tool("kafka-consumer-groups 4.3.1")
@pytest.mark.feature("tool")
@pytest.mark.parametrize("protocol", ["range", "consumer"])
def test_consumer_groups(
    protocol: str, run: Run, brisk_node: Node, java_431: Java, new_name: Names, filled: str
) -> None:
    group = new_name("tool-group")
    member = joined(java_431, brisk_node.bootstrap, group, filled, protocol)
    java_431.produce(brisk_node.bootstrap, filled, 1, [Message(b"x")] * 3)
    kind = "Classic" if protocol == "range" else "Consumer"
    assert group in run(GROUPS, "--list").split()
    assert rows(run(GROUPS, "--list", "--state"), group) == [[group, "Stable"]]
    assert rows(run(GROUPS, "--list", "--type"), group) == [[group, kind]]
    described = rows(run(GROUPS, "--describe", "--group", group), group, filled)
    lags = {row[2]: (row[-6], row[-5], row[-4]) for row in described}
    assert lags == {"0": ("10", "10", "0"), "1": ("10", "13", "3")}
    members = rows(run(GROUPS, "--describe", "--group", group, "--members", "--verbose"), group)
    assert len(members) == 1 and f"{filled}:0,1" in "".join(members[0])
    state = rows(run(GROUPS, "--describe", "--group", group, "--state"), group)
    assert "Stable" in state[0] and state[0][-1] == "1"
    member.leave()
    run(GROUPS, "--group", group, "--topic", filled, "--reset-offsets", "--to-offset", "4", "--execute")
    assert java_431.ask("committed", brisk_node.bootstrap, group=group) == {f"{filled}-0": 4, f"{filled}-1": 4}
    exported = run(GROUPS, "--group", group, "--topic", filled, "--reset-offsets", "--to-earliest", "--export")
    assert {f"{filled},0,0", f"{filled},1,0"} <= set(exported.splitlines())
    run(GROUPS, "--group", group, "--topic", f"{filled}:1", "--delete-offsets")
    assert java_431.ask("committed", brisk_node.bootstrap, group=group) == {f"{filled}-0": 4}
    assert "was successful" in run(GROUPS, "--group", group, "--delete")
    assert group not in run(GROUPS, "--list").split()


@pytest.mark.tool("kafka-groups 4.3.1")
@pytest.mark.feature("tool")
def test_groups(run: Run, brisk_node: Node, java_431: Java, new_name: Names, filled: str) -> None:
    group = new_name("tool-groups")
    member = joined(java_431, brisk_node.bootstrap, group, filled, "range")
    assert rows(run(TOOLS + "GroupsCommand", "--list"), group) == [[group, "Classic", "consumer"]]
    member.leave()


@pytest.mark.tool("kafka-console-consumer 4.3.1")
@pytest.mark.feature("tool")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_console_consumer_in_a_group(
    protocol: str, run: Run, brisk_node: Node, java_431: Java, new_name: Names, filled: str
) -> None:
    group = new_name("console")
    words = ("--topic", filled, "--group", group, "--from-beginning", "--max-messages", "20", "--timeout-ms", WAIT_MS)
    out = run(CONSOLE, *words, "--command-property", f"group.protocol={protocol}")
    wanted = sorted(f"value {partition}-{at}" for partition in range(2) for at in range(10))
    assert sorted(line for line in out.splitlines() if line.startswith("value")) == wanted
    assert java_431.ask("committed", brisk_node.bootstrap, group=group) == {f"{filled}-0": 10, f"{filled}-1": 10}


@pytest.mark.tool("kafka-consumer-perf-test 4.3.1")
@pytest.mark.feature("tool")
def test_consumer_performance(run: Run, filled: str, new_name: Names) -> None:
    group = new_name("perf")
    words = ("--topic", filled, "--num-records", "20", "--group", group, "--hide-header", "--timeout", WAIT_MS)
    out = run(TOOLS + "ConsumerPerformance", *words)
    assert out.strip().splitlines()[-1].split(", ")[4] == "20"


@pytest.mark.tool("kafka-e2e-latency 4.3.1")
@pytest.mark.feature("tool")
def test_end_to_end_latency(run: Run, filled: str) -> None:
    words = ("--topic", filled, "--num-records", "20", "--producer-acks", "all", "--record-size", "100")
    assert "Percentiles" in run(TOOLS + "EndToEndLatency", *words)


@pytest.mark.tool("kafka-verifiable-consumer 4.3.1")
@pytest.mark.feature("tool")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_verifiable_consumer(protocol: str, brisk_node: Node, java_431: Java, new_name: Names, filled: str) -> None:
    """In a JVM of its own: it reports when the JVM ends."""
    group = new_name("verifiable")
    words = ("--bootstrap-server", brisk_node.bootstrap, "--topic", filled, "--group-id", group, "--max-messages", "20")
    done = run_tool(TOOLS + "VerifiableConsumer", *words, "--group-protocol", protocol, "--reset-policy", "earliest")
    assert done.returncode == 0, done
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert sum(event["count"] for event in events if event["name"] == "records_consumed") == 20
    assert all(event["success"] for event in events if event["name"] == "offsets_committed")
    assert java_431.ask("committed", brisk_node.bootstrap, group=group) == {f"{filled}-0": 10, f"{filled}-1": 10}


@pytest.mark.tool("kafka-share-groups, kafka-console-share-consumer, kafka-share-consumer-perf-test 4.3.1")
@pytest.mark.feature("tool")
def test_share_tools(run: Run, brisk_node: Node, java_431: Java, new_name: Names, filled: str) -> None:
    group, other = new_name("share-tool"), new_name("share-perf")

    def lags() -> dict[str, str]:
        return {row[2]: row[4] for row in rows(run(SHARES, "--describe", "--group", group), group, filled)}

    for each in (group, other):
        operations = [["SET", "share.auto.offset.reset", "earliest"]]
        java_431.ask("alter_configs", brisk_node.bootstrap, type="GROUP", name=each, operations=operations)
    words = ("--topic", filled, "--group", group, "--max-messages", "20", "--timeout-ms", WAIT_MS)
    out = run(TOOLS + "consumer.ConsoleShareConsumer", *words)
    wanted = sorted(f"value {partition}-{at}" for partition in range(2) for at in range(10))
    assert sorted(line for line in out.splitlines() if line.startswith("value")) == wanted
    words = ("--topic", filled, "--num-records", "20", "--group", other, "--hide-header", "--timeout", WAIT_MS)
    out = run(TOOLS + "ShareConsumerPerformance", *words)
    assert out.strip().splitlines()[-1].split(", ")[5] == "20", out

    assert {group, other} <= set(run(SHARES, "--list").split())
    until(lambda: lags() == {"0": "0", "1": "0"}, lags)
    assert "Empty" in rows(run(SHARES, "--describe", "--group", group, "--state"), group)[0]
    run(SHARES, "--group", group, "--topic", filled, "--reset-offsets", "--to-earliest", "--execute")
    assert lags() == {"0": "10", "1": "10"}
    run(SHARES, "--group", group, "--topic", filled, "--delete-offsets")
    assert filled not in run(SHARES, "--describe", "--group", group)
    run(SHARES, "--delete", "--group", group)
    assert group not in run(SHARES, "--list").split()
    topic_id = java_431.ask("describe_topic", brisk_node.bootstrap, topic=filled)["id"]
    formatter = "group.share.ShareGroupStateMessageFormatter"
    out = read_internal(run, brisk_node, "__share_group_state", f"{other}:{topic_id}:0", formatter)
    assert f'"groupId":"{other}","topicId":"{topic_id}","partition":0' in out


@pytest.mark.tool("kafka-transactions 4.3.1")
@pytest.mark.feature("tool")
def test_transactions(run: Run, brisk_node: Node, java_431: Java, new_name: Names, filled: str) -> None:
    main, identity = TOOLS + "TransactionsCommand", new_name("tool-id")
    producer = JavaGroups(java_431._server, java_431.version).transactional(brisk_node.bootstrap, identity)
    producer.begin()
    producer.send(filled, 0, ["open"])
    assert "Ongoing" in rows(run(main, "list"), identity)[0]
    out = run(main, "describe", "--transactional-id", identity)
    assert "Ongoing" in out and f"{filled}-0" in out
    states = run(main, "describe-producers", "--topic", filled, "--partition", "0")
    open_at = [row for row in rows(states) if row[-1] == "10"]
    assert len(open_at) == 1, states  # the offset at which the one open transaction began
    run(main, "abort", "--topic", filled, "--partition", "0", "--start-offset", "10")
    assert rows(run(main, "describe-producers", "--topic", filled, "--partition", "0"))[-1][-1] == "None"
    assert "open" not in [each.value for each in java_431.drain(brisk_node.bootstrap, filled)]


def read_internal(run: Run, node: Node, topic: str, key: str, formatter: str) -> str:
    """The partition of an internal topic that the key (a group, a transactional id) has, by Kafka's own formatter."""
    return run(CONSOLE, *journal_words(node.bootstrap, topic, key, formatter))


@pytest.mark.tool("console formatters of the internal topics 4.3.1")
@pytest.mark.feature("tool")
def test_internal_topics(run: Run, brisk_node: Node, java_431: Java, new_name: Names, filled: str) -> None:
    classic, newer, identity = new_name("inside-classic"), new_name("inside-newer"), new_name("inside-id")
    for group, protocol in ((classic, "range"), (newer, "consumer")):
        joined(java_431, brisk_node.bootstrap, group, filled, protocol).leave()
    producer = JavaGroups(java_431._server, java_431.version).transactional(brisk_node.bootstrap, identity)
    producer.begin()
    producer.send(filled, 1, ["inside"])
    producer.commit()
    producer.close()

    for group in (classic, newer):
        out = read_internal(run, brisk_node, "__consumer_offsets", group, "OffsetsMessageFormatter")
        for partition in range(2):
            key = f'"group":"{group}","topic":"{filled}","partition":{partition}'
            assert re.search(rf'{key}\}}\}},"value":\{{"version":\d,"data":\{{"offset":10,', out), out[-2000:]
    out = read_internal(run, brisk_node, "__consumer_offsets", classic, "GroupMetadataMessageFormatter")
    assert f'"group":"{classic}"' in out and '"protocolType":"consumer"' in out
    out = read_internal(run, brisk_node, "__transaction_state", identity, "TransactionLogMessageFormatter")
    assert f'"transactionalId":"{identity}"' in out and '"transactionStatus":4' in out
    sizes = run(TOOLS + "GetOffsetShell", "--topic-partitions", "__consumer_offsets,__transaction_state").split()
    assert len(sizes) == 100 and sum(int(line.rsplit(":", 1)[1]) > 0 for line in sizes) >= 3
