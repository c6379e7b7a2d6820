"""Which changes are refused, with the code and the words of a real Kafka 4.3.1."""

import pytest

from ottla.model.config_checks import (
    check_broker_change,
    check_group_config,
    check_topic_config,
)
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.node_config import NodeConfig

NODE = NodeConfig({"node.id": "1"})
TIERED = NodeConfig({"node.id": "1", "remote.log.storage.system.enable": "true"})
REMOTE = {"remote.storage.enable": "true"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"nope": "1", "retention.ms": "-7"}, "Unknown topic config name: nope"),
        (
            {"retention.ms": "-7", "segment.bytes": "1"},
            "Invalid value 1 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            {"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "50"},
            "conflict topic config setting min.compaction.lag.ms (100) > max.compaction.lag.ms (50)",
        ),
        (
            REMOTE,
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        ),
    ],
)
def test_topics(values: dict[str, str], message: str) -> None:
    with pytest.raises(ApiError) as caught:
        check_topic_config(NODE, values)
    assert (caught.value.code, caught.value.message) == (ErrorCode.INVALID_CONFIG, message)


@pytest.mark.parametrize(
    "values",
    [{}, {"retention.ms": "100", "local.retention.ms": "200"}, {"cleanup.policy": ""}, {"min.insync.replicas": "5"}],
)
def test_good_topics(values: dict[str, str]) -> None:
    check_topic_config(NODE, values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"cleanup.policy": "compact,delete"},
            "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy being an empty list.",
        ),
        (
            {"retention.ms": "100", "local.retention.ms": "200"},
            "Invalid value 200 for configuration local.retention.ms: "
            "Value must not be more than retention.ms property value: 100",
        ),
        (
            {"retention.bytes": "100", "local.retention.bytes": "-1"},
            "Invalid value -1 for configuration local.retention.bytes: "
            "Value must not be -1 as retention.bytes value is set as 100.",
        ),
        (
            {"remote.log.copy.disable": "true", "local.retention.ms": "100"},
            "When `remote.log.copy.disable` is set to true, the `local.retention.ms` and `retention.ms` must be set to "
            "the identical value because there will be no more logs copied to the remote storage.",
        ),
    ],
)
def test_tiered_topics(values: dict[str, str], message: str) -> None:
    with pytest.raises(ApiError) as caught:
        check_topic_config(TIERED, REMOTE | values)
    assert caught.value.message == message


@pytest.mark.parametrize(
    "values", [{}, {"retention.ms": "-1", "local.retention.ms": "-1"}, {"remote.log.copy.disable": "true"}]
)
def test_good_tiered_topics(values: dict[str, str]) -> None:
    check_topic_config(TIERED, REMOTE | values)


def test_tiered_storage_is_not_left_by_accident() -> None:
    with pytest.raises(ApiError, match="invalid to disable remote storage"):
        check_topic_config(TIERED, {}, REMOTE)
    check_topic_config(TIERED, {"remote.log.delete.on.disable": "true"}, REMOTE)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"nope": "1"}, "Unknown group config name: nope"),
        (
            {"consumer.session.timeout.ms": "1"},
            "consumer.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (
            {"consumer.heartbeat.interval.ms": "100000"},
            "consumer.heartbeat.interval.ms must be less than or equal to group.consumer.max.heartbeat.interval.ms",
        ),
        (
            {"share.delivery.count.limit": "100"},
            "share.delivery.count.limit must be less than or equal to group.share.max.delivery.count.limit",
        ),
        (
            {"share.partition.max.record.locks": "100000"},
            "share.partition.max.record.locks must be less than or equal to group.share.max.partition.max.record.locks",
        ),
        (
            {"streams.num.standby.replicas": "5"},
            "streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas",
        ),
    ],
)
def test_groups(values: dict[str, str], message: str) -> None:
    with pytest.raises(ApiError) as caught:
        check_group_config(NODE, values)
    assert (caught.value.code, caught.value.message) == (ErrorCode.INVALID_CONFIG, message)


def test_a_session_must_outlive_its_heartbeats() -> None:
    node = NodeConfig({"group.consumer.min.session.timeout.ms": "1"})
    with pytest.raises(ApiError, match=r"consumer.session.timeout.ms must be greater than consumer.heartbeat.interval"):
        check_group_config(node, {"consumer.session.timeout.ms": "100"})
    check_group_config(NODE, {"consumer.session.timeout.ms": "50000"})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"log.retention.hours": "5"}, "Cannot update these configs dynamically: [log.retention.hours]"),
        ({"num.io.threads": "0"}, "Invalid value 0 for configuration num.io.threads: Value must be at least 1"),
        (
            {"ssl.keystore.location": "/x"},
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            "[ssl.keystore.location]",
        ),
    ],
)
def test_brokers(values: dict[str, str], message: str) -> None:
    with pytest.raises(ApiError) as caught:
        check_broker_change(values, per_broker=True)
    assert (caught.value.code, caught.value.message) == (ErrorCode.INVALID_REQUEST, message)


def test_what_one_broker_has_cannot_be_the_default_of_all() -> None:
    check_broker_change({"listeners": "PLAINTEXT://:1"}, per_broker=True)
    with pytest.raises(ApiError) as caught:
        check_broker_change({"listeners": "PLAINTEXT://:1"}, per_broker=False)
    assert caught.value.message == (
        "Cannot update these configs at default cluster level, broker id must be specified: [listeners]"
    )


def test_good_broker_changes() -> None:
    changes = {"nope": "x", "log.retention.ms": None, "listener.name.a.max.connections": "5", "num.io.threads": "4"}
    check_broker_change(changes, per_broker=False)
