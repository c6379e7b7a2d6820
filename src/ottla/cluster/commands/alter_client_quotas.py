"""AlterClientQuotas: set and remove quotas of users, client ids and addresses; each entity succeeds or fails by itself.

Which quota an entity may have is said by `security.quotas.numbers`. Kafka also accepts host names as addresses and
resolves them on every broker; here an address must be written as such.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Final, NamedTuple

from ottla.cluster.entities import QuotaEntity, quota_entity
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.snapshot import quota_entry
from ottla.cluster.view import MetadataView
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.quotas.limits_of_clients import CLIENT_ID, IP, USER
from ottla.security.quotas.numbers import NUMBERS_OF_ADDRESSES, NUMBERS_OF_CLIENTS, QuotaNumber

ENTITY_TYPES: Final = (USER, CLIENT_ID, IP)


class QuotaOp(NamedTuple):
    key: str
    value: float | None  # None: remove the quota


class QuotaAlteration(NamedTuple):
    """Types and names as the client sent them, and what to do with the quotas of that entity."""

    parts: tuple[tuple[str, str | None], ...]
    ops: tuple[QuotaOp, ...]


class QuotaAltered(NamedTuple):
    """The result for one entity."""

    entity: QuotaEntity
    error: ApiError | None


@dataclass(frozen=True, slots=True)
class AlterClientQuotas:
    """Replies with a QuotaAltered for each entity."""

    alterations: tuple[QuotaAlteration, ...]
    validate_only: bool = False

    def decide(self, view: MetadataView, now_ms: int) -> Result[MetadataEntry, list[QuotaAltered]]:
        records: list[MetadataEntry] = []
        outcomes: dict[QuotaEntity, ApiError | None] = {}
        for parts, ops in self.alterations:
            entity = quota_entity(parts)
            wanted = dict(ops)
            # As in Kafka: a key that is given twice is reported like an entity that is given twice.
            if entity in outcomes or len(wanted) < len(ops):
                outcomes[entity] = _invalid(f"Ignoring duplicate entity {_shown(entity)}")
                continue
            try:
                records += _records(entity, wanted, view.state.quotas.get(entity, {}))
                outcomes[entity] = None
            except ApiError as error:
                outcomes[entity] = error
        altered = [QuotaAltered(entity, error) for entity, error in outcomes.items()]
        return Result([] if self.validate_only else records, altered)


def _records(entity: QuotaEntity, wanted: dict[str, float | None], current: dict[str, float]) -> list[MetadataEntry]:
    numbers = _keys_of(entity)
    records: list[MetadataEntry] = []
    for key, value in wanted.items():
        if value is not None:
            _check_value(numbers, key, value)
        if value != current.get(key):
            records.append(quota_entry(entity, key, value))
    return records


def _keys_of(entity: QuotaEntity) -> dict[str, QuotaNumber]:
    """Return the quotas that the entity may have; refuse an entity that cannot be."""
    if not entity:
        raise _invalid("Invalid empty client quota entity")
    for type, name in entity:
        if type not in ENTITY_TYPES:
            raise _invalid(f"Unhandled client quota entity type: {type}")
        if name == "":
            raise _invalid(f"Empty {type} not supported")
    names = dict(entity)
    if IP not in names:
        return NUMBERS_OF_CLIENTS
    if len(names) > 1:
        # the missing space is Kafka's
        raise _invalid("Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId")
    address = names[IP]
    if address is not None and not _is_address(address):
        raise _invalid(f"{address} is not a valid IP or resolvable host.")
    return NUMBERS_OF_ADDRESSES


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _check_value(numbers: dict[str, QuotaNumber], key: str, value: float) -> None:
    number = numbers.get(key)
    if number is None:
        raise _invalid(f"Invalid configuration key {key}")
    if not value > 0:  # true of NaN, too
        raise _invalid(f"Quota {key} must be greater than 0")
    if number.is_too_large(value):
        raise _invalid(f"Proposed value for {key} is too large for {number.value[1]}.")
    if number.is_fractional(value):
        raise _invalid(f"{key} cannot be a fractional value.")


def _shown(entity: QuotaEntity) -> str:
    parts = ", ".join(f"{type}={'null' if name is None else name}" for type, name in entity)
    return f"ClientQuotaEntity(entries={{{parts}}})"


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
