"""A transaction that no coordinator knows of holds readers up for ever: Kafka's tool finds it and ends it."""

from pathlib import Path

import pytest
from tests.support.java.programs import run_tool
from tests.support.processes.kafka import SINGLE_NODE
from tests.support.processes.node import OttlaNode
from tests.support.requests.same import Side
from tests.support.requests.transactional import Transactional

from ottla.wire.messages.records.list_offsets import ListOffsetsRequest

TOOL = "org.apache.kafka.tools.TransactionsCommand"


def stable_end(side: Side, topic: str) -> int:
    asked = ListOffsetsRequest.Topic
    wanted = asked(name=topic, partitions=[asked.Partition(partition_index=0, timestamp=-1)])
    answer = side.call(ListOffsetsRequest(replica_id=-1, isolation_level=1, topics=[wanted]), 9)
    return int(answer["topics"][0]["partitions"][0]["offset"])


@pytest.mark.tool("kafka-transactions 4.3.1")
@pytest.mark.feature("tool")
@pytest.mark.usefixtures("java_tools")
def test_find_hanging_and_abort(tmp_path: Path) -> None:
    # As it was before KIP-890: a late batch opens a transaction that the coordinator has not heard of.
    properties = SINGLE_NODE | {"transaction.partition.verification.enable": "false"}
    node = OttlaNode(tmp_path, properties=properties).start()
    side = Side("ottla", node.bootstrap)
    try:
        side.create("t")
        one = Transactional(side, "x").find().begin()
        one.produce("t", version=10)
        assert stable_end(side, "t") == 0
        where = ("--bootstrap-server", node.bootstrap)
        found = run_tool(
            TOOL, *where, "find-hanging", "--broker-id", "1", "--max-transaction-timeout", "0", "--topic", "t"
        )
        assert found.returncode == 0, found.stderr
        row = found.stdout.splitlines()[-1].split()
        assert row[:3] == ["t", "0", str(one.producer_id)], found.stdout
        ended = run_tool(TOOL, *where, "abort", "--topic", "t", "--partition", "0", "--start-offset", "0")
        assert ended.returncode == 0, ended.stderr
        assert stable_end(side, "t") == 2
    finally:
        side.close()
        node.stop()
