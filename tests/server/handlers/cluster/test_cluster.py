"""DescribeCluster, UpdateFeatures and ApiVersions, in every version."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.admin import DIALLED, Admin

from ottla.model.errors import ErrorCode
from ottla.server.api import dispatch
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.cluster.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.cluster.update_features import UpdateFeaturesRequest


@pytest.fixture
def admin() -> Admin:
    return Admin()


@pytest.mark.parametrize("version", range(3))
def test_describe_cluster(admin: Admin, version: int) -> None:
    answer = admin.ask(DescribeClusterRequest(include_cluster_authorized_operations=version == 2), version)
    assert (answer.error_code, answer.cluster_id, answer.controller_id) == (0, admin.host.cluster_id, 1)
    assert answer.cluster_authorized_operations == (8096 if version == 2 else -0x80000000)
    (broker,) = answer.brokers
    assert (broker.broker_id, broker.host, broker.port, broker.is_fenced) == (1, *DIALLED, False)
    if version >= 1:
        for endpoint_type, code in ((2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (7, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)):
            request = DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=endpoint_type)
            answer = admin.ask(request, version)
            assert (answer.error_code, answer.brokers) == (code, [])


@pytest.mark.parametrize("version", range(3))
def test_update_features(admin: Admin, version: int) -> None:
    update = UpdateFeaturesRequest.FeatureUpdateKey

    def ask(name: str, level: int, *, down: bool) -> Any:
        more = {"allow_downgrade": down} if version == 0 else {"upgrade_type": 2 if down else 1}
        return admin.ask(
            UpdateFeaturesRequest(feature_updates=[update(feature=name, max_version_level=level, **more)]), version
        )

    answer = ask("streams.version", 0, down=False)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION and "Can't downgrade" in answer.error_message
    answer = ask("streams.version", 0, down=True)
    assert (answer.error_code, len(answer.results)) == (0, 1 if version < 2 else 0)
    assert "streams.version" not in admin.host.state.features


def test_api_versions_tell_the_features(admin: Admin) -> None:
    request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    answer = admin.ask(request, 4)
    finalized = {each.name: each.max_version_level for each in answer.finalized_features}
    assert finalized == admin.host.state.features
    assert answer.finalized_features_epoch == admin.host.features_epoch
    assert {each.name: (each.min_version, each.max_version) for each in answer.supported_features}[
        "metadata.version"
    ] == (7, 30)


def test_the_highest_versions() -> None:
    """The highest stable version of each admin API is served."""
    dispatch.load_handlers()
    highest = {3: 13, 19: 7, 20: 6, 21: 2, 22: 5, 32: 4, 33: 2, 35: 5, 37: 3, 44: 1}
    highest |= {55: 2, 57: 2, 60: 2, 61: 0, 74: 1, 75: 0}
    assert {key: dispatch.ENDPOINTS[key].high for key in highest} == highest
