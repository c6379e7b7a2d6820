"""AlterConfigs (key 33): replace all settings of a resource. Superseded by IncrementalAlterConfigs (KIP-339)."""

from __future__ import annotations

from ottla.cluster.commands.alter_configs import AlterConfigs, ConfigAlteration, Op
from ottla.model import limits
from ottla.server.api.config_changes import ChangesForm, alter, config_changes
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.portions import Portions
from ottla.server.loop.later import Answer
from ottla.wire.messages.topics.alter_configs import AlterConfigsRequest, AlterConfigsResponse

_Resource = AlterConfigsRequest.Resource
_Config = AlterConfigsRequest.Resource.AlterableConfig


@handles(
    AlterConfigsRequest,
    needs=config_changes(loggers=False),
    on="both",
    forwarded_in_part=True,
    portions=Portions("resources", "responses", limits.RESOURCES_PER_SLICE),
)
def alter_configs(request: AlterConfigsRequest, context: Context) -> Answer[AlterConfigsResponse]:
    return alter(request, context, _FORM)


def _config(alteration: ConfigAlteration) -> _Config:
    return _Config(name=alteration.name, value=alteration.value)


def _alteration(config: _Config) -> ConfigAlteration:
    return ConfigAlteration(config.name, Op.SET, config.value)


_FORM = ChangesForm(
    AlterConfigsRequest,
    _Resource,
    _config,
    _alteration,
    AlterConfigsResponse,
    AlterConfigsResponse.ResourceResponse,
    AlterConfigs,
    sets_log_levels=False,
    replaces=True,
)
