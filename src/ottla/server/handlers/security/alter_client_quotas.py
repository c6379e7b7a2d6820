"""AlterClientQuotas (key 49): set and remove quotas of users, client ids and addresses."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.cluster.commands.alter_client_quotas import AlterClientQuotas, QuotaAlteration, QuotaAltered, QuotaOp
from ottla.cluster.entities import quota_entity
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.api.portions import Portions
from ottla.server.quorum.active_controller import Decided
from ottla.wire.messages.security.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse

_Asked = AlterClientQuotasRequest.EntryData
_Entry = AlterClientQuotasResponse.EntryData


def _weight(entry: _Asked) -> int:
    return 1 + len(entry.entity) + len(entry.ops)


def _refuse(request: AlterClientQuotasRequest, error: ApiError) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=[_entry(QuotaAltered(quota_entity(_parts(entry)), error)) for entry in request.entries]
    )


def _named(request: AlterClientQuotasRequest) -> Iterator[str]:
    for entry in request.entries:
        entity = " ".join(f"{each.entity_type} {each.entity_name or '(default)'}" for each in entry.entity)
        yield f"{entity}: {', '.join(op.key for op in entry.ops)}"


@handles(
    AlterClientQuotasRequest,
    needs=Needs((on_cluster(AclOperation.ALTER_CONFIGS),), changes=_named),
    on="both",
    forwarded=True,
    portions=Portions("entries", "entries", limits.QUOTAS_PER_SLICE, weigh=_weight),
    refuse=_refuse,
)
def alter_client_quotas(request: AlterClientQuotasRequest, context: Context) -> Decided[AlterClientQuotasResponse]:
    alterations = tuple(
        QuotaAlteration(
            _parts(entry), tuple(QuotaOp(each.key, None if each.remove else each.value) for each in entry.ops)
        )
        for entry in request.entries
    )

    def respond(altered: list[QuotaAltered]) -> AlterClientQuotasResponse:
        return AlterClientQuotasResponse(entries=[_entry(each) for each in altered])

    return context.member.controller.ask(AlterClientQuotas(alterations, request.validate_only), respond)


def _parts(entry: _Asked) -> tuple[tuple[str, str | None], ...]:
    return tuple((part.entity_type, part.entity_name) for part in entry.entity)


def _entry(altered: QuotaAltered) -> _Entry:
    error = altered.error
    return _Entry(
        error_code=error.code if error else ErrorCode.NONE,
        error_message=error.text if error else None,
        entity=[_Entry.EntityData(entity_type=type, entity_name=name) for type, name in altered.entity],
    )
