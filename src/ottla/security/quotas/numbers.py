"""Which quotas an entity may have, and which numbers each of them takes, as in Kafka.

A quota of addresses limits new connections; all other quotas belong to a user, a client id, or both.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ottla.model.limits import INT32_MAX, INT64_MAX
from ottla.security.quotas.limits_of_clients import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)

_FRACTION_MIN: Final = 1e-6  # a smaller fraction is a rounding error


class QuotaNumber(Enum):
    """The type of a quota's value: its highest value, and its name in messages. DOUBLE may have a fraction."""

    DOUBLE = (float("inf"), "a DOUBLE")
    INT = (float(INT32_MAX), "an INT")
    LONG = (float(INT64_MAX), "a LONG")

    def is_too_large(self, value: float) -> bool:
        return value > self.value[0]

    def is_fractional(self, value: float) -> bool:
        """Whether the value has a fraction that this type cannot have."""
        return self is not QuotaNumber.DOUBLE and value % 1.0 > _FRACTION_MIN


NUMBERS_OF_CLIENTS: Final = {
    PRODUCER_BYTE_RATE: QuotaNumber.LONG,
    CONSUMER_BYTE_RATE: QuotaNumber.LONG,
    REQUEST_PERCENTAGE: QuotaNumber.DOUBLE,
    CONTROLLER_MUTATION_RATE: QuotaNumber.DOUBLE,
}
NUMBERS_OF_ADDRESSES: Final = {CONNECTION_CREATION_RATE: QuotaNumber.INT}
