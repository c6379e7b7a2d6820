"""UpdateFeatures: finalise features at other levels; all of them or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from ottla.cluster import features
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.features import METADATA_VERSION, FeatureRange
from ottla.cluster.snapshot import config_entry, feature
from ottla.cluster.view import MetadataView
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.node_config import NodeConfig
from ottla.model.resources import Resource, ResourceType
from ottla.model.settings.replication import MIN_INSYNC_REPLICAS

_DISABLED = FeatureRange(0, 0)


class FeatureUpgrade(IntEnum):
    """The direction that the client allows."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """A feature and the level it shall have."""

    name: str
    level: int
    upgrade: FeatureUpgrade = FeatureUpgrade.UPGRADE


@dataclass(frozen=True, slots=True)
class UpdateFeatures:
    """Change all levels or refuse. Replies with the kraft.version that the quorum shall get as well (None: unchanged);
    kraft.version is not stored as a metadata record.
    """

    updates: tuple[FeatureUpdate, ...]
    validate_only: bool = False

    def decide(self, view: MetadataView, now_ms: int) -> Result[MetadataEntry, int | None]:
        raised: int | None = None
        proposed = {**view.state.features, **{update.name: update.level for update in self.updates}}
        records: list[MetadataEntry] = []
        for update in self.updates:
            _check(view, update, proposed)
            if update.name == features.KRAFT_VERSION:
                raised = update.level if update.level != view.quorum.kraft_version else None
                continue
            records.append(feature(update.name, update.level))
            if update.name == features.ELR_VERSION and update.level > view.state.features.get(update.name, 0):
                records.extend(_one_min_isr(view))
        return Result() if self.validate_only else Result(records, raised)


def _one_min_isr(view: MetadataView) -> Iterator[MetadataEntry]:
    """KIP-966: the controller elects by min.insync.replicas, so the whole cluster must have a single value."""
    name = MIN_INSYNC_REPLICAS.name
    everybody = Resource(ResourceType.BROKER, "")
    if name not in view.state.config(*everybody):
        # without dynamic settings of single brokers, which are removed below
        configured = NodeConfig(view.config().static).broker
        yield config_entry(everybody, name, str(configured[MIN_INSYNC_REPLICAS]))
    for resource, values in view.state.configs.items():
        if resource.type == ResourceType.BROKER and resource.name and name in values:
            yield config_entry(resource, name, None)


def _check(view: MetadataView, update: FeatureUpdate, proposed: Mapping[str, int]) -> None:
    if update.upgrade == FeatureUpgrade.UNKNOWN:
        raise _invalid(update, "The controller does not support the given upgrade type.")
    if update.level < 0:
        raise _invalid(update, "A feature version cannot be less than 0.")
    _check_supported(view, update)
    on_quorum = update.name == features.KRAFT_VERSION
    current = view.quorum.kraft_version if on_quorum else view.state.features.get(update.name, 0)
    if update.level < current and update.upgrade == FeatureUpgrade.UPGRADE:
        raise _invalid(
            update,
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade.",
        )
    if update.level > current and update.upgrade != FeatureUpgrade.UPGRADE:
        raise _invalid(update, "Can't downgrade to a newer version.")
    if on_quorum:
        _check_kraft_version(view, update, current)
    elif update.name == METADATA_VERSION:
        _check_metadata_version(update, current)
    else:
        _check_dependencies(update, proposed)


def _check_supported(view: MetadataView, update: FeatureUpdate) -> None:
    nodes = [(f"Local controller {view.node_id}", features.SUPPORTED_FEATURES)]
    nodes += [(f"Broker {broker.id}", dict(broker.features)) for broker in view.state.brokers.values()]
    if features.controllers_registered(view.state.metadata_version):
        nodes += _controllers(view)
    for node, supported in nodes:
        low, high = supported.get(update.name, _DISABLED)
        if not low <= update.level <= high:
            problem = f"only supports versions {low}-{high}" if high else "does not support this feature."
            raise _invalid(update, f"{node} {problem}")
    if features.controllers_registered(view.state.metadata_version):
        silent = [id for id in view.quorum.voters if id != view.node_id and id not in view.state.controllers]
        if silent:
            raise _invalid(update, f"controller {silent[0]} has not registered, and may not support this feature")
    if update.name not in features.SUPPORTED_FEATURES:
        raise _invalid(update, f"Feature {update.name} not found.")


def _controllers(view: MetadataView) -> list[tuple[str, dict[str, FeatureRange]]]:
    """Return the names and features of the other registered controllers."""
    others = (controller for controller in view.state.controllers.values() if controller.id != view.node_id)
    return [(f"Controller {controller.id}", dict(controller.features)) for controller in others]


def _check_kraft_version(view: MetadataView, update: FeatureUpdate, current: int) -> None:
    if update.level < current:
        raise _invalid(update, "Can't downgrade the version of this feature.")
    problem = view.quorum.upgrade_refusal(update.level)
    if problem is not None:
        raise _refused(problem)


def _check_metadata_version(update: FeatureUpdate, current: int) -> None:
    if update.level >= current or not features.metadata_changed_between(current, update.level):
        return
    if update.upgrade == FeatureUpgrade.UNSAFE_DOWNGRADE:
        problem = "Unsafe metadata downgrade is not supported in this version."
    else:
        problem = "Refusing to perform the requested downgrade because it might delete metadata information."
    raise _refused(f"Unsupported metadata.version downgrade from {current} to {update.level}. {problem}")


def _check_dependencies(update: FeatureUpdate, proposed: Mapping[str, int]) -> None:
    problem = features.missing_dependency(update.name, update.level, proposed)
    if problem is not None:
        raise _invalid(update, problem)


def _invalid(update: FeatureUpdate, problem: str) -> ApiError:
    return _refused(f"Invalid update version {update.level} for feature {update.name}. {problem}")


def _refused(problem: str) -> ApiError:
    everything = "The update failed for all features since the following feature had an error: "
    return ApiError(ErrorCode.INVALID_UPDATE_VERSION, everything + problem)
