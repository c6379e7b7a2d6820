"""DescribeClientQuotas (key 48): quotas whose entity matches a filter."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from enum import IntEnum
from typing import NamedTuple

from ottla.cluster.commands.alter_client_quotas import ENTITY_TYPES
from ottla.cluster.entities import QuotaEntity
from ottla.cluster.state import ClusterState
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation
from ottla.security.quotas.limits_of_clients import IP
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.loop.later import Answer
from ottla.server.loop.slices import Tally
from ottla.wire.messages.security.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

_Entry = DescribeClientQuotasResponse.EntryData
_Component = DescribeClientQuotasRequest.ComponentData


class _Match(IntEnum):
    """How one type of an entity is matched."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2  # any name, the default included


class _Filter(NamedTuple):
    exact: dict[str, str | None]  # type → the name that the entity must have; None: the default
    any_name: frozenset[str]  # types that the entity must have, whatever the name
    strict: bool  # whether the entity may have no other type

    def matches(self, entity: QuotaEntity) -> bool:
        names = dict(entity)
        if self.strict and len(names) != len(self.exact) + len(self.any_name):
            return False
        wanted = all(type in names and names[type] == name for type, name in self.exact.items())
        return wanted and self.any_name <= names.keys()


@handles(
    DescribeClientQuotasRequest,
    needs=Needs((on_cluster(AclOperation.DESCRIBE_CONFIGS),), explained=True, refused=(("entries", None),)),
)
def describe_client_quotas(
    request: DescribeClientQuotasRequest, context: Context
) -> Answer[DescribeClientQuotasResponse]:
    try:
        wanted = _filter(request.components, request.strict)
    except ApiError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.text, entries=None)
    return context.runtime.slices.answer(_describing(wanted, context.member.state))


def _describing(wanted: _Filter, state: ClusterState) -> Generator[None, None, DescribeClientQuotasResponse]:
    entries: list[_Entry] = []
    tally = Tally(limits.QUOTAS_PER_SLICE)
    for entity, quotas in tuple(state.quotas.items()):
        if wanted.matches(entity):
            entries.append(_entry(entity, quotas))
        if tally.is_full(1 + len(quotas)):
            yield
    return DescribeClientQuotasResponse(error_code=ErrorCode.NONE, error_message="", entries=entries)


def _entry(entity: QuotaEntity, quotas: dict[str, float]) -> _Entry:
    return _Entry(
        entity=[_Entry.EntityData(entity_type=type, entity_name=name) for type, name in entity],
        values=[_Entry.ValueData(key=key, value=value) for key, value in quotas.items()],
    )


def _filter(components: Iterable[_Component], strict: bool) -> _Filter:
    exact: dict[str, str | None] = {}
    any_name: set[str] = set()
    for component in components:
        type = component.entity_type
        if not type:
            raise _invalid("Invalid empty entity type.")
        if type in exact or type in any_name:
            raise _invalid(f"Entity type {type} cannot appear more than once in the filter.")
        if type not in ENTITY_TYPES:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {type}")
        _check_match(component)
        if component.match_type == _Match.SPECIFIED:
            any_name.add(type)
        else:
            exact[type] = component.match
    types = {*exact, *any_name}
    if IP in types and len(types) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used with "
            "user or clientId filter component."
        )
    return _Filter(exact, frozenset(any_name), strict)


def _check_match(component: _Component) -> None:
    try:
        match = _Match(component.match_type)
    except ValueError:
        raise _invalid(f"Unknown match type {component.match_type}") from None
    if match is _Match.EXACT and component.match is None:
        raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
    if match is not _Match.EXACT and component.match is not None:
        raise _invalid(f"Request specified MATCH_TYPE_{match.name}, but also specified a match string.")


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
