"""UpdateFeatures (key 57): finalise features at other levels.

v1 upgrade types and validate-only instead of allow_downgrade   v2 one answer for all (it always was all or nothing)
"""

from __future__ import annotations

from ottla.cluster.commands.update_features import FeatureUpdate, FeatureUpgrade, UpdateFeatures
from ottla.model.errors import ApiError
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.loop.later import Answer, Later
from ottla.wire.messages.cluster.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

_KNOWN = frozenset(FeatureUpgrade)
_FIRST_WITH_UPGRADE_TYPE = UpdateFeaturesRequest.FeatureUpdateKey.since("upgrade_type")


@handles(UpdateFeaturesRequest, on="both", forwarded=True, few=True)
def update_features(request: UpdateFeaturesRequest, context: Context) -> Answer[UpdateFeaturesResponse]:
    updates = tuple(
        FeatureUpdate(update.feature, update.max_version_level, _direction(update, context.request_version))
        for update in {update.feature: update for update in request.feature_updates}.values()
    )
    done = UpdateFeaturesResponse.UpdatableFeatureResult
    results = [done(feature=name, error_code=0, error_message="NONE") for name, _, _ in updates]
    made: Later[UpdateFeaturesResponse] = Later()
    good = UpdateFeaturesResponse(error_code=0, error_message=None, results=results)

    def decided(reply: int | ApiError | None) -> None:
        if isinstance(reply, ApiError):
            made.set(UpdateFeaturesResponse(error_code=reply.code, error_message=reply.text))
        elif reply is None:
            made.set(good)
        else:  # the quorum's own feature: it has its own records
            context.services.quorum.upgrade(reply).then(lambda said: made.set(said if said.error_code else good))

    context.controller.submit(UpdateFeatures(updates, request.validate_only)).then(decided)
    return made.soonest()


def _direction(update: UpdateFeaturesRequest.FeatureUpdateKey, version: int) -> FeatureUpgrade:
    if version < _FIRST_WITH_UPGRADE_TYPE:
        return FeatureUpgrade.SAFE_DOWNGRADE if update.allow_downgrade else FeatureUpgrade.UPGRADE
    return FeatureUpgrade(update.upgrade_type) if update.upgrade_type in _KNOWN else FeatureUpgrade.UNKNOWN
