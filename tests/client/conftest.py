"""Brokers for the client's tests."""

from collections.abc import Iterator

import pytest
from tests.client.consuming import LIVELY
from tests.support.processes.kafka import RealKafka


@pytest.fixture(scope="session")
def lively_kafka_bootstrap(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real Kafka whose groups do not make anyone wait. A scope of the package would end with every file: a worker
    runs files of all folders by turns."""
    kafka = RealKafka(tmp_path_factory.mktemp("kafka"), properties=LIVELY)
    try:
        yield kafka.start().bootstrap
    finally:
        kafka.stop()
