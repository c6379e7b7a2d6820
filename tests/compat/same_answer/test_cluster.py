"""Quorum and features: the same request gets the same answer from Ottla as from a real Kafka, in every version."""

from collections.abc import Iterator

import pytest
from tests.compat.conftest import versions_of
from tests.support.requests.same import Both, Plain, Side

from ottla.wire.messages.cluster.update_features import UpdateFeaturesRequest
from ottla.wire.messages.quorum.describe_quorum import DescribeQuorumRequest

# Each cluster's metadata log has its own history.
OWN_HISTORY = ("high_watermark", "log_end_offset", "leader_epoch")


@pytest.mark.parametrize("version", versions_of(DescribeQuorumRequest))
def test_describe_quorum(both: Both, version: int) -> None:
    wanted = DescribeQuorumRequest.TopicData

    def script(side: Side) -> Iterator[Plain]:
        def ask(topic: str, *partitions: int) -> Plain:
            indexes = [wanted.PartitionData(partition_index=each) for each in partitions]
            request = DescribeQuorumRequest(topics=[wanted(topic_name=topic, partitions=indexes)])
            return side.call(request, version, blank=OWN_HISTORY)

        yield ask("__cluster_metadata", 0)
        yield ask("__cluster_metadata", 1)
        yield ask("__cluster_metadata", 0, 1)
        yield ask("another", 0)
        yield side.call(DescribeQuorumRequest(topics=[]), version)

    both.same(script)


FEATURES = {
    "an unknown feature": ("no.such.feature", 1, 1),
    "a level too high": ("metadata.version", 999, 1),
    "a negative level": ("metadata.version", -1, 1),
    "the same level": ("metadata.version", 30, 1),
    "metadata below its minimum": ("metadata.version", 1, 2),
    "a downgrade without saying so": ("group.version", 0, 1),
    "an upgrade that is a downgrade": ("share.version", 0, 1),
    "an unknown kind of upgrade": ("group.version", 1, 9),
    "the same level of another": ("transaction.version", 2, 1),
    "the empty name": ("", 1, 1),
}


@pytest.mark.parametrize("case", FEATURES)
def test_update_features(both: Both, case: str) -> None:
    name, level, kind = FEATURES[case]
    update = UpdateFeaturesRequest.FeatureUpdateKey

    def script(side: Side) -> Iterator[Plain]:
        for version in versions_of(UpdateFeaturesRequest):
            one = update(feature=name, max_version_level=level, upgrade_type=kind)
            yield side.call(UpdateFeaturesRequest(feature_updates=[one], validate_only=True), version)

    both.same(script)


def test_update_no_features(both: Both) -> None:
    def script(side: Side) -> Iterator[Plain]:
        for version in versions_of(UpdateFeaturesRequest):
            yield side.call(UpdateFeaturesRequest(feature_updates=[]), version)

    both.same(script)
