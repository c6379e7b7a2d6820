"""AlterClientQuotas: set and remove quotas of users, client ids and addresses; each entity succeeds or fails by itself.

A quota of addresses limits new connections; all other quotas belong to a user, a client id, or both. Kafka also
accepts host names as addresses and resolves them on every broker; here an address must be written as such.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from ottla.cluster.entities import QuotaEntity, quota_entity
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.snapshot import quota_entry
from ottla.cluster.view import MetadataView
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.quotas.limits_of_clients import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
)

ENTITY_TYPES: Final = (USER, CLIENT_ID, IP)


class _Number(Enum):
    """The type of a quota's value: its highest value, and its name in messages. DOUBLE may have a fraction."""

    DOUBLE = (float("inf"), "a DOUBLE")
    INT = (float(2**31 - 1), "an INT")
    LONG = (float(2**63 - 1), "a LONG")


_OF_CLIENTS: Final = {
    PRODUCER_BYTE_RATE: _Number.LONG,
    CONSUMER_BYTE_RATE: _Number.LONG,
    REQUEST_PERCENTAGE: _Number.DOUBLE,
    CONTROLLER_MUTATION_RATE: _Number.DOUBLE,
}
_OF_ADDRESSES: Final = {CONNECTION_CREATION_RATE: _Number.INT}
_FRACTION_MIN: Final = 1e-6  # a smaller fraction is a rounding error


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


def _keys_of(entity: QuotaEntity) -> dict[str, _Number]:
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
        return _OF_CLIENTS
    if len(names) > 1:
        # the missing space is Kafka's
        raise _invalid("Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId")
    address = names[IP]
    if address is not None and not _is_address(address):
        raise _invalid(f"{address} is not a valid IP or resolvable host.")
    return _OF_ADDRESSES


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _check_value(numbers: dict[str, _Number], key: str, value: float) -> None:
    number = numbers.get(key)
    if number is None:
        raise _invalid(f"Invalid configuration key {key}")
    if not value > 0:  # true of NaN, too
        raise _invalid(f"Quota {key} must be greater than 0")
    highest, name = number.value
    if value > highest:
        raise _invalid(f"Proposed value for {key} is too large for {name}.")
    if number is not _Number.DOUBLE and value % 1.0 > _FRACTION_MIN:
        raise _invalid(f"{key} cannot be a fractional value.")


def _shown(entity: QuotaEntity) -> str:
    parts = ", ".join(f"{type}={'null' if name is None else name}" for type, name in entity)
    return f"ClientQuotaEntity(entries={{{parts}}})"


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
