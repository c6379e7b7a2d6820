"""UpdateFeatures, and the table behind it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.cluster.bench import Cluster

from ottla.cluster import features
from ottla.cluster.commands.start import Activate, RegisterController
from ottla.cluster.commands.update_features import FeatureUpdate, FeatureUpgrade, UpdateFeatures
from ottla.cluster.entities import Controller
from ottla.cluster.features import ELR_VERSION, SUPPORTED_FEATURES, FeatureRange
from ottla.cluster.machine import ClusterMachine
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.resources import Resource
from ottla.wire.journal import cluster_metadata as journal

UP, SAFE, UNSAFE = FeatureUpgrade.UPGRADE, FeatureUpgrade.SAFE_DOWNGRADE, FeatureUpgrade.UNSAFE_DOWNGRADE


def test_a_fresh_cluster_has_the_levels_of_4_3() -> None:
    assert Cluster().state.features == {
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }


def test_down_and_up_again() -> None:
    cluster = Cluster()
    cluster.submit(UpdateFeatures((FeatureUpdate("streams.version", 0, SAFE),)))
    assert "streams.version" not in cluster.state.features
    cluster.submit(UpdateFeatures((FeatureUpdate("streams.version", 1, UP),)))
    assert cluster.state.features["streams.version"] == 1


def test_validate_only() -> None:
    cluster = Cluster()
    cluster.submit(UpdateFeatures((FeatureUpdate("group.version", 0, SAFE),), validate_only=True))
    assert cluster.state.features["group.version"] == 1


@pytest.mark.parametrize(
    ("update", "problem"),
    [
        (
            FeatureUpdate("nope", 1),
            "Invalid update version 1 for feature nope. Local controller 1 does not support this feature.",
        ),
        (FeatureUpdate("nope", 0, SAFE), "Invalid update version 0 for feature nope. Feature nope not found."),
        (
            FeatureUpdate("group.version", 5),
            "Invalid update version 5 for feature group.version. Local controller 1 only supports versions 0-1",
        ),
        (
            FeatureUpdate("group.version", -1),
            "Invalid update version -1 for feature group.version. A feature version cannot be less than 0.",
        ),
        (
            FeatureUpdate("group.version", 0),
            "Invalid update version 0 for feature group.version. Can't downgrade the version of this feature without "
            "setting the upgrade type to either safe or unsafe downgrade.",
        ),
        (
            FeatureUpdate("group.version", 1, FeatureUpgrade.UNKNOWN),
            "Invalid update version 1 for feature group.version. The controller does not support the given upgrade "
            "type.",
        ),
        (
            FeatureUpdate("metadata.version", 31),
            "Invalid update version 31 for feature metadata.version. Local controller 1 only supports versions 7-30",
        ),
        (
            FeatureUpdate("metadata.version", 29, SAFE),
            "Unsupported metadata.version downgrade from 30 to 29. Refusing to perform the requested downgrade because "
            "it might delete metadata information.",
        ),
        (
            FeatureUpdate("metadata.version", 29, UNSAFE),
            "Unsupported metadata.version downgrade from 30 to 29. Unsafe metadata downgrade is not supported in this "
            "version.",
        ),
    ],
    ids=str,
)
def test_refused(update: FeatureUpdate, problem: str) -> None:
    cluster = Cluster()
    before = dict(cluster.state.features)
    with pytest.raises(ApiError) as refused:
        cluster.submit(UpdateFeatures((FeatureUpdate("streams.version", 0, SAFE), update)))
    assert refused.value.code == ErrorCode.INVALID_UPDATE_VERSION
    everything = "The update failed for all features since the following feature had an error: "
    assert refused.value.message == everything + problem
    assert cluster.state.features == before  # all of them or none


def test_up_as_a_downgrade_and_unmet_dependencies() -> None:
    cluster = Cluster()
    cluster.state.features["metadata.version"] = 22
    cluster.state.features.pop("eligible.leader.replicas.version")
    for direction, problem in ((SAFE, "Can't downgrade to a newer version."), (UP, "depends on metadata.version")):
        with pytest.raises(ApiError, match=problem):
            cluster.submit(UpdateFeatures((FeatureUpdate("eligible.leader.replicas.version", 1, direction),)))


@pytest.mark.parametrize(
    ("level", "partition", "broker"), [(30, 2, 4), (29, 2, 3), (23, 2, 3), (22, 1, 3), (16, 0, 2), (7, 0, 1)]
)
def test_record_versions_follow_the_metadata_version(level: int, partition: int, broker: int) -> None:
    assert features.partition_record_version(level) == partition
    assert features.broker_record_version(level) == broker


def test_downgrades_are_lossless_only_between_changes() -> None:
    assert features.metadata_changed_between(30, 29)
    assert not features.metadata_changed_between(29, 24)
    assert features.metadata_changed_between(29, 22)


def test_a_controller_that_does_not_know_a_level_holds_it_back() -> None:
    cluster = Cluster()
    known = tuple((name, FeatureRange(low, min(high, 1))) for name, (low, high) in SUPPORTED_FEATURES.items())
    cluster.submit(RegisterController(Controller(2, bytes(16), (), known)))
    with pytest.raises(ApiError) as caught:
        cluster.submit(UpdateFeatures((FeatureUpdate("transaction.version", 2),)))
    assert "Controller 2 only supports versions 0-1" in caught.value.text


def test_enabling_elr_gives_the_whole_cluster_one_min_isr() -> None:
    cluster = Cluster()
    name, everybody, one = "min.insync.replicas", Resource(4, ""), Resource(4, "1")
    cluster.submit(UpdateFeatures((FeatureUpdate(ELR_VERSION, 0, FeatureUpgrade.SAFE_DOWNGRADE),)))
    for resource, value in ((everybody, None), (one, "2")):
        cluster.state.apply(
            journal.ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)
        )
    cluster.submit(UpdateFeatures((FeatureUpdate(ELR_VERSION, 1),)))
    assert cluster.state.features[ELR_VERSION] == 1
    assert cluster.state.config(*everybody) == {name: "1"} and cluster.state.config(*one) == {}


class Three:
    """A quorum of three voters."""

    kraft_version = 0
    voters = (1, 2, 3)
    problem: str | None = None

    def upgrade_refusal(self, level: int) -> str | None:
        return self.problem


def of_three(cluster: Cluster, *registered: int) -> Three:
    quorum = Three()
    cluster.machine = ClusterMachine(replace(cluster.machine.view, quorum=quorum))
    for id in registered:
        cluster.submit(RegisterController(Controller(id, bytes(16), (), tuple(SUPPORTED_FEATURES.items()))))
    return quorum


def test_a_voter_that_never_registered_may_not_support_it() -> None:
    cluster = Cluster()
    of_three(cluster, 1, 2)
    with pytest.raises(ApiError, match="controller 3 has not registered, and may not support this feature"):
        cluster.submit(UpdateFeatures((FeatureUpdate("streams.version", 0, SAFE),)))
    of_three(cluster, 3)
    cluster.submit(UpdateFeatures((FeatureUpdate("streams.version", 0, SAFE),)))


def test_the_version_of_the_quorum_is_no_record_of_the_cluster() -> None:
    cluster = Cluster()
    quorum = of_three(cluster, 1, 2, 3)
    both = (FeatureUpdate("group.version", 0, SAFE), FeatureUpdate("kraft.version", 1, UP))
    assert cluster.submit(UpdateFeatures(both, validate_only=True)) is None
    assert cluster.submit(UpdateFeatures(both)) == 1
    assert "kraft.version" not in cluster.state.features and "group.version" not in cluster.state.features
    quorum.problem = "not all of the voters support it"
    with pytest.raises(ApiError, match="had an error: not all of the voters support it"):
        cluster.submit(UpdateFeatures((FeatureUpdate("group.version", 1, UP), FeatureUpdate("kraft.version", 1, UP))))
    assert "group.version" not in cluster.state.features
    quorum.kraft_version, quorum.problem = 1, None
    assert cluster.submit(UpdateFeatures((FeatureUpdate("kraft.version", 1, UP),))) is None
    with pytest.raises(ApiError, match="Can't downgrade the version of this feature"):
        cluster.submit(UpdateFeatures((FeatureUpdate("kraft.version", 0, SAFE),)))


def test_a_quorum_that_has_nothing_to_write_writes_nothing_in_particular() -> None:
    cluster = Cluster()
    cluster.pass_time(5_000)
    before = len(cluster.journal)
    of_three(cluster)
    cluster.submit(Activate(()))
    cluster.pass_time(1_600)
    assert [type(entry.record) for entry in cluster.journal[before:]] == [journal.NoOpRecord] * 3
    cluster.properties["metadata.max.idle.interval.ms"] = "0"
    cluster.pass_time(5_000)
    assert len(cluster.journal) == before + 4


def test_what_is_written_anyway_shows_as_well_that_the_journal_goes_on() -> None:
    cluster = Cluster()
    of_three(cluster, 2, 3)
    cluster.submit(Activate(()))
    before = len(cluster.journal)
    for _ in range(5):
        cluster.pass_time(300)
        cluster.submit(RegisterController(Controller(2, bytes(16), (), tuple(SUPPORTED_FEATURES.items()))))
    assert not any(isinstance(entry.record, journal.NoOpRecord) for entry in cluster.journal[before:])
