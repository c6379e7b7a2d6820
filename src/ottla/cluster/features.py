"""Feature levels: what this version of Ottla supports, and what a fresh cluster is finalised at.

Clients choose behaviour by the *finalised* levels in ApiVersions (the Java client takes KIP-890's transactions from
`transaction.version`), and the journal's record versions follow `metadata.version`. The table is that of Kafka 4.3.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
ELR_VERSION = "eligible.leader.replicas.version"
TRANSACTION_VERSION = "transaction.version"


class FeatureRange(NamedTuple):
    """Levels that a node supports, both ends included."""

    low: int
    high: int

    def __contains__(self, level: object) -> bool:
        return isinstance(level, int) and self.low <= level <= self.high


SUPPORTED_FEATURES: dict[str, FeatureRange] = {
    ELR_VERSION: FeatureRange(0, 1),
    "group.version": FeatureRange(0, 1),
    KRAFT_VERSION: FeatureRange(0, 1),
    METADATA_VERSION: FeatureRange(7, 30),
    "share.version": FeatureRange(0, 1),
    "streams.version": FeatureRange(0, 1),
    TRANSACTION_VERSION: FeatureRange(0, 2),
}

# The levels in the `bootstrap.checkpoint` of a fresh directory, in the order in which Kafka's formatter writes them.
# kraft.version is not among them: it lives in the control records of the quorum and is 0 while the voters are
# configured statically.
DEFAULT_LEVELS: dict[str, int] = {
    METADATA_VERSION: 30,
    ELR_VERSION: 1,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    TRANSACTION_VERSION: 2,
}

# Feature → (level, the lowest metadata.version at which a new cluster gets this level), highest first.
_DEFAULT_SINCE: dict[str, tuple[tuple[int, int], ...]] = {
    ELR_VERSION: ((1, 26),),
    "group.version": ((1, 22),),
    "share.version": ((1, 28),),
    "streams.version": ((1, 29),),
    TRANSACTION_VERSION: ((2, 24),),
}

# (feature, level) → the levels of other features that it needs.
DEPENDENCIES: dict[tuple[str, int], dict[str, int]] = {
    (ELR_VERSION, 1): {METADATA_VERSION: 23},
}

# Level → Kafka's name of the metadata version.
METADATA_VERSION_NAMES: dict[int, str] = {
    7: "3.3-IV3",
    8: "3.4-IV0",
    9: "3.5-IV0",
    10: "3.5-IV1",
    11: "3.5-IV2",
    12: "3.6-IV0",
    13: "3.6-IV1",
    14: "3.6-IV2",
    15: "3.7-IV0",
    16: "3.7-IV1",
    17: "3.7-IV2",
    18: "3.7-IV3",
    19: "3.7-IV4",
    20: "3.8-IV0",
    21: "3.9-IV0",
    22: "4.0-IV0",
    23: "4.0-IV1",
    24: "4.0-IV2",
    25: "4.0-IV3",
    26: "4.1-IV0",
    27: "4.1-IV1",
    28: "4.2-IV0",
    29: "4.2-IV1",
    30: "4.3-IV0",
}

# From this metadata.version on SCRAM credentials can be stored (KIP-900).
SCRAM = 11
# From this metadata.version on brokers do not need a new leader epoch when the ISR shrinks.
NO_BUMP_ON_SHRINK = 12
# From this metadata.version on delegation tokens can be stored.
DELEGATION_TOKENS = 14
# From this metadata.version on the controller knows in which directory a replica lies (KIP-858).
DIRECTORIES = 17
# From this metadata.version on eligible leader replicas can be stored (KIP-966).
ELIGIBLE_LEADERS = 23
# From this metadata.version on directories can be cordoned.
CORDONED = 30

# Levels that added records or fields: a downgrade below one of them would lose the data in those fields.
_METADATA_CHANGED_AT = (7, 8, 11, 13, 14, 15, 17, 23, 30)

# A record's version → the lowest metadata.version at which it is written, highest first.
_PARTITION_VERSIONS = ((2, 23), (1, 17), (0, 0))
_BROKER_VERSIONS = ((4, 30), (3, 17), (2, 8), (1, 0))


def metadata_version_of(release: str) -> int:
    """Return the level of a release (`4.0`) or of one of its steps (`4.0-IV1`); ValueError if there is none."""
    found = [level for level, name in METADATA_VERSION_NAMES.items() if release in (name, name.partition("-")[0])]
    if not found:
        known = ", ".join(METADATA_VERSION_NAMES.values())
        raise ValueError(f"Unknown metadata.version '{release}'. Supported metadata.version are: {known}")
    return max(found)


def levels_of(metadata_version: int) -> dict[str, int]:
    """Return the levels that a new cluster of that version is finalised at; features at level 0 are left out."""
    levels = {METADATA_VERSION: metadata_version}
    for name, steps in _DEFAULT_SINCE.items():
        level = next((level for level, since in steps if metadata_version >= since), 0)
        if level:
            levels[name] = level
    return levels


def missing_dependency(name: str, level: int, levels: Mapping[str, int]) -> str | None:
    """Return why a feature cannot be at a level while the others are at `levels`; None if it can."""
    for other, needed in DEPENDENCIES.get((name, level), {}).items():
        if levels.get(other, 0) < needed:
            shown = f" ({METADATA_VERSION_NAMES[needed]})" if other == METADATA_VERSION else ""
            return f"{name} could not be set to {level} because it depends on {other} level {needed}{shown}"
    return None


def metadata_changed_between(level: int, other: int) -> bool:
    """Whether the two metadata versions differ in what they can store."""
    low, high = sorted((level, other))
    return any(low < changed <= high for changed in _METADATA_CHANGED_AT)


@cache
def partition_record_version(metadata_version: int) -> int:
    """Return the version of PartitionRecord and PartitionChangeRecord: 1 brought directories (KIP-858), 2 the ELR
    (KIP-966).
    """
    return next(version for version, since in _PARTITION_VERSIONS if metadata_version >= since)


def broker_record_version(metadata_version: int) -> int:
    """Return the version of RegisterBrokerRecord."""
    return next(version for version, since in _BROKER_VERSIONS if metadata_version >= since)


def transactions_supported(metadata_version: int) -> bool:
    """Whether several batches may be framed as one transaction (KIP-868)."""
    return metadata_version >= 13


def controllers_registered(metadata_version: int) -> bool:
    """Whether controllers write their registration into the journal (KIP-919)."""
    return metadata_version >= 15
