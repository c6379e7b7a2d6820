"""Config: precedence, synonyms, sharing, unknown names."""

import pytest

from ottla.model import topic_settings
from ottla.model.broker_settings import BROKER_SETTINGS
from ottla.model.config import declared, unknown, without_effect
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.group_settings import CONSUMER_SESSION_TIMEOUT_MS
from ottla.model.node_config import NodeConfig
from ottla.model.settings import log
from ottla.model.settings.node import BROKER_ID, NODE_ID, NUM_IO_THREADS, NUM_PARTITIONS
from ottla.model.settings.transactions import PRODUCER_ID_EXPIRATION_MS
from ottla.model.start_checks import start_problems
from ottla.model.topic_settings import (
    CLEANUP_POLICY,
    FLUSH_MS,
    MIN_INSYNC_REPLICAS,
    RETENTION_MS,
    SEGMENT_JITTER_MS,
    SEGMENT_MS,
)

HOUR_MS = 3_600_000


def test_defaults_are_kafkas_and_typed() -> None:
    topic = NodeConfig({}).topic()
    assert topic[RETENTION_MS] == 168 * HOUR_MS
    assert topic[CLEANUP_POLICY] == ("delete",)
    assert topic[MIN_INSYNC_REPLICAS] == 1


def test_topics_without_values_of_their_own_share_one_config() -> None:
    node = NodeConfig({})
    assert node.topic() is node.topic({}) is node.topic(None)
    assert node.group() is node.group({})
    assert node.client_metrics() is node.client_metrics({})


@pytest.mark.parametrize(
    ("static", "expected_ms"),
    [
        ({"log.retention.hours": "2"}, 2 * HOUR_MS),
        ({"log.retention.hours": "2", "log.retention.minutes": "5"}, 300_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "5", "log.retention.ms": "7"}, 7),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.ms": "-5"}, -1),
    ],
)
def test_the_finest_unit_of_retention_wins(static: dict[str, str], expected_ms: int) -> None:
    assert NodeConfig(static).topic()[RETENTION_MS] == expected_ms


def test_other_synonyms() -> None:
    topic = NodeConfig(
        {"log.roll.hours": "3", "log.roll.jitter.hours": "1", "log.flush.scheduler.interval.ms": "9"}
    ).topic()
    assert topic[SEGMENT_MS] == 3 * HOUR_MS
    assert topic[SEGMENT_JITTER_MS] == HOUR_MS
    assert topic[FLUSH_MS] == 9


def test_precedence() -> None:
    node = NodeConfig({"log.retention.ms": "1"})
    assert node.topic()[RETENTION_MS] == 1
    node = node.with_dynamic({"log.retention.ms": "2"}, {})
    assert node.topic()[RETENTION_MS] == 2
    node = node.with_dynamic({"log.retention.ms": "2"}, {"log.retention.ms": "3"})
    assert node.topic()[RETENTION_MS] == 3
    topic = node.topic({"retention.ms": "4"})
    assert topic[RETENTION_MS] == 4
    assert topic.is_set(RETENTION_MS) and not node.topic().is_set(CLEANUP_POLICY)


def test_a_topics_config_also_answers_for_its_broker() -> None:
    node = NodeConfig({"producer.id.expiration.ms": "5000"})
    assert node.topic({"retention.ms": "4"})[PRODUCER_ID_EXPIRATION_MS] == 5000


def test_groups_follow_the_broker() -> None:
    node = NodeConfig({"group.consumer.session.timeout.ms": "50000"})
    assert node.group()[CONSUMER_SESSION_TIMEOUT_MS] == 50_000
    assert node.group({"consumer.session.timeout.ms": "46000"})[CONSUMER_SESSION_TIMEOUT_MS] == 46_000


def test_a_bad_value_in_the_file_stops_the_start() -> None:
    with pytest.raises(ApiError, match=r"Not a number of type INT"):
        NodeConfig({"num.partitions": "many"})


def test_a_bad_dynamic_value_is_left_out_and_told() -> None:
    node = NodeConfig({"num.io.threads": "4"}, {}, {"num.io.threads": "none"})
    assert node.broker[NUM_IO_THREADS] == 4
    assert node.broker.problems == ("Invalid value none for configuration num.io.threads: Not a number of type INT",)


def test_a_read_only_setting_cannot_come_from_the_metadata_log() -> None:
    assert NodeConfig({}, {"num.partitions": "9"}).broker[NUM_PARTITIONS] == 1


def test_both_names_of_the_id() -> None:
    assert NodeConfig({"node.id": "3"}).broker[BROKER_ID] == 3
    assert NodeConfig({"broker.id": "3"}).broker[NODE_ID] == 3


def test_a_required_setting_must_be_given() -> None:
    with pytest.raises(ApiError) as caught:
        NodeConfig({}).broker[NODE_ID]
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    assert caught.value.message == 'Missing required configuration "node.id" which has no default value.'


def test_a_broker_does_not_answer_for_topics() -> None:
    with pytest.raises(KeyError, match=r"retention\.ms"):
        NodeConfig({}).broker[RETENTION_MS]


def test_settings_of_one_name_are_two_keys() -> None:
    node = NodeConfig({"compression.type": "gzip"})
    topic = node.topic({"compression.type": "zstd"})
    assert topic[topic_settings.COMPRESSION_TYPE] == "zstd"
    assert topic[log.COMPRESSION_TYPE] == node.broker[log.COMPRESSION_TYPE] == "gzip"


def test_unknown_names_come_with_the_nearest_known_one() -> None:
    values = {
        "num.partition": "1",
        "log.retention.hour": "1",
        "zzz": "1",
        "listeners": "PLAINTEXT://:9092",
        "listener.name.x.ssl.keystore.location": "/x",
        "listener.name.x.plain.sasl.jaas.config": "y",
        "listener.name.x.nope": "1",
        "rsm.config.anything": "1",
    }
    assert unknown(values, BROKER_SETTINGS) == [
        ("num.partition", "num.partitions"),
        ("log.retention.hour", "log.retention.hours"),
        ("zzz", None),
        ("listener.name.x.nope", None),
    ]


def test_what_is_set_in_vain_is_known() -> None:
    values = {
        "num.replica.fetchers": "4",
        "controller.quorum.append.linger.ms": " 25 ",  # as it would be anyway
        "num.partitions": "7",
        "listener.name.x.ssl.keystore.location": "/x",
        "listener.name.x.ssl.provider": "mine",
        "zzz": "1",
    }
    assert without_effect(values, BROKER_SETTINGS) == ["num.replica.fetchers", "listener.name.x.ssl.provider"]


def test_a_listener_prefix_leads_to_the_declaration() -> None:
    found = declared("listener.name.x.scram-sha-256.sasl.jaas.config", BROKER_SETTINGS)
    assert found is BROKER_SETTINGS["sasl.jaas.config"]


@pytest.mark.parametrize(
    ("static", "problem"),
    [
        ({"node.id": "1", "broker.id": "2"}, "You must set `node.id` to the same value as `broker.id`."),
        ({"log.retention.hours": "0"}, "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"),
        ({"log.roll.ms": "0"}, "log.roll.ms must be greater than or equal to 1"),
        ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms must be greater than or equal to 0"),
        (
            {"queued.max.request.bytes": "5"},
            "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
        ),
        (
            {"log.cleaner.dedupe.buffer.size": "5"},
            "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
        ),
        (
            {"max.connections.per.ip": "0"},
            "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.",
        ),
        (
            {"cordoned.log.dirs": "/q", "log.dirs": "/a"},
            "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries : /q",
        ),
        (
            {"inter.broker.listener.name": "A", "security.inter.broker.protocol": "SSL"},
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.",
        ),
        (
            {"group.consumer.min.session.timeout.ms": "50000", "group.consumer.max.session.timeout.ms": "40000"},
            "group.consumer.max.session.timeout.ms must be greater than or equal to "
            "group.consumer.min.session.timeout.ms",
        ),
        (
            {"group.consumer.heartbeat.interval.ms": "50000"},
            "group.consumer.heartbeat.interval.ms must be less than or equal to "
            "group.consumer.max.heartbeat.interval.ms",
        ),
        (
            {"group.share.session.timeout.ms": "5"},
            "group.share.session.timeout.ms must be greater than or equal to group.share.min.session.timeout.ms",
        ),
        ({"offsets.topic.compression.codec": "9"}, "Unknown compression type id: 9"),
        (
            {"replica.fetch.wait.max.ms": "40000"},
            "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms",
        ),
        (
            {"replica.lag.time.max.ms": "100"},
            "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms",
        ),
    ],
)
def test_contradictions_are_found_before_the_start(static: dict[str, str], problem: str) -> None:
    assert problem in start_problems(NodeConfig(static))


def test_the_defaults_contradict_nothing() -> None:
    assert start_problems(NodeConfig({"node.id": "1"})) == []
