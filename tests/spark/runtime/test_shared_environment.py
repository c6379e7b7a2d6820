"""Two streams that start at once do not spoil the map that Spark keeps for both."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.processes.node import OttlaNode
from tests.support.waiting import WAIT_S

from ottla.client.blocking.blocking import Blocking
from ottla.spark import register, topic, unwatch, watch
from ottla.spark.runtime.shared_environment import _VARIABLES, settle_environment


def environment_of(spark: Any) -> Any:
    return spark._jsparkSession.sessionState().dataSourceManager().lookupDataSource("ottla").dataSourceCls().envVars()


def clear(environment: Any) -> None:
    for name in [each for each in list(environment) if each.startswith("SPARK_")]:
        environment.remove(name)


@pytest.mark.spark
@pytest.mark.parametrize("first", ["register", "watch", "topic"])
def test_a_session_of_the_users_own_has_the_environment_from_the_first_use_on(
    spark: Any, node: OttlaNode, first: str
) -> None:
    unwatch(spark)
    clear(environment_of(spark))
    if first == "register":
        register(spark)
    elif first == "watch":
        watch(spark)
        unwatch(spark)
    else:
        with Blocking(node.bootstrap) as client:
            client.admin.topics.create("first-use", 1)
        topic("first-use", spark=spark, bootstrap=node.bootstrap)
    assert {*_VARIABLES} <= {*environment_of(spark)}


@pytest.mark.spark
def test_streams_that_start_put_nothing_new_into_the_environment(spark: Any, node: OttlaNode, tmp_path: Path) -> None:
    """Spark inserts without a lock: what is to be inserted has to be there before two streams start at once."""
    environment = environment_of(spark)
    clear(environment)
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
