"""Credentials, quotas and tokens: the same request gets the same answer from Ottla as from a real Kafka."""

import math
from collections.abc import Iterator

import pytest
from tests.compat.conftest import Names, versions_of
from tests.support.requests.same import Both, Plain, Side

from ottla.wire.messages.security.alter_client_quotas import AlterClientQuotasRequest
from ottla.wire.messages.security.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from ottla.wire.messages.security.create_delegation_token import CreateDelegationTokenRequest
from ottla.wire.messages.security.describe_client_quotas import DescribeClientQuotasRequest
from ottla.wire.messages.security.describe_delegation_token import DescribeDelegationTokenRequest
from ottla.wire.messages.security.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from ottla.wire.messages.security.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.messages.security.renew_delegation_token import RenewDelegationTokenRequest

SHA_256, SHA_512 = 1, 2
EXACT, DEFAULT, SPECIFIED = 0, 1, 2
Parts = tuple[tuple[str, str | None], ...]

_Alter = AlterUserScramCredentialsRequest
_Describe = DescribeUserScramCredentialsRequest


def set_scram(user: str, mechanism: int = SHA_256, iterations: int = 4_096) -> _Alter.ScramCredentialUpsertion:
    return _Alter.ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=b"salted"
    )


def no_scram(user: str, mechanism: int = SHA_256) -> _Alter.ScramCredentialDeletion:
    return _Alter.ScramCredentialDeletion(name=user, mechanism=mechanism)


def test_scram_credentials(both: Both, new_name: Names) -> None:
    alice, bob, nobody = (new_name("user") for _ in range(3))

    def script(side: Side) -> Iterator[Plain]:
        def alter(*changes: _Alter.ScramCredentialUpsertion | _Alter.ScramCredentialDeletion) -> Iterator[Plain]:
            deletions = [each for each in changes if isinstance(each, _Alter.ScramCredentialDeletion)]
            upsertions = [each for each in changes if isinstance(each, _Alter.ScramCredentialUpsertion)]
            yield side.call(_Alter(deletions=deletions, upsertions=upsertions), 0)
            side.settle()
            yield describe(alice, bob)

        def describe(*users: str) -> Plain:
            return side.call(_Describe(users=[_Describe.UserName(name=user) for user in users]), 0)

        yield from alter()
        yield from alter(set_scram(alice), set_scram(bob, SHA_512, 8_192))
        yield from alter(set_scram(alice, SHA_512, 16_384))
        yield describe(alice, alice, bob)
        yield describe(nobody, "")
        yield from alter(set_scram(bob, iterations=4_095), no_scram(alice, SHA_256))
        yield from alter(set_scram(bob, iterations=16_385), set_scram("", SHA_256), set_scram(alice, 0))
        yield from alter(set_scram(bob, 3), no_scram(alice, 77), no_scram("", 1), no_scram(nobody))
        yield from alter(set_scram(bob, SHA_256), set_scram(bob, SHA_512))
        yield from alter(no_scram(bob, SHA_512), set_scram(bob))
        yield from alter(no_scram(bob, SHA_512), no_scram(bob, SHA_256), set_scram(nobody, iterations=1))
        yield from alter(no_scram(alice, SHA_512), no_scram(bob, SHA_512))
        for users in (None, []):
            yield side.call(_Describe(users=users), 0)

    both.same(script)


def entry(parts: Parts, *ops: tuple[str, float | None]) -> AlterClientQuotasRequest.EntryData:
    data = AlterClientQuotasRequest.EntryData
    return data(
        entity=[data.EntityData(entity_type=type, entity_name=name) for type, name in parts],
        ops=[data.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in ops],
    )


def describe_quotas(side: Side, version: int, *components: tuple[str, int, str | None], strict: bool = False) -> Plain:
    component = DescribeClientQuotasRequest.ComponentData
    wanted = [component(entity_type=type, match_type=match, match=name) for type, match, name in components]
    return side.call(DescribeClientQuotasRequest(components=wanted, strict=strict), version)


@pytest.mark.parametrize("version", versions_of(AlterClientQuotasRequest))
def test_client_quotas(both: Both, new_name: Names, version: int) -> None:
    user: Parts = (("user", new_name("user")),)
    client: Parts = (("client-id", new_name("client")),)
    address: Parts = (("ip", f"10.0.0.{version + 1}"),)

    def script(side: Side) -> Iterator[Plain]:
        def alter(*entries: AlterClientQuotasRequest.EntryData, dry: bool = False) -> Iterator[Plain]:
            yield side.call(AlterClientQuotasRequest(entries=list(entries), validate_only=dry), version)
            side.settle()
            for parts in (user, client, address):
                yield describe_quotas(side, version, (parts[0][0], EXACT, parts[0][1]))

        rate, share = "producer_byte_rate", "request_percentage"
        yield from alter()
        yield from alter(entry(user, (rate, 1000)), dry=True)
        yield from alter(entry(user, (rate, 1000), (share, 12.5)), entry(client, ("consumer_byte_rate", 5)))
        yield from alter(entry((*user, *client), ("controller_mutation_rate", 0.25)))
        yield from alter(entry(address, ("connection_creation_rate", 10)))
        yield from alter(entry(user, (rate, None), (share, 12.5)), entry(client, ("no_such", None)))
        # refused
        yield from alter(entry(()))
        yield from alter(entry((("group", "g"),), (rate, 1)))
        yield from alter(entry((("user", ""),), (rate, 1)), entry((("client-id", ""),), (rate, 1)))
        yield from alter(entry((*user, *address), (rate, 1)))
        yield from alter(entry((("ip", "not an address"),), ("connection_creation_rate", 1)))
        yield from alter(entry(address, (rate, 1)), entry(user, ("connection_creation_rate", 1)))
        yield from alter(entry(user, (rate, 0.0)), entry(client, (share, -1)))
        yield from alter(entry(user, (rate, 1.5)), entry(client, ("consumer_byte_rate", 1e30)))
        yield from alter(entry(address, ("connection_creation_rate", 2.0**31)))
        yield from alter(entry(address, ("connection_creation_rate", 0.5)), entry(user, (share, math.inf)))
        yield from alter(entry(user, (rate, 7), ("nonsense", 1)))
        yield from alter(entry(user, (rate, 7), (rate, 8)))
        yield from alter(entry(user, (rate, 9)), entry(user, (rate, 10)))
        # removed, so that the next test begins anew
        yield from alter(entry(user, (rate, None), (share, None)), entry(address, ("connection_creation_rate", None)))
        yield from alter(entry(client, ("consumer_byte_rate", None)))
        yield from alter(entry((*client, *user), ("controller_mutation_rate", None)))

    both.same(script)


FILTERS = [
    (),
    (("user", EXACT, "someone"),),
    (("user", DEFAULT, None),),
    (("user", SPECIFIED, None),),
    (("client-id", SPECIFIED, None),),
    (("user", SPECIFIED, None), ("client-id", SPECIFIED, None)),
    (("user", EXACT, "someone"), ("client-id", DEFAULT, None)),
    (("ip", SPECIFIED, None),),
    (("ip", DEFAULT, None),),
    # refused
    (("", EXACT, "x"),),
    (("group", EXACT, "x"),),
    (("user", EXACT, "a"), ("user", DEFAULT, None)),
    (("user", EXACT, None),),
    (("user", DEFAULT, "x"),),
    (("user", SPECIFIED, "x"),),
    (("user", 3, None),),
    (("user", EXACT, "a"), ("ip", EXACT, "10.0.0.1")),
]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("version", versions_of(DescribeClientQuotasRequest))
def test_filters_of_quotas(both: Both, version: int, strict: bool) -> None:
    entities: list[Parts] = [
        (("user", "someone"),),
        (("user", None),),
        (("client-id", "some"),),
        (("client-id", None),),
        (("user", "someone"), ("client-id", "some")),
        (("user", "someone"), ("client-id", None)),
        (("user", None), ("client-id", None)),
    ]
    addresses: list[Parts] = [(("ip", "10.9.9.9"),), (("ip", None),)]

    def script(side: Side) -> Iterator[Plain]:
        def set_all(rate: float | None) -> Plain:
            entries = [entry(parts, ("producer_byte_rate", rate)) for parts in entities]
            entries += [entry(parts, ("connection_creation_rate", rate)) for parts in addresses]
            return side.call(AlterClientQuotasRequest(entries=entries, validate_only=False), 1)

        yield set_all(5)
        side.settle()
        for components in FILTERS:
            yield describe_quotas(side, version, *components, strict=strict)
        yield set_all(None)
        side.settle()
        yield describe_quotas(side, version, strict=strict)

    both.same(script)


def test_plaintext_clients_get_no_tokens(both: Both) -> None:
    create, describe = CreateDelegationTokenRequest, DescribeDelegationTokenRequest

    def script(side: Side) -> Iterator[Plain]:
        for version in versions_of(create):
            for kind in ("User", "Group"):
                renewer = create.CreatableRenewers(principal_type=kind, principal_name="bob")
                yield side.call(create(renewers=[renewer], max_lifetime_ms=-1), version)
        other = create(owner_principal_type="User", owner_principal_name="o", renewers=[], max_lifetime_ms=1)
        yield side.call(other, 3)
        for version in versions_of(RenewDelegationTokenRequest):
            yield side.call(RenewDelegationTokenRequest(hmac=b"x", renew_period_ms=1), version)
            yield side.call(ExpireDelegationTokenRequest(hmac=b"x", expiry_time_period_ms=-1), version)
        owner = describe.Owner(principal_type="User", principal_name="bob")
        for version in versions_of(describe):
            for owners in (None, [], [owner]):
                yield side.call(describe(owners=owners), version)

    both.same(script)
