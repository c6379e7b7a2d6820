"""Two streams that start at once do not spoil the map that Spark keeps for both."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.processes.node import OttlaNode
from tests.support.waiting import WAIT_S

from ottla.client.blocking.blocking import Blocking
from ottla.spark.runtime.shared_environment import settle_environment


@pytest.mark.spark
def test_streams_that_start_put_nothing_new_into_the_environment(spark: Any, node: OttlaNode, tmp_path: Path) -> None:
    """Spark inserts without a lock: what is to be inserted has to be there before two streams start at once."""
    source = spark._jsparkSession.sessionState().dataSourceManager().lookupDataSource("ottla")
    environment = source.dataSourceCls().envVars()
    for name in [each for each in list(environment) if each.startswith("SPARK_")]:
        environment.remove(name)
    settle_environment(spark)
    names = set(environment)

    def begin(topic: str) -> Any:
        reader = spark.readStream.format("ottla").option("kafka.bootstrap.servers", node.bootstrap)
        rows = reader.option("subscribe", topic).option("startingOffsets", "earliest").load()
        writer = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / topic))
        return writer.trigger(availableNow=True).start()

    with Blocking(node.bootstrap) as client:
        for topic in ("at-once.1", "at-once.2"):
            client.admin.topics.create(topic, 1)
    queries = [begin("at-once.1"), begin("at-once.2")]
    assert all(query.awaitTermination(WAIT_S) for query in queries)
    assert set(environment) == names
    assert environment.size() == len(names)
