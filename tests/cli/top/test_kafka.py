"""`ottla top` and `ottla support-bundle` on a real Kafka: without what it does not tell, which they say."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.bundle.unpacked import bundle
from tests.cli.conftest import invoke
from tests.support.processes.kafka import RealKafka

from ottla.client.blocking.blocking import Blocking
from ottla.model.ids import TopicPartition

pytestmark = pytest.mark.compat


def test_a_real_kafka(real_kafka: RealKafka, tmp_path: Path) -> None:
    with Blocking(real_kafka.bootstrap) as client:
        client.admin.topics.create("watched", 2, 1)
        client.send_all("watched", [(None, b"v")] * 10)
        client.admin.groups.set_offsets("watched", {TopicPartition("watched", 0): 0, TopicPartition("watched", 1): 0})
        words = ("top", "-b", real_kafka.bootstrap, "--once", "-i", "0.2", "--json", "--filter", "watched", "--view")
        (topic,) = invoke(*words, "topics").json["rows"]
        (group,) = invoke(*words, "groups").json["rows"]
        brokers = invoke("top", "-b", real_kafka.bootstrap, "--once", "-i", "0.2", "--json").json
        found, _ = bundle(tmp_path / "kafka.tar.gz", "-b", real_kafka.bootstrap)
        client.admin.groups.delete("watched")
        client.admin.topics.delete("watched")
    assert (topic["records"], topic["partitions"], topic["records/s"]) == (10, 2, 0.0) and topic["bytes"] > 0
    assert (group["lag"], group["read/s"]) == (10, 0.0) and group["seconds"] >= 0
    assert brokers["rows"][0]["leaders"] > 0 and "req/s" not in brokers["rows"][0]
    assert any("ottla.metrics.listener" in each for each in brokers["hints"])
    assert {each.partition(" of ")[0] for each in found.missing} == {"metrics"}
    assert "watched" in found.members["cluster/topics.jsonl"] and "watched" in found.members["cluster/lags.jsonl"]
