"""A client that logs in with a delegation token: the id is its name, the HMAC as base64 its password."""

from __future__ import annotations

from base64 import b64encode

import pytest

from ottla.security.delegation_tokens import token_credential, token_hmac, token_identity, token_password
from ottla.security.principal import Principal
from ottla.security.sasl.exchange import Authenticated
from ottla.security.sasl.scram.client import ScramClient
from ottla.security.sasl.scram.credentials import ScramMechanism
from ottla.security.sasl.scram.server import ScramServer


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_a_token_logs_its_owner_in(mechanism: ScramMechanism) -> None:
    secret = token_hmac("the key", "the-id")
    identity = token_identity(mechanism, "the-id", "User:alice", 12_345, "the key")
    client = ScramClient(mechanism, "the-id", b64encode(secret).decode(), "nonce", {"tokenauth": "true"})
    asked = []

    def credential_for(name: str, is_token: bool) -> object:
        asked.append((name, is_token))
        return identity

    server = ScramServer(mechanism, "other", b"secret", credential_for)  # type: ignore[arg-type]
    challenge = server.respond(client.first())
    assert isinstance(challenge, bytes)
    proof = client.respond(challenge)
    assert proof is not None
    end = server.respond(proof)
    assert isinstance(end, Authenticated)
    assert end.principal == Principal("User", "alice", token_authenticated=True)
    assert end.expires_at_ms == 12_345
    assert client.respond(end.message) is None
    assert asked == [("the-id", True)]


def test_the_credential_is_the_same_on_all_nodes_and_differs_by_token_and_key() -> None:
    sha_512 = ScramMechanism.SHA_512
    one = token_credential(sha_512, "id", "key")
    assert one == token_credential(sha_512, "id", "key")
    assert one.iterations == 4_096
    others = [
        token_credential(sha_512, "id2", "key"),
        token_credential(sha_512, "id", "key2"),
        token_credential(ScramMechanism.SHA_256, "id", "key"),
    ]
    assert len({each.salt for each in (one, *others)}) == 4
    assert len({each.stored_key for each in (one, *others)}) == 4


def test_the_password_is_base64() -> None:
    assert token_password(b"\xff\xfe\xfd") == "//79"
