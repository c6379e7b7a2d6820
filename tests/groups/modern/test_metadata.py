"""The hash of topics: XXH3 as others compute it, and what it depends on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.groups.modern.metadata import NO_TOPICS, metadata_hash
from ottla.groups.modern.target import TargetMember, changes, may_assign, new_targets
from ottla.groups.modern.xxh3 import xxh3_64
from ottla.groups.view import GroupTopic

# Of the first bytes of 3, 10, 17, …: one for each way that lengths are treated. Computed with hash4j, which Kafka uses.
VECTORS = [
    (0, 0x2D06800538D394C2),
    (1, 0x13E608BC156DEFED),
    (3, 0xA9088DDA485B481C),
    (4, 0x6D9253B16C8B1ED3),
    (8, 0x60539DB630471163),
    (9, 0xFEFF668361D723A8),
    (16, 0xB8C859B0F030B585),
    (17, 0x714A04408E79B80F),
    (33, 0x3E44983AD21679C8),
    (64, 0x287EB1FA9E4BE2C1),
    (100, 0xB5937857F0D78C9F),
    (128, 0x67425A03650261BF),
    (129, 0xC664BF3311C6ABC4),
    (160, 0xD70DEA8DE694B883),
    (240, 0x64556DC6B462A6CF),
    (241, 0x8BEADD3A8874FE17),
    (512, 0xF58202B8D9019D1D),
    (1024, 0x9B81661C641C72B1),
    (1025, 0x806C2072ED713576),
    (5000, 0x799AADDD7339581D),
]


@pytest.mark.parametrize(("length", "wanted"), VECTORS)
def test_xxh3(length: int, wanted: int) -> None:
    assert xxh3_64(bytes((7 * at + 3) & 0xFF for at in range(length))) == wanted


class Topics:
    def __init__(self, *infos: GroupTopic) -> None:
        self._infos = {info.name: info for info in infos}

    def by_name(self, name: str) -> GroupTopic | None:
        return self._infos.get(name)

    def by_id(self, topic_id: bytes) -> GroupTopic | None:
        return next((info for info in self._infos.values() if info.id == topic_id), None)

    def names(self) -> list[str]:
        return list(self._infos)


A = GroupTopic("a", b"a" * 16, 2, (frozenset(("r1",)), frozenset(("r1", "r2"))))
B = GroupTopic("b", b"b" * 16, 1)


def test_what_it_depends_on() -> None:
    everything = metadata_hash(["a", "b"], Topics(A, B))
    assert metadata_hash(["b", "a"], Topics(B, A)) == everything
    assert metadata_hash(["b", "a", "gone"], Topics(B, A)) == everything
    others = [
        metadata_hash(["a"], Topics(A, B)),
        metadata_hash(["b"], Topics(A, B)),
        metadata_hash(["a", "b"], Topics(A._replace(id=b"c" * 16), B)),
        metadata_hash(["a", "b"], Topics(A._replace(partitions=3), B)),
        metadata_hash(["a", "b"], Topics(A._replace(racks=()), B)),
    ]
    assert len({everything, *others}) == 6
    assert metadata_hash(["gone"], Topics(A)) == NO_TOPICS


@given(st.binary(max_size=600))
def test_it_is_a_signed_number(data: bytes) -> None:
    assert 0 <= xxh3_64(data) < 1 << 64
    value = metadata_hash(["a"], Topics(A._replace(name="a", id=data[:16].ljust(16))))
    assert -(1 << 63) <= value < 1 << 63


def test_when_it_is_time() -> None:
    assert may_assign(0, 1000, 1)  # never before
    assert may_assign(500, 0, 500)
    assert not may_assign(500, 1000, 1499)
    assert may_assign(500, 1000, 1500)
    assert may_assign(500, 1000, 499)  # the clock was set back since


def test_targets_name_everybody_and_changes_only_what_is_new() -> None:
    readers = {"m": TargetMember(frozenset("ab")), "n": TargetMember(frozenset(("gone",)))}
    asked = []

    def assign(spec: object) -> dict[str, dict[bytes, frozenset[int]]]:
        asked.append(spec)
        return {"m": {A.id: frozenset((0, 1))}}

    targets = new_targets(readers, Topics(A, B), assign)  # type: ignore[arg-type]
    assert targets == {"m": {A.id: frozenset((0, 1))}, "n": {}}
    (spec,) = asked
    assert spec.partitions == {A.id: 2, B.id: 1}  # type: ignore[attr-defined]
    assert spec.members["n"].topics == frozenset()  # type: ignore[attr-defined]
    assert [change.member_id for change in changes({"m": targets["m"]}, targets)] == ["n"]
