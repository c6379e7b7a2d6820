"""LogConfig: every setting of a topic that the log honours arrives in the field that stands for it, and in no other."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.log.config import ContractTerms, LogConfig
from ottla.model.node_config import NodeConfig
from ottla.model.topic_settings import TOPIC_SETTINGS
from ottla.records.compress import Codec

# The setting under test stands first; the values behind it are what it needs to have an effect.
ARRIVES: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "segment.bytes": ({"segment.bytes": "1048577"}, {"segment_bytes": 1048577}),
    "internal.segment.bytes": ({"internal.segment.bytes": "150"}, {"segment_bytes": 150}),
    "segment.ms": ({"segment.ms": "77"}, {"segment_ms": 77}),
    "segment.jitter.ms": ({"segment.jitter.ms": "7"}, {"segment_jitter_ms": 7}),
    "segment.index.bytes": ({"segment.index.bytes": "4096"}, {"index_bytes": 4096}),
    "index.interval.bytes": ({"index.interval.bytes": "100"}, {"index_interval_bytes": 100}),
    "flush.messages": ({"flush.messages": "3"}, {"flush_messages": 3}),
    "flush.ms": ({"flush.ms": "4"}, {"flush_ms": 4}),
    "retention.ms": ({"retention.ms": "5"}, {"retention_ms": 5}),
    "retention.bytes": ({"retention.bytes": "6"}, {"retention_bytes": 6}),
    "file.delete.delay.ms": ({"file.delete.delay.ms": "8"}, {"file_delete_delay_ms": 8}),
    "max.message.bytes": ({"max.message.bytes": "9"}, {"max_message_bytes": 9}),
    "cleanup.policy": ({"cleanup.policy": "compact"}, {"compact": True, "delete": False}),
    "delete.retention.ms": ({"delete.retention.ms": "10"}, {"delete_retention_ms": 10}),
    "min.compaction.lag.ms": ({"min.compaction.lag.ms": "11"}, {"min_compaction_lag_ms": 11}),
    "max.compaction.lag.ms": ({"max.compaction.lag.ms": "12"}, {"max_compaction_lag_ms": 12}),
    "min.cleanable.dirty.ratio": ({"min.cleanable.dirty.ratio": "0.25"}, {"min_cleanable_dirty_ratio": 0.25}),
    "compression.type": ({"compression.type": "snappy"}, {"codec": Codec.SNAPPY}),
    "compression.gzip.level": (
        {"compression.gzip.level": "2", "compression.type": "gzip"},
        {"codec": Codec.GZIP, "codec_level": 2},
    ),
    "compression.lz4.level": (
        {"compression.lz4.level": "12", "compression.type": "lz4"},
        {"codec": Codec.LZ4, "codec_level": 12},
    ),
    "compression.zstd.level": (
        {"compression.zstd.level": "7", "compression.type": "zstd"},
        {"codec": Codec.ZSTD, "codec_level": 7},
    ),
    "message.timestamp.type": ({"message.timestamp.type": "LogAppendTime"}, {"log_append_time": True}),
    "message.timestamp.before.max.ms": ({"message.timestamp.before.max.ms": "13"}, {"timestamp_before_max_ms": 13}),
    "message.timestamp.after.max.ms": ({"message.timestamp.after.max.ms": "14"}, {"timestamp_after_max_ms": 14}),
    "min.insync.replicas": ({"min.insync.replicas": "2"}, {"min_insync_replicas": 2}),
    "ottla.fsync.before.ack": ({"ottla.fsync.before.ack": "true"}, {"fsync_before_ack": True}),
}
# The settings of a contract arrive together, as terms.
CONTRACT = {
    "ottla.schema.validation": "full",
    "ottla.schema.validation.of": "both",
    "ottla.schema.validation.subject": "any",
    "ottla.schema.validation.action": "dlq",
    "ottla.schema.validation.dlq": "bad",
}
# These are read by the controller and by replication.
NOT_OF_THE_LOG = {
    "unclean.leader.election.enable",
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
}
NO_SETTING = {"dense"}  # only code makes a log dense


def of_topic(**values: str) -> LogConfig:
    return LogConfig.of(NodeConfig({}).topic(values))


@pytest.mark.parametrize("setting", ARRIVES)
def test_a_setting_changes_its_field_and_no_other(setting: str) -> None:
    values, fields = ARRIVES[setting]
    assert setting in values and all(LogConfig._field_defaults[name] != value for name, value in fields.items())
    assert of_topic(**values) == LogConfig()._replace(**fields)


def test_a_topic_without_settings_has_the_defaults() -> None:
    assert of_topic() == LogConfig()


def test_a_topic_may_be_compacted_and_deleted() -> None:
    config = of_topic(**{"cleanup.policy": "compact,delete"})
    assert config.compact and config.delete


def test_a_codec_with_levels_has_its_default_level() -> None:
    assert of_topic(**{"compression.type": "zstd"}).codec_level == 3
    assert of_topic(**{"compression.type": "uncompressed"}).codec_level is None


def test_a_contract_has_all_its_terms() -> None:
    expected = ContractTerms(full=True, of="both", own_subjects=False, action="dlq", dead_letters="bad")
    assert of_topic(**CONTRACT).contract == expected
    without = {name: value for name, value in CONTRACT.items() if name != "ottla.schema.validation"}
    assert of_topic(**without).contract is None
    for name in without:
        others = {each: value for each, value in CONTRACT.items() if each != name}
        assert of_topic(**others).contract not in (None, expected), name


def test_how_long_producers_are_remembered_is_a_setting_of_the_broker() -> None:
    broker = NodeConfig({"producer.id.expiration.ms": "15"})
    assert LogConfig.of(broker.topic()) == LogConfig(producer_expiration_ms=15)


def test_no_setting_and_no_field_is_forgotten() -> None:
    honoured = {name for name, setting in TOPIC_SETTINGS.items() if setting.honoured}
    assert honoured == {*ARRIVES, *CONTRACT, *NOT_OF_THE_LOG}
    arrived = {name for _, fields in ARRIVES.values() for name in fields}
    assert set(LogConfig._fields) == arrived | {"contract", "producer_expiration_ms"} | NO_SETTING
