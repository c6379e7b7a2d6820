"""Client quotas: what users, client ids and addresses may use of the brokers.

A quota belongs to a `QuotaEntity`. `DEFAULT` in place of a name stands for all that have no quota of their own.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from ottla.client.checks import checked_name, kind_of
from ottla.client.cluster import Cluster
from ottla.client.errors import check
from ottla.client.outcomes import Outcomes, told
from ottla.wire.messages.security.alter_client_quotas import AlterClientQuotasRequest
from ottla.wire.messages.security.describe_client_quotas import DescribeClientQuotasRequest


class QuotaName(Enum):
    """A value that stands in place of the name of a user, client id or address."""

    DEFAULT = "default"  # all without a quota of their own
    ANY = "any"  # in a filter: whatever the name


DEFAULT, ANY = QuotaName.DEFAULT, QuotaName.ANY
# None: the entity has no name of this type.
Name: TypeAlias = str | QuotaName | None
_EXACT, _DEFAULT, _SPECIFIED = 0, 1, 2  # how a filter matches


@dataclass(frozen=True, slots=True)
class QuotaEntity:
    """What a quota belongs to: a user, a client id, both, or an address. As a filter, names may be ANY."""

    user: Name = None
    client_id: Name = None
    ip: Name = None

    def names(self) -> Iterator[tuple[str, str | QuotaName]]:
        """Yield the types that the entity has a name of, as Kafka spells them, with the names."""
        for kind, name in (("user", self.user), ("client-id", self.client_id), ("ip", self.ip)):
            if name is not None:
                yield kind, name

    def __str__(self) -> str:
        shown = (f"{kind} {name}" if isinstance(name, str) else f"{name.value} {kind}" for kind, name in self.names())
        return ", ".join(shown) or "all entities"


class QuotaAdmin:
    """Operations on client quotas."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def describe(
        self, matching: QuotaEntity | None = None, *, strict: bool = False
    ) -> dict[QuotaEntity, dict[str, float]]:
        """Return the quotas of the entities that have all the names of `matching`; with `strict`, those that have no
        others. Without `matching`, all quotas.
        """
        component = DescribeClientQuotasRequest.ComponentData
        components = [
            component(entity_type=kind, match_type=_match(name), match=name if isinstance(name, str) else None)
            for kind, name in (matching or QuotaEntity()).names()
        ]
        request = DescribeClientQuotasRequest(components=components, strict=strict)
        answer = await self._cluster.call(request, error_of=lambda each: each.error_code)
        check(answer.error_code, answer.error_message)
        return {
            _entity((part.entity_type, part.entity_name) for part in each.entity): {
                value.key: value.value for value in sorted(each.values, key=lambda value: value.key)
            }
            for each in answer.entries or ()
        }

    async def alter(
        self, entity: QuotaEntity, quotas: Mapping[str, float | None], *, validate_only: bool = False
    ) -> None:
        """Set quotas of an entity; None removes one. Quotas that are not named keep their values."""
        (await self.alter_each({entity: quotas}, validate_only=validate_only)).all()

    async def alter_each(
        self, quotas: Mapping[QuotaEntity, Mapping[str, float | None]], *, validate_only: bool = False
    ) -> Outcomes[QuotaEntity, None]:
        """Alter quotas of several entities; for each entity, all of its quotas or none."""
        kind = AlterClientQuotasRequest.EntryData
        entries = [
            kind(
                entity=[
                    kind.EntityData(entity_type=type, entity_name=name if isinstance(name, str) else None)
                    for type, name in _named(entity)
                ],
                ops=[
                    kind.OpData(
                        key=checked_name(key, "the name of a quota"),
                        value=_number(key, value),
                        remove=value is None,
                    )
                    for key, value in wanted.items()
                ],
            )
            for entity, wanted in quotas.items()
        ]
        request = AlterClientQuotasRequest(entries=entries, validate_only=validate_only)
        answer = await self._cluster.call(request, repeatable=False)
        return told(
            quotas,
            [
                (
                    _entity((part.entity_type, part.entity_name) for part in each.entity),
                    None,
                    each.error_code,
                    each.error_message,
                )
                for each in answer.entries
            ],
        )


def _number(key: str, value: object) -> float:
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"the quota {key} must be a number or None, not {kind_of(value)}")
    return float(value)


def _named(entity: QuotaEntity) -> Iterator[tuple[str, str | QuotaName]]:
    if not isinstance(entity, QuotaEntity):
        raise TypeError(f"a quota belongs to QuotaEntity(...), not to {kind_of(entity)}")
    for kind, name in entity.names():
        if name is ANY:
            raise ValueError(f"a quota is set for one {kind} or for DEFAULT, not for ANY")
        yield kind, name if name is DEFAULT else checked_name(name, f"the {kind} of a quota")


def _match(name: str | QuotaName) -> int:
    if isinstance(name, str):
        return _EXACT
    return _DEFAULT if name is DEFAULT else _SPECIFIED


def _entity(parts: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    names: dict[str, Name] = {kind: DEFAULT if name is None else name for kind, name in parts}
    return QuotaEntity(names.get("user"), names.get("client-id"), names.get("ip"))
