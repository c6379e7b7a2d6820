"""Whose quota counts for a client: compared with Kafka's order of precedence, spelled out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.security.quotas.limits_of_clients import (
    CONNECTION_CREATION_RATE,
    AddressLimits,
    ClientLimits,
    Entity,
    RateOwner,
)

KEY = "producer_byte_rate"
NAMES = st.sampled_from(["a", "b", None])
ENTITIES = st.one_of(
    NAMES.map(lambda name: (("user", name),)),
    NAMES.map(lambda name: (("client-id", name),)),
    st.tuples(NAMES, NAMES).map(lambda both: (("client-id", both[0]), ("user", both[1]))),
)
LIMITS = st.integers(1, 1000).map(float)


def by_the_book(quotas: dict[Entity, dict[str, float]], user: str, client_id: str) -> tuple[RateOwner, float] | None:
    """The eight levels, most specific first."""
    levels = [
        ((("client-id", client_id), ("user", user)), (user, client_id)),
        ((("client-id", None), ("user", user)), (user, client_id)),
        ((("user", user),), (user, "")),
        ((("client-id", client_id), ("user", None)), (user, client_id)),
        ((("client-id", None), ("user", None)), (user, client_id)),
        ((("user", None),), (user, "")),
        ((("client-id", client_id),), ("", client_id)),
        ((("client-id", None),), ("", client_id)),
    ]
    for entity, owner in levels:
        limit = quotas.get(entity, {}).get(KEY)
        if limit is not None:
            return RateOwner(*owner), limit
    return None


@given(
    st.dictionaries(ENTITIES, st.dictionaries(st.sampled_from([KEY, "request_percentage"]), LIMITS), max_size=10),
    st.sampled_from("abc"),
    st.sampled_from("abc"),
)
def test_the_most_specific_entity_counts(quotas: dict[Entity, dict[str, float]], user: str, client_id: str) -> None:
    limits = ClientLimits(quotas, KEY)
    assert limits.find(user, client_id) == by_the_book(quotas, user, client_id)
    assert bool(limits) == any(KEY in values for values in quotas.values())


def test_a_client_without_an_id_has_the_quotas_of_its_user_alone() -> None:
    quotas: dict[Entity, dict[str, float]] = {
        (("client-id", None), ("user", "a")): {KEY: 1.0},
        (("client-id", None),): {KEY: 2.0},
        (("user", None),): {KEY: 3.0},
    }
    assert ClientLimits(quotas, KEY).find("a", "") == (RateOwner("a", ""), 3.0)
    del quotas[(("user", None),)]
    assert ClientLimits(quotas, KEY).find("a", "") is None


@pytest.mark.parametrize(
    ("address", "limit"),
    [("10.0.0.1", 5.0), ("::ffff:10.0.0.1", 5.0), ("10.0.0.2", 7.0), ("2001:db8::1", 9.0), ("2001:DB8:0::1", 9.0)],
)
def test_addresses_are_compared_by_value(address: str, limit: float) -> None:
    quotas: dict[Entity, dict[str, float]] = {
        (("ip", "10.0.0.1"),): {CONNECTION_CREATION_RATE: 5.0},
        (("ip", "2001:db8:0:0:0:0:0:1"),): {CONNECTION_CREATION_RATE: 9.0},
        (("ip", None),): {CONNECTION_CREATION_RATE: 7.0},
        (("user", "a"),): {CONNECTION_CREATION_RATE: 1.0},  # not a quota that a user can have
    }
    assert AddressLimits(quotas).find(address) == limit
    assert AddressLimits({(("ip", "some.host"),): {CONNECTION_CREATION_RATE: 1.0}}).find(address) is None
