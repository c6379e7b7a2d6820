"""Records of the internal topics: every type Kafka has, keys and values in pairs."""

import re

import pytest

from ottla.wire.compile import decode, encode
from ottla.wire.journal import (
    cluster_metadata,
    consumer_group,
    consumer_offsets,
    consumer_protocol,
    control,
    principal,
    producer_snapshot,
    quorum_state,
    remote_log,
    share_group,
    share_state,
    streams_group,
    transaction_state,
)
from ottla.wire.message import Data

MODULES = [
    cluster_metadata,
    consumer_group,
    consumer_offsets,
    consumer_protocol,
    control,
    principal,
    producer_snapshot,
    quorum_state,
    remote_log,
    share_group,
    share_state,
    streams_group,
    transaction_state,
]
GROUPS = [consumer_offsets, consumer_group, share_group, streams_group]


def records(*modules: object) -> list[type[Data]]:
    found = [each for module in modules for each in vars(module).values() if isinstance(each, type)]
    return [each for each in found if issubclass(each, Data) and each is not Data]


def test_metadata_records_have_all_types() -> None:
    keys = [cls.key for cls in records(cluster_metadata)]
    assert sorted(keys) == [key for key in range(29) if key not in (6, 13, 16)]
    assert all(0 in cls.flexible for cls in records(cluster_metadata))


def test_group_records_have_all_types() -> None:
    assert sorted({cls.key for cls in records(*GROUPS)}) == [key for key in range(24) if key not in (9, 18)]


@pytest.mark.parametrize("module", [*GROUPS, transaction_state, share_state], ids=lambda module: module.__name__)
def test_keys_and_values_come_in_pairs(module: object) -> None:
    pairs: dict[str, set[int]] = {}
    for cls in records(module):
        name = re.sub("(Key|Value)$", "", cls.__name__)
        pairs.setdefault(name, set()).add(cls.key)
        if cls.__name__.endswith("Key"):
            assert cls.versions == (0, 0) and 0 not in cls.flexible
    assert all(len(keys) == 1 for keys in pairs.values())
    assert len(records(module)) == 2 * len(pairs)


def test_every_record_is_explained() -> None:
    assert all(cls.__doc__ for cls in records(*MODULES))


def test_a_marker_as_kafka_writes_it() -> None:
    marker = control.EndTxnMarker(coordinator_epoch=7)
    assert encode(marker, 0).hex() == "00000007"
    assert decode(control.EndTxnMarker, 0, b"\0\0\0\7") == marker
