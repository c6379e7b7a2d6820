"""`ottla doctor` on a real Kafka: all checks but that of the registry can be made, and it finds what was done."""

from __future__ import annotations

import pytest
from tests.cli.doctor.diagnoses import Told
from tests.support.processes.kafka import RealKafka

from ottla.client.blocking.blocking import Blocking
from ottla.model.ids import TopicPartition
from ottla.model.resources import Resource
from ottla.operations.doctor.catalogue import CLUSTER, SETTINGS

pytestmark = pytest.mark.compat


def test_a_real_kafka(real_kafka: RealKafka) -> None:
    with Blocking(real_kafka.bootstrap) as client:
        client.admin.topics.create("doctored", 1, 1, {"segment.ms": "60000"})
        client.send_all("doctored", [(None, b"v")] * 10)
        client.admin.groups.set_offsets("doctored", {TopicPartition("doctored", 0): 4})
        found = Told("-b", real_kafka.bootstrap, "--sample", "0s")
        made = found.checks | found.fine
        assert set(found.not_checked) <= {"registry-unreachable"}, found.not_checked
        assert made | set(found.not_checked) == {each.id for each in (*CLUSTER.all, *SETTINGS.all)}
        assert "doctored: up to 10080 segments" in found.what("segments-short")
        assert "group doctored: 6 records in doctored-0" in found.what("group-abandoned")
        client.admin.configs.set(Resource.topic("doctored"), {"segment.ms": None})
        client.admin.groups.delete("doctored")
        again = Told("-b", real_kafka.bootstrap, "--sample", "0s")
        assert "doctored" not in again.what("segments-short") + again.what("group-abandoned")
        client.admin.topics.delete("doctored")
