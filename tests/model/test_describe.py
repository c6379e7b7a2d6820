"""What DescribeConfigs tells; the expectations were read off a real Kafka 4.3.1."""

from ottla.model.describe import (
    ConfigSource,
    DescribedConfig,
    describe_broker,
    describe_client_metrics,
    describe_default_broker,
    describe_group,
    describe_topic,
)
from ottla.model.node_config import NodeConfig
from ottla.model.setting import SettingKind

NODE = NodeConfig({"node.id": "1", "log.retention.hours": "100", "log.cleaner.threads": "2", "my.key": "x"})


def line(entry: DescribedConfig) -> str:
    synonyms = " ".join(f"{s.name}={s.value}@{s.source.name}" for s in entry.synonyms)
    return f"{entry.value} {entry.source.name} [{synonyms}]"


def topic(node: NodeConfig, name: str, **overrides: str) -> str:
    own = {key.replace("_", "."): value for key, value in overrides.items()}
    (entry,) = describe_topic(node, own, [name])
    return line(entry)


def broker(node: NodeConfig, name: str) -> DescribedConfig:
    (entry,) = describe_broker(node, [name])
    return entry


def test_a_topic_shows_every_public_setting_once() -> None:
    names = [entry.name for entry in describe_topic(NODE, {})]
    assert len(names) == len(set(names)) == 39
    assert "internal.segment.bytes" not in names
    assert "internal.segment.bytes" in [entry.name for entry in describe_topic(NODE, {"internal.segment.bytes": "9"})]


def test_a_default_names_the_broker_setting_behind_it() -> None:
    assert topic(NODE, "segment.bytes") == "1073741824 DEFAULT [log.segment.bytes=1073741824@DEFAULT]"
    assert topic(NODE, "remote.storage.enable") == "false DEFAULT []"


def test_a_value_of_its_own_comes_first() -> None:
    assert topic(NODE, "segment.bytes", segment_bytes="2000000") == (
        "2000000 TOPIC [segment.bytes=2000000@TOPIC log.segment.bytes=1073741824@DEFAULT]"
    )


def test_a_retention_in_hours_shows_no_source_as_in_kafka() -> None:
    assert topic(NODE, "retention.ms") == "360000000 DEFAULT []"


def test_all_layers_are_listed_best_first() -> None:
    node = NODE.with_dynamic({"log.retention.ms": "2"}, {"log.retention.ms": "3"})
    assert topic(node, "retention.ms", retention_ms="4") == (
        "4 TOPIC [retention.ms=4@TOPIC log.retention.ms=3@DYNAMIC_BROKER "
        "log.retention.ms=2@DYNAMIC_DEFAULT_BROKER log.retention.hours=100@STATIC_BROKER "
        "log.retention.hours=168@DEFAULT]"
    )


def test_brokers() -> None:
    assert line(broker(NODE, "log.cleaner.threads")) == (
        "2 STATIC_BROKER [log.cleaner.threads=2@STATIC_BROKER log.cleaner.threads=1@DEFAULT]"
    )
    assert line(broker(NODE, "broker.id")) == ("1 STATIC_BROKER [broker.id=1@STATIC_BROKER broker.id=-1@DEFAULT]")
    assert line(broker(NODE, "log.retention.ms")) == "None DEFAULT []"
    assert line(broker(NODE, "process.roles")) == "None DEFAULT []"
    assert broker(NODE, "num.partitions").read_only
    assert not broker(NODE, "num.io.threads").read_only


def test_an_unknown_key_might_be_a_secret() -> None:
    entry = broker(NODE, "my.key")
    assert line(entry) == "None STATIC_BROKER [my.key=None@STATIC_BROKER]"
    assert entry.sensitive and entry.read_only and entry.kind is SettingKind.UNKNOWN and entry.doc is None


def test_passwords_are_hidden_everywhere() -> None:
    node = NodeConfig({"ssl.keystore.password": "hush", "listener.name.a.ssl.key.password": "hush"})
    assert not any("hush" in repr(entry) for entry in describe_broker(node))


def test_a_listeners_own_value() -> None:
    node = NODE.with_dynamic({}, {"listener.name.plaintext.max.connections": "5"})
    entry = broker(node, "listener.name.plaintext.max.connections")
    assert line(entry) == (
        "5 DYNAMIC_BROKER [listener.name.plaintext.max.connections=5@DYNAMIC_BROKER max.connections=2147483647@DEFAULT]"
    )
    assert entry.read_only and entry.kind is SettingKind.INT


def test_the_default_of_all_brokers_shows_only_what_was_set() -> None:
    node = NODE.with_dynamic({"log.retention.ms": "2", "nope": "x"}, {"log.retention.ms": "3"})
    assert [line(entry) for entry in describe_default_broker(node)] == [
        "2 DYNAMIC_DEFAULT_BROKER [log.retention.ms=2@DYNAMIC_DEFAULT_BROKER]",
        "None DYNAMIC_DEFAULT_BROKER [nope=None@DYNAMIC_DEFAULT_BROKER]",
    ]


def test_dynamic_only_settings_appear_when_set() -> None:
    name = "leader.replication.throttled.rate"
    assert list(describe_broker(NODE, [name])) == []
    assert line(broker(NODE.with_dynamic({}, {name: "5"}), name)) == f"5 DYNAMIC_BROKER [{name}=5@DYNAMIC_BROKER]"


def test_groups() -> None:
    entries = {entry.name: line(entry) for entry in describe_group(NODE, {"share.isolation.level": "read_committed"})}
    assert len([name for name in entries if not name.startswith("ottla.")]) == 17
    assert entries["consumer.session.timeout.ms"] == ("45000 DEFAULT [group.consumer.session.timeout.ms=45000@DEFAULT]")
    assert entries["share.renew.acknowledge.enable"] == ("true DEFAULT [share.renew.acknowledge.enable=true@DEFAULT]")
    assert entries["share.isolation.level"] == (
        "read_committed GROUP [share.isolation.level=read_committed@GROUP "
        "share.isolation.level=read_uncommitted@DEFAULT]"
    )


def test_client_metrics() -> None:
    entries = {entry.name: line(entry) for entry in describe_client_metrics(NODE, {"interval.ms": "1000"})}
    assert entries == {
        "metrics": " DEFAULT []",
        "interval.ms": "1000 CLIENT_METRICS [interval.ms=1000@CLIENT_METRICS]",
        "match": " DEFAULT []",
    }


def test_the_numbers_of_the_sources_are_kafkas() -> None:
    assert [source.value for source in ConfigSource] == list(range(9))
