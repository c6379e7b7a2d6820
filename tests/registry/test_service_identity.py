"""What members of the election group tell each other."""

import json

import pytest

from ottla.registry.identity import (
    Elected,
    RegistryIdentity,
    choose,
    read_elected,
    read_identity,
    write_elected,
    write_identity,
)

A, B, C = (RegistryIdentity("host", port) for port in (1, 2, 3))
SHY = RegistryIdentity("host", 0, eligible=False)


def test_as_other_registries_write_it() -> None:
    assert json.loads(write_identity(A)) == {
        "version": 1,
        "host": "host",
        "port": 1,
        "master_eligibility": True,
        "scheme": "http",
    }
    assert read_identity(write_identity(SHY)) == SHY
    theirs = b'{"host":"h","port":8081,"master_eligibility":false,"scheme":"https","version":1,"more":[1]}'
    assert read_identity(theirs) == RegistryIdentity("h", 8081, "https", eligible=False)
    elected = Elected("member", A)
    assert read_elected(write_elected(elected)) == elected
    assert json.loads(write_elected(Elected(None, None, failed=True)))["error"] == 1
    assert RegistryIdentity("::1", 8081).url == "http://[::1]:8081"


@pytest.mark.parametrize("blob", [b"", b"[]", b"null", b'{"host":"h"}', b'{"host":"h","port":"1"}', b"\xff"])
def test_what_is_none_is_none(blob: bytes) -> None:
    assert read_identity(blob) is None


@pytest.mark.parametrize("blob", [b"", b"[]", b"null", b'{"error":1}', b'{"master":"m","master_identity":{}}'])
def test_an_assignment_that_names_nobody(blob: bytes) -> None:
    assert read_elected(blob) == Elected(None, None, failed=True)


def test_the_present_leader_stays_and_else_the_smallest_url_leads() -> None:
    assert choose({"b": B, "a": A, "c": C}, None) == Elected("a", A)
    assert choose({"b": B, "a": A, "c": C}, B.url) == Elected("b", B)
    assert choose({"c": C, "b": B}, A.url) == Elected("b", B)
    assert choose({"s": SHY, "c": C, "odd": None}, SHY.url) == Elected("c", C)
    assert choose({"s": SHY}, None) == Elected(None, None)
    assert choose({"one": A, "two": A}, None).failed  # two instances that would not know which is meant
