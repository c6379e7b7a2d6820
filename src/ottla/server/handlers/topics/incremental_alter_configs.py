"""IncrementalAlterConfigs (key 44): set, delete, append to or subtract from single settings."""

from __future__ import annotations

from ottla.cluster.commands.alter_configs import ConfigAlteration, IncrementalAlterConfigs
from ottla.model import limits
from ottla.server.api.config_changes import ChangesForm, alter, config_changes
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.portions import Portions
from ottla.server.loop.later import Answer
from ottla.wire.messages.topics.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

_Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
_Config = IncrementalAlterConfigsRequest.AlterConfigsResource.AlterableConfig


@handles(
    IncrementalAlterConfigsRequest,
    needs=config_changes(loggers=True),
    on="both",
    forwarded_in_part=True,
    portions=Portions("resources", "responses", limits.RESOURCES_PER_SLICE),
)
def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: Context
) -> Answer[IncrementalAlterConfigsResponse]:
    return alter(request, context, _FORM)


def _config(alteration: ConfigAlteration) -> _Config:
    return _Config(name=alteration.name, config_operation=alteration.op, value=alteration.value)


def _alteration(config: _Config) -> ConfigAlteration:
    return ConfigAlteration(config.name, config.config_operation, config.value)


_FORM = ChangesForm(
    IncrementalAlterConfigsRequest,
    _Resource,
    _config,
    _alteration,
    IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponse.AlterConfigsResourceResponse,
    IncrementalAlterConfigs,
    sets_log_levels=True,
    replaces=False,
)
