"""DescribeConfigs (key 32): the settings of a resource, with their values, sources and documentation.

v1 synonyms   v3 types and documentation
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.model import limits
from ottla.model.describe import (
    DescribedConfig,
    describe_broker,
    describe_client_metrics,
    describe_default_broker,
    describe_group,
    describe_topic,
)
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import check_topic_name
from ottla.model.resources import ConfigSource, ResourceType
from ottla.model.setting import SettingKind
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, configs_of
from ottla.server.api.portions import Portions
from ottla.server.settings import log_levels as loggers
from ottla.wire.messages.topics.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse

Answer = DescribeConfigsResponse.Result
EntryAnswer = Answer.ResourceResult


@handles(
    DescribeConfigsRequest,
    needs=Needs(items=configs_of(AclOperation.DESCRIBE_CONFIGS, "resources", "results")),
    on="both",
    portions=Portions("resources", "results", limits.RESOURCES_DESCRIBED_PER_SLICE),
)
def describe_configs(request: DescribeConfigsRequest, context: Context) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=[_answer(resource, request, context) for resource in request.resources])


def _answer(resource: DescribeConfigsRequest.Resource, request: DescribeConfigsRequest, context: Context) -> Answer:
    # An empty list asks for all settings, as null does.
    wanted = frozenset(resource.configuration_keys) if resource.configuration_keys else None
    answer = Answer(
        error_code=ErrorCode.NONE,
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[],
    )
    try:
        described = _describe(resource.resource_type, resource.resource_name, wanted, context)
        answer.configs = [
            _entry(entry, synonyms=request.include_synonyms, documentation=request.include_documentation)
            for entry in described
        ]
    except ApiError as error:
        answer.error_code = error.code
        answer.error_message = error.message if error.message is not None else ""
    return answer


def _describe(type: int, name: str, wanted: frozenset[str] | None, context: Context) -> Iterable[DescribedConfig]:
    node = context.configs.node
    state = context.member.state
    if type == ResourceType.TOPIC:
        check_topic_name(name)
        if name not in state.topics:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return describe_topic(node, state.config(type, name), wanted)
    if type == ResourceType.BROKER:
        if not name:
            return describe_default_broker(node, wanted)
        if _broker_id(name) != context.node_id:
            raise _invalid(f"Unexpected broker id, expected {context.node_id} or empty string, but received {name}")
        return describe_broker(node, wanted)
    if type == ResourceType.BROKER_LOGGER:
        if not name:
            raise _invalid("Broker id must not be empty")
        if _broker_id(name) != context.node_id:
            raise _invalid(f"Unexpected broker id, expected {context.node_id} but received {name}")
        return _describe_loggers(wanted)
    if type == ResourceType.CLIENT_METRICS:
        if not name:
            raise _invalid("Client metrics subscription name must not be empty")
        return describe_client_metrics(node, state.config(type, name), wanted)
    if type == ResourceType.GROUP:
        if not name:
            raise _invalid("Group name must not be empty")
        return describe_group(node, state.config(type, name), wanted)
    raise _invalid(f"Unsupported resource type: {type}")


def _describe_loggers(wanted: frozenset[str] | None) -> Iterable[DescribedConfig]:
    source = ConfigSource.DYNAMIC_BROKER_LOGGER
    for name, level in loggers.levels().items():
        if wanted is None or name in wanted:
            yield DescribedConfig(name, level, source, False, False, SettingKind.UNKNOWN, (), None)


def _entry(entry: DescribedConfig, *, synonyms: bool, documentation: bool) -> EntryAnswer:
    return EntryAnswer(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[EntryAnswer.Synonym(name=name, value=value, source=source) for name, value, source in entry.synonyms]
        if synonyms
        else [],
        config_type=entry.kind,
        documentation=entry.doc if documentation else None,
    )


def _broker_id(name: str) -> int:
    try:
        return int(name)
    except ValueError:
        raise _invalid(f"Broker id must be an integer, but it is: {name}") from None


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
