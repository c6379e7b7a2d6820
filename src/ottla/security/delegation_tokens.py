"""Delegation tokens: their secret half, and the SCRAM credentials that they stand for (KIP-48).

A token is an id and an HMAC of the id. The cluster stores the id only; every node computes the HMAC with the key in its
settings. A client logs in with SCRAM: the id is its user name, and the HMAC as base64 text its password.
"""

from __future__ import annotations

import hmac
from base64 import b64encode

from ottla.model.limits import SCRAM_ITERATIONS_MIN
from ottla.security.principal import USER, Principal, parse_principal
from ottla.security.sasl.scram.credentials import (
    ScramCredential,
    ScramIdentity,
    ScramMechanism,
    credential_of,
    salt_from,
)


def token_hmac(secret_key: str, token_id: str) -> bytes:
    """Return the secret half of a token."""
    return hmac.digest(secret_key.encode(), token_id.encode(), "sha512")


def token_password(secret: bytes) -> str:
    """Return the password of a client that logs in with a token whose secret half this is."""
    return b64encode(secret).decode()


def token_credential(mechanism: ScramMechanism, token_id: str, secret_key: str) -> ScramCredential:
    """Return the SCRAM credential of a token. This takes milliseconds: call it in a worker thread.

    The salt follows from the key and the id, so all nodes of a cluster have the same credential.
    """
    salt = salt_from(mechanism.hmac(secret_key.encode(), f"{mechanism.sasl_name} salt of {token_id}".encode()))
    password = token_password(token_hmac(secret_key, token_id))
    return credential_of(password, salt, SCRAM_ITERATIONS_MIN, mechanism)


def token_identity(
    mechanism: ScramMechanism, token_id: str, owner: str, expires_at_ms: int, secret_key: str
) -> ScramIdentity:
    """Return who logs in with a token: its owner (`Type:name`), until the token expires. It takes as long as
    `token_credential`.
    """
    principal = parse_principal(owner)._replace(token_authenticated=True)
    return ScramIdentity(token_credential(mechanism, token_id, secret_key), principal, expires_at_ms)


def is_user(principal: Principal) -> bool:
    """Return whether tokens can be renewed by principals of this type."""
    return principal.type == USER
