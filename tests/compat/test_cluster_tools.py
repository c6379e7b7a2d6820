"""Kafka's cluster tools against three of our nodes and three of Kafka's: the same words, the same answers.

What must differ (ids, addresses, paths, how far a log has grown) is blanked before the comparison.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.java.programs import CLASSPATH_431, JavaServer, command
from tests.support.processes.clusters import KafkaCluster, OttlaCluster, ProcessCluster
from tests.support.requests.raw import RawConnection
from tests.support.waiting import until

from ottla.wire.messages.topics.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ottla.wire.messages.topics.elect_leaders import ElectLeadersRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

TOOLS = "org.apache.kafka.tools."
REASSIGN = TOOLS + "reassign.ReassignPartitionsCommand"
SPREAD = "1:2:3,2:3:1,3:1:2"

Run = Callable[..., str]


class Both:
    """The two clusters; `same` runs a tool on both and wants the same of them."""

    def __init__(self, ours: ProcessCluster, theirs: ProcessCluster, tools: JavaServer) -> None:
        self.ours, self.theirs = ours, theirs
        self._tools = tools

    def run(
        self, cluster: ProcessCluster, main: str, *words: str, controllers: bool = False, verb: str = ""
    ) -> tuple[int, str]:
        """Exit code and what it said; `verb` is for tools that want it before everything else."""
        address = (
            ("--bootstrap-controller", cluster.controllers)
            if controllers
            else ("--bootstrap-server", cluster.bootstrap)
        )
        answer = self._tools.ask({"main": main, "args": [*filter(None, [verb]), *address, *words], "stdin": ""})
        return int(answer["code"]), blanked(cluster, str(answer["out"] + answer["err"]))

    def same(self, main: str, *words: str, controllers: bool = False) -> str:
        code, ours = self.run(self.ours, main, *words, controllers=controllers)
        expected_code, theirs = self.run(self.theirs, main, *words, controllers=controllers)
        assert (code, ours) == (expected_code, theirs)
        return ours

    def soon(self, main: str, *words: str, wanted: str = "", controllers: bool = False) -> str:
        """For words that only ask: what they answer once both answer the same, and say `wanted`.

        A broker of Kafka's knows a change a moment after the controller, on a busy machine a long one.
        """
        answers = until(
            lambda: [self.run(cluster, main, *words, controllers=controllers) for cluster in sides(self)],
            lambda found: found[0] == found[1] and wanted in found[0][1],
        )
        return answers[0][1]

    def create(self, topic: str, assignment: str, *words: str) -> None:
        """A topic that every broker of both clusters knows afterwards, whichever of them a tool asks."""
        self.same(TOOLS + "TopicCommand", "--create", "--topic", topic, "--replica-assignment", assignment, *words)
        for address in [cluster.address(id) for cluster in sides(self) for id in cluster.ids]:
            until(lambda at=address: leaders(at, topic), lambda found: found and -1 not in found)


def leaders(address: str, topic: str) -> list[int]:
    """Who leads its partitions, as far as one broker knows."""
    with RawConnection(address) as connection:
        answer = connection.call(
            MetadataRequest(topics=[MetadataRequest.Topic(name=topic)], allow_auto_topic_creation=False), 12
        )
    return [each.leader_id for each in answer.topics[0].partitions]


def blanked(cluster: ProcessCluster, text: str) -> str:
    for id in cluster.ids:
        text = text.replace(cluster.address(id), f"<broker {id}>")
        text = text.replace(cluster.controller_address(id), f"<controller {id}>")
        text = text.replace(str(cluster.data_directory(id)), f"<data {id}>")
        text = text.replace(f"Port: {cluster.ports[id]}", "Port: <port>")
        text = text.replace(f"Local controller {id} ", "Local controller <leader> ")  # whoever was elected
        text = text.replace(str(cluster.ports[id]), f"<port {id}>")
        text = text.replace(str(cluster.controller_ports[id]), f"<controller port {id}>")
    text = re.sub(r"\b[A-Za-z0-9_-]{22}\b", "<id>", text)
    text = re.sub(r"OpenJDK 64-Bit Server VM warning:.*\n", "", text)
    return text


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    directory = tmp_path_factory.mktemp("clusters")
    clusters = (OttlaCluster(directory / "ottla"), KafkaCluster(directory / "kafka", heap="256m"))
    tools = JavaServer("ottla.ToolServer", directory / "tools.log")
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda cluster: cluster.start(), clusters))
        yield Both(*clusters, tools)
    finally:
        for cluster in clusters:
            cluster.stop()
        tools.close()


def test_topics(both: Both) -> None:
    main = TOOLS + "TopicCommand"
    both.create("spread", SPREAD, "--config", "retention.ms=7000000")
    described = both.soon(main, "--describe", "--topic", "spread", wanted="Partition: 2\tLeader: 3")
    assert "Replicas: 1,2,3" in described and "Isr: " in described
    both.soon(main, "--describe", "--under-replicated-partitions")
    both.soon(main, "--describe", "--under-min-isr-partitions")
    both.soon(main, "--describe", "--unavailable-partitions")
    both.same(main, "--alter", "--topic", "spread", "--partitions", "4", "--replica-assignment", f"{SPREAD},1:3:2")
    both.soon(main, "--describe", "--topic", "spread", wanted="Partition: 3\tLeader: 1")
    both.same(main, "--create", "--topic", "too-many", "--replication-factor", "4")
    both.same(main, "--create", "--topic", "nowhere", "--replica-assignment", "1:9")
    both.same(main, "--create", "--topic", "spread")
    both.soon(main, "--list")


def test_configs(both: Both) -> None:
    main = "kafka.admin.ConfigCommand"
    both.create("set", SPREAD)
    both.same(main, "--alter", "--topic", "set", "--add-config", "min.insync.replicas=3,segment.bytes=2000000")
    both.soon(main, "--describe", "--topic", "set")
    both.same(main, "--alter", "--broker-defaults", "--add-config", "log.cleaner.threads=2")
    both.soon(main, "--describe", "--broker-defaults")
    both.same(main, "--alter", "--broker", "2", "--add-config", "follower.replication.throttled.rate=1000000")
    both.soon(main, "--describe", "--broker", "2")
    both.same(main, "--alter", "--broker", "2", "--delete-config", "follower.replication.throttled.rate")
    both.same(main, "--alter", "--topic", "set", "--add-config", "no.such=1")


def test_reassignment(both: Both, tmp_path: Path) -> None:
    both.create("moved", "1:2,2:1")
    plan = tmp_path / "plan.json"
    moves = [{"topic": "moved", "partition": index, "replicas": [3, 1]} for index in range(2)]
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    words = ("--reassignment-json-file", str(plan))
    both.same(REASSIGN, *words, "--execute", "--throttle", "50000000")
    both.soon(REASSIGN, *words, "--verify", wanted="Clearing topic-level throttles")
    both.soon(TOOLS + "TopicCommand", "--describe", "--topic", "moved", wanted="Replicas: 3,1")
    both.soon(REASSIGN, *words, "--verify")  # the throttles are gone
    both.soon("kafka.admin.ConfigCommand", "--describe", "--topic", "moved")
    both.same(REASSIGN, *words, "--cancel")
    both.soon(REASSIGN, "--list")
    plan.write_text(json.dumps({"version": 1, "partitions": [moves[0] | {"replicas": [7, 1]}]}))
    both.same(REASSIGN, *words, "--execute")


def test_leader_election(both: Both, tmp_path: Path) -> None:
    main = TOOLS + "LeaderElectionCommand"
    both.create("led", "1:2:3,2:3:1")
    for cluster in sides(both):  # so that somebody else leads
        follower = next(id for id in (1, 2) if id != cluster.controller())
        cluster.stop_node(follower)
        cluster.start_node(follower)
    both.same(main, "--election-type", "preferred", "--topic", "no-such-topic", "--partition", "0")
    for cluster in sides(both):

        def elected(cluster: ProcessCluster = cluster) -> list[int]:
            both.run(cluster, main, "--election-type", "preferred", "--all-topic-partitions")
            return [cluster.leader_of("led", index) for index in range(2)]

        until(elected, lambda found: found == [1, 2])
    both.same(main, "--election-type", "preferred", "--topic", "led", "--partition", "0")
    both.same(main, "--election-type", "unclean", "--topic", "led", "--partition", "1")


def test_metadata_quorum(both: Both) -> None:
    main = TOOLS + "MetadataQuorumCommand"
    for controllers in (False, True):
        status = [both.run(cluster, main, "describe", "--status", controllers=controllers) for cluster in sides(both)]
        ours, theirs = (
            (code, re.sub(r"(LeaderId|LeaderEpoch|HighWatermark|MaxFollowerLag\w*):\s+-?\d+", r"\1: <n>", text))
            for code, text in status
        )
        assert ours == theirs
    for cluster in sides(both):
        code, text = both.run(cluster, main, "describe", "--replication")
        rows = [line.split() for line in text.splitlines() if line.strip()]
        assert code == 0 and rows[0][:2] == ["NodeId", "DirectoryId"]
        assert sorted(row[0] for row in rows[1:]) == ["1", "2", "3"]
        assert sorted(row[-1] for row in rows[1:]) == ["Follower", "Follower", "Leader"]


def test_what_is_refused(both: Both) -> None:
    """What the tools check themselves before they ask: the codes, and the words where Kafka has some of its own."""
    both.create("kept", SPREAD)
    both.soon(TOOLS + "TopicCommand", "--describe", "--topic", "kept", wanted="Partition: 2\tLeader: 3")
    for partition, replicas, may_change in (
        (1, [], True),
        (1, [9], True),
        (1, [-1], True),
        (1, [2, 2], True),
        (9, [1], True),
        (1, [2], False),
        (1, None, True),
        (1, [2, 3, 1], False),
    ):
        wanted = AlterPartitionReassignmentsRequest.ReassignableTopic
        moved = wanted.ReassignablePartition(partition_index=partition, replicas=replicas)
        request = AlterPartitionReassignmentsRequest(
            topics=[wanted(name="kept", partitions=[moved])], allow_replication_factor_change=may_change
        )
        ours, theirs = (cluster.ask(request, 1) for cluster in sides(both))
        assert repr(ours) == repr(theirs)
    for kind, names in ((0, ["kept", "no-such"]), (1, ["kept"]), (5, ["kept"]), (0, []), (1, None)):
        topics = None
        if names is not None:
            topics = [ElectLeadersRequest.TopicPartitions(topic=name, partitions=[0, 7]) for name in names]
        answers = [
            cluster.ask(ElectLeadersRequest(election_type=kind, topic_partitions=topics), 2) for cluster in sides(both)
        ]
        ours, theirs = (
            (
                answer.error_code,
                sorted(
                    (topic.topic, each.partition_id, each.error_code)
                    for topic in answer.replica_election_results
                    for each in topic.partition_result
                ),
            )
            for answer in answers
        )
        assert ours == theirs


def sides(both: Both) -> tuple[ProcessCluster, ProcessCluster]:
    return both.ours, both.theirs


def test_features(both: Both) -> None:
    main = TOOLS + "FeatureCommand"
    described = [both.run(cluster, main, "describe") for cluster in sides(both)]
    ours, theirs = ((code, re.sub(r"Epoch: \d+", "Epoch: <n>", text)) for code, text in described)
    assert ours == theirs
    both.same(main, "upgrade", "--feature", "group.version=9")
    both.same(main, "downgrade", "--feature", "transaction.version=1", "--dry-run")


def test_log_dirs(both: Both) -> None:
    both.create("lying", "1:2:3")
    words = ("--describe", "--broker-list", "1,2,3", "--topic-list", "lying")

    def found() -> list[tuple[int, list[dict[str, object]]]]:
        answers = [both.run(cluster, TOOLS + "LogDirsCommand", *words) for cluster in sides(both)]
        return [
            (code, sorted(json.loads(text.splitlines()[-1])["brokers"], key=lambda broker: str(broker["broker"])))
            for code, text in answers
        ]

    until(found, lambda answers: answers[0] == answers[1])  # every follower has its replica by then


def test_cluster(both: Both) -> None:
    main = TOOLS + "ClusterTool"
    for words in (["cluster-id"], ["list-endpoints"], ["unregister", "--id", "77"]):
        answers = []
        for cluster in sides(both):
            answer = both._tools.ask(
                {"main": main, "args": [words[0], "--bootstrap-server", cluster.bootstrap, *words[1:]], "stdin": ""}
            )
            answers.append((answer["code"], sorted(blanked(cluster, answer["out"] + answer["err"]).splitlines())))
        assert answers[0] == answers[1]


def test_replica_verification(both: Both) -> None:
    """It runs until it is ended, and tells the largest lag between replicas each second."""
    both.create("verified", "1:2:3,2:3:1")
    for cluster in sides(both):
        words = ("--broker-list", cluster.bootstrap, "--topics-include", "verified", "--report-interval-ms", "1000")
        process = subprocess.Popen(
            command(TOOLS + "ReplicaVerificationTool", *words, classpath=CLASSPATH_431),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            assert process.stdout is not None
            said = ""
            for line in process.stdout:
                said += line
                if "max lag is" in line:
                    assert "max lag is 0 for partition" in line, said
                    break
            else:
                pytest.fail(f"{cluster.kind}: {said}")
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
