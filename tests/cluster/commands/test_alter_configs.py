"""IncrementalAlterConfigs and AlterConfigs: the codes and words are those of a real Kafka 4.3.1."""

from __future__ import annotations

import pytest
from tests.cluster.bench import Cluster, verdict

from ottla.cluster.commands.alter_configs import AlterConfigs, Altered, ConfigAlteration, IncrementalAlterConfigs, Op
from ottla.cluster.entities import ConfigChanged
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.resources import Resource
from ottla.wire.journal import cluster_metadata as journal

TOPIC = Resource(2, "t")
BROKER = Resource(4, "1")
EVERYBODY = Resource(4, "")
GROUP = Resource(32, "g")
METRICS = Resource(16, "m")


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.create("t")
    cluster.changes.clear()
    return cluster


def alter(cluster: Cluster, resource: Resource, *alterations: ConfigAlteration, validate_only: bool = False) -> Altered:
    (outcome,) = cluster.submit(IncrementalAlterConfigs(((resource, alterations),), validate_only))
    assert outcome.resource == resource
    return outcome


def put(name: str, value: str | None) -> ConfigAlteration:
    return ConfigAlteration(name, Op.SET, value)


def drop(name: str) -> ConfigAlteration:
    return ConfigAlteration(name, Op.DELETE, None)


def test_set_and_delete(cluster: Cluster) -> None:
    assert alter(cluster, TOPIC, put("retention.ms", "5"), put("segment.ms", "6")).error is None
    assert cluster.state.configs[TOPIC] == {"retention.ms": "5", "segment.ms": "6"}
    assert cluster.changes == [ConfigChanged(TOPIC, "retention.ms", "5"), ConfigChanged(TOPIC, "segment.ms", "6")]
    alter(cluster, TOPIC, drop("retention.ms"), put("segment.ms", "7"))
    assert cluster.state.configs[TOPIC] == {"segment.ms": "7"}
    alter(cluster, TOPIC, drop("segment.ms"))
    assert TOPIC not in cluster.state.configs


def test_what_does_not_change_writes_nothing_but_for_brokers(cluster: Cluster) -> None:
    alter(cluster, TOPIC, put("retention.ms", "5"))
    before = len(cluster.journal)
    alter(cluster, TOPIC, put("retention.ms", "5"), drop("segment.ms"), drop("unknown.name"))
    assert len(cluster.journal) == before
    for _ in range(2):
        assert alter(cluster, BROKER, put("log.retention.ms", "9")).error is None
    assert len(cluster.journal) == before + 2


def test_validate_only(cluster: Cluster) -> None:
    assert alter(cluster, TOPIC, put("retention.ms", "5"), validate_only=True).error is None
    assert TOPIC not in cluster.state.configs


@pytest.mark.parametrize(
    ("op", "value", "expected"),
    [
        (Op.APPEND, "compact", "delete,compact"),
        (Op.APPEND, "delete", "delete"),
        (Op.APPEND, "compact,delete", "delete,compact"),
        (Op.SUBTRACT, "compact", "delete"),
        (Op.SUBTRACT, "delete", ""),
    ],
)
def test_lists_grow_and_shrink_from_their_default(cluster: Cluster, op: Op, value: str, expected: str) -> None:
    assert alter(cluster, TOPIC, ConfigAlteration("cleanup.policy", op, value)).error is None
    assert cluster.state.configs[TOPIC]["cleanup.policy"] == expected


def test_lists_grow_from_what_is_set(cluster: Cluster) -> None:
    alter(cluster, TOPIC, put("cleanup.policy", "compact"))
    alter(cluster, TOPIC, ConfigAlteration("cleanup.policy", Op.APPEND, "delete"))
    assert cluster.state.configs[TOPIC]["cleanup.policy"] == "compact,delete"


REFUSED = [
    (TOPIC, (put("nope", "1"),), "INVALID_CONFIG", "Unknown topic config name: nope"),
    (
        TOPIC,
        (put("retention.ms", "x"),),
        "INVALID_CONFIG",
        "Invalid value x for configuration retention.ms: Not a number of type LONG",
    ),
    (
        TOPIC,
        (ConfigAlteration("retention.ms", Op.APPEND, "1"),),
        "INVALID_CONFIG",
        "Can't APPEND to key retention.ms because its type is not LIST.",
    ),
    (
        TOPIC,
        (ConfigAlteration("nope", Op.SUBTRACT, "1"),),
        "INVALID_CONFIG",
        "Can't SUBTRACT to key nope because its type is not LIST.",
    ),
    (
        TOPIC,
        (put("retention.ms", None), put("segment.ms", None)),
        "INVALID_REQUEST",
        "Null value not supported for : retention.ms, segment.ms",
    ),
    (
        TOPIC,
        (put("retention.ms", "1"), drop("retention.ms")),
        "INVALID_REQUEST",
        "Error due to duplicate config keys",
    ),
    (TOPIC, (ConfigAlteration("retention.ms", 9, "1"),), "INVALID_REQUEST", "Unknown operations type 9"),
    (TOPIC, (put("retention.ms", "1" * 40_000),), "INVALID_REQUEST", "The value is too long for : retention.ms"),
    (
        Resource(2, "nope"),
        (put("retention.ms", "1"),),
        "UNKNOWN_TOPIC_OR_PARTITION",
        "The topic 'nope' does not exist.",
    ),
    (Resource(2, ""), (), "INVALID_REQUEST", "Default topic resources are not allowed."),
    (Resource(3, "x"), (), "INVALID_REQUEST", "Unknown resource type 3"),
    (Resource(0, "x"), (), "INVALID_REQUEST", "Unknown resource type 0"),
    (
        BROKER,
        (put("num.partitions", "3"),),
        "INVALID_REQUEST",
        "Cannot update these configs dynamically: [num.partitions]",
    ),
    (
        BROKER,
        (put("log.retention.ms", "x"),),
        "INVALID_REQUEST",
        "Invalid value x for configuration log.retention.ms: Not a number of type LONG",
    ),
    (
        BROKER,
        (put("min.insync.replicas", "1"),),
        "INVALID_CONFIG",
        "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
    ),
    (
        EVERYBODY,
        (drop("min.insync.replicas"),),
        "INVALID_CONFIG",
        "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
    ),
    (Resource(4, "7"), (), "BROKER_ID_NOT_REGISTERED", "No node with id 7 found."),
    (Resource(4, "abc"), (), "INVALID_REQUEST", "Invalid broker name abc"),
    (Resource(4, "+-7"), (), "INVALID_REQUEST", "Invalid broker name +-7"),
    (Resource(4, "9" * 20), (), "INVALID_REQUEST", f"Invalid broker name {'9' * 20}"),
    (GROUP, (put("nope", "1"),), "INVALID_CONFIG", "Unknown group config name: nope"),
    (Resource(32, ""), (), "INVALID_REQUEST", "Default group resources are not allowed."),
    (METRICS, (put("nope", "1"),), "INVALID_REQUEST", "Unknown client metrics configuration: nope"),
    (
        METRICS,
        (ConfigAlteration("metrics", Op.APPEND, "a"),),
        "INVALID_CONFIG",
        "Can't APPEND to key metrics because its type is not LIST.",
    ),
    (Resource(16, ""), (), "INVALID_REQUEST", "Subscription name can't be empty"),
]


@pytest.mark.parametrize(("resource", "alterations", "code", "message"), REFUSED, ids=lambda value: str(value)[:30])
def test_refused(
    cluster: Cluster, resource: Resource, alterations: tuple[ConfigAlteration, ...], code: str, message: str
) -> None:
    before = len(cluster.journal)
    assert verdict(alter(cluster, resource, *alterations).error) == (code, message)
    assert len(cluster.journal) == before


def test_what_a_broker_does_not_know_may_belong_to_a_plug_in(cluster: Cluster) -> None:
    assert alter(cluster, BROKER, put("foo.bar", "3")).error is None
    assert alter(cluster, BROKER, drop("num.partitions")).error is None


def test_groups_and_subscriptions(cluster: Cluster) -> None:
    assert alter(cluster, GROUP, put("consumer.session.timeout.ms", "50000")).error is None
    assert alter(cluster, METRICS, put("interval.ms", "5000"), put("metrics", "a,b")).error is None
    assert cluster.state.configs[METRICS] == {"interval.ms": "5000", "metrics": "a,b"}


def test_one_bad_resource_does_not_hurt_the_others(cluster: Cluster) -> None:
    outcomes = cluster.submit(
        IncrementalAlterConfigs(((Resource(2, "nope"), ()), (TOPIC, (put("retention.ms", "5"),))))
    )
    assert [outcome.error is None for outcome in outcomes] == [False, True]
    assert cluster.state.configs[TOPIC] == {"retention.ms": "5"}


def test_a_resource_named_twice_is_not_altered_at_all(cluster: Cluster) -> None:
    twice = (TOPIC, (put("retention.ms", "5"),))
    outcomes = cluster.submit(IncrementalAlterConfigs((twice, twice)))
    problem = ("INVALID_REQUEST", "Each resource must appear at most once.")
    assert [verdict(outcome.error) for outcome in outcomes] == [problem, problem]
    assert TOPIC not in cluster.state.configs


def test_the_number_of_resources_is_bounded(cluster: Cluster) -> None:
    with pytest.raises(ApiError) as refused:
        cluster.submit(IncrementalAlterConfigs(((TOPIC, ()),) * 10_001))
    assert refused.value.code == ErrorCode.POLICY_VIOLATION


def test_the_older_form_replaces_everything(cluster: Cluster) -> None:
    alter(cluster, TOPIC, put("retention.ms", "5"), put("flush.ms", "6"))
    (outcome,) = cluster.submit(AlterConfigs(((TOPIC, (put("flush.ms", "6"), put("segment.ms", "9"))),)))
    assert outcome == Altered(TOPIC, None)
    assert cluster.state.configs[TOPIC] == {"flush.ms": "6", "segment.ms": "9"}


def test_the_older_form_knows_the_same_refusals(cluster: Cluster) -> None:
    alter(cluster, TOPIC, put("retention.ms", "5"))
    cases = [
        ((TOPIC, (put("nope", "1"),)), ("INVALID_CONFIG", "Unknown topic config name: nope")),
        ((TOPIC, (put("segment.ms", None),)), ("INVALID_REQUEST", "Null value not supported for : segment.ms")),
        ((Resource(8, "1"), ()), ("INVALID_REQUEST", "Unknown resource type 8")),
    ]
    for asked, expected in cases:
        (outcome,) = cluster.submit(AlterConfigs((asked,)))
        assert verdict(outcome.error) == expected
    assert cluster.state.configs[TOPIC] == {"retention.ms": "5"}
    (outcome,) = cluster.submit(AlterConfigs(((TOPIC, ()),), validate_only=True))
    assert outcome.error is None and TOPIC in cluster.state.configs


def test_a_new_min_isr_forgets_who_was_eligible_by_the_old_one() -> None:
    cluster = Cluster(brokers=3)
    for name in ("t", "u"):
        cluster.create(name, 1, replication_factor=3, configs=(("min.insync.replicas", "3"),))
    cluster.fence(3)
    assert cluster.partition("t").elr == cluster.partition("u").elr == (3,)
    assert alter(cluster, TOPIC, put("min.insync.replicas", "2")).error is None
    assert cluster.partition("t").elr == () and cluster.partition("u").elr == (3,)
    assert alter(cluster, EVERYBODY, put("min.insync.replicas", "2")).error is None
    assert cluster.partition("u").elr == ()


def test_cordoned_directories_need_a_metadata_version_that_knows_them(cluster: Cluster) -> None:
    assert alter(cluster, BROKER, put("cordoned.log.dirs", "/a")).error is None
    cluster.state.apply(journal.FeatureLevelRecord(name="metadata.version", feature_level=29))
    problem = "The cordoned.log.dirs configuration value cannot be set because it requires metadata.version >= 4.3-IV0"
    assert verdict(alter(cluster, BROKER, put("cordoned.log.dirs", "/a")).error) == ("INVALID_CONFIG", problem)
