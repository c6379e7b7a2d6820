"""Listeners with OAUTHBEARER, and tokens for them."""

from __future__ import annotations

import time
from typing import Any

from tests.security.tokens import PrivateKey, token
from tests.server.security.secured import MODULES
from tests.support.requests.raw import RawConnection

from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest

ISSUER, AUDIENCE = "https://issuer.test", "kafka"
UNSECURED = f"{MODULES}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
LOGIN = f"{MODULES}.oauthbearer.OAuthBearerLoginModule required"


def listener(url: str, **more: str) -> dict[str, str]:
    """Settings of a node whose only listener takes tokens."""
    return {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": url,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "connection.failed.authentication.delay.ms": "1",
        "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": f'{LOGIN} unsecuredLoginStringClaim_sub="node";',
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def claims(ahead_s: float = 0, **changed: object) -> dict[str, object]:
    """The claims of a token for the listener, changed; None takes a claim away. `ahead_s`: how far its clock is."""
    now_s = int(time.time() + ahead_s)
    own = {"sub": "alice", "iss": ISSUER, "aud": AUDIENCE, "iat": now_s, "exp": now_s + 600}
    return {name: value for name, value in {**own, **changed}.items() if value is not None}


def signed(kid: str = "one", key: PrivateKey | None = None, algorithm: str = "RS256", **changed: Any) -> str:
    return token(claims(**changed), {"alg": algorithm, "kid": kid}, key, algorithm)


def message(bearer: str) -> bytes:
    return f"n,,\x01auth=Bearer {bearer}\x01\x01".encode()


def present(connection: RawConnection, bearer: str | bytes) -> Any:
    """The server's answer to a token."""
    handshake: Any = connection.call(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
    assert handshake.error_code == 0, handshake
    content = bearer if isinstance(bearer, bytes) else message(bearer)
    return connection.call(SaslAuthenticateRequest(auth_bytes=content), 2)
