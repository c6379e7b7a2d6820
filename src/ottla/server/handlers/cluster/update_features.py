"""UpdateFeatures (key 57): change the finalized levels of features.

v1 upgrade types and validate-only instead of allow_downgrade   v2 one error for the whole request
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.cluster.commands.update_features import FeatureUpdate, FeatureUpgrade, UpdateFeatures
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.loop.later import Later
from ottla.server.quorum.active_controller import Decided
from ottla.server.quorum.not_controller import NotController
from ottla.wire.messages.cluster.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

_KNOWN = frozenset(FeatureUpgrade)
_FIRST_WITH_UPGRADE_TYPE = UpdateFeaturesRequest.FeatureUpdateKey.since("upgrade_type")


def _refuse(_: UpdateFeaturesRequest, error: ApiError) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=error.code, error_message=error.text)


def _named(request: UpdateFeaturesRequest) -> Iterator[str]:
    yield from (f"{each.feature} {each.max_version_level}" for each in request.feature_updates)


@handles(
    UpdateFeaturesRequest,
    needs=Needs((on_cluster(AclOperation.ALTER),), changes=_named),
    on="both",
    forwarded=True,
    few=True,
    refuse=_refuse,
)
def update_features(request: UpdateFeaturesRequest, context: Context) -> Decided[UpdateFeaturesResponse]:
    updates = tuple(
        FeatureUpdate(update.feature, update.max_version_level, _direction(update, context.request_version))
        for update in {update.feature: update for update in request.feature_updates}.values()
    )
    done = UpdateFeaturesResponse.UpdatableFeatureResult
    results = [done(feature=name, error_code=0, error_message="NONE") for name, _, _ in updates]
    made: Later[UpdateFeaturesResponse | ApiError] = Later()
    good = UpdateFeaturesResponse(error_code=0, error_message=None, results=results)

    def decided(reply: int | ApiError | None) -> None:
        if isinstance(reply, ApiError):
            made.set(reply)
        elif reply is None:
            made.set(good)
        else:  # kraft.version, the quorum's own feature: it has its own records
            context.member.quorum.upgrade(reply).then(upgraded, made.fail)

    def upgraded(answer: UpdateFeaturesResponse) -> None:
        if answer.error_code == ErrorCode.NOT_CONTROLLER:
            made.set(NotController(answer.error_message))
        else:
            made.set(answer if answer.error_code else good)

    context.member.controller.submit(UpdateFeatures(updates, request.validate_only)).then(decided, made.fail)
    return made.soonest()


def _direction(update: UpdateFeaturesRequest.FeatureUpdateKey, version: int) -> FeatureUpgrade:
    if version < _FIRST_WITH_UPGRADE_TYPE:
        return FeatureUpgrade.SAFE_DOWNGRADE if update.allow_downgrade else FeatureUpgrade.UPGRADE
    return FeatureUpgrade(update.upgrade_type) if update.upgrade_type in _KNOWN else FeatureUpgrade.UNKNOWN
