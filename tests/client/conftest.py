"""Brokers for the client's tests."""

from collections.abc import Iterator

import pytest
from tests.client.consuming import LIVELY
from tests.support.kafka import RealKafka


@pytest.fixture(scope="package")
def lively_kafka_bootstrap(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real Kafka whose groups do not make anyone wait."""
    kafka = RealKafka(tmp_path_factory.mktemp("kafka"), properties=LIVELY)
    try:
        yield kafka.start().bootstrap
    finally:
        kafka.stop()
