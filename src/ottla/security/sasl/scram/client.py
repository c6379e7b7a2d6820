"""ScramClient: the client's side of a SCRAM exchange."""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Mapping

from ottla.model import limits
from ottla.security.sasl.exchange import AuthenticationFailed
from ottla.security.sasl.scram.credentials import ScramMechanism, client_key, salted_password, server_key, xor
from ottla.security.sasl.scram.messages import (
    InvalidScramMessage,
    is_nonce,
    parse_server_final,
    parse_server_first,
    sasl_name,
)

_NO_CHANNEL_BINDING = "n,,"


class ScramClient:
    """One exchange. `nonce` is fresh for each. `extensions` is {"tokenauth": "true"} for a delegation token.

    The first call of `respond` derives a key from the password, which takes milliseconds: call it in a worker thread.
    """

    def __init__(
        self,
        mechanism: ScramMechanism,
        user: str,
        password: str,
        nonce: str,
        extensions: Mapping[str, str] | None = None,
    ) -> None:
        if not is_nonce(nonce):
            raise ValueError("a SCRAM nonce is printable ASCII without commas")
        if not user or "\0" in user:
            raise ValueError("the user name of SCRAM must not be empty and must not contain NUL")
        self._mechanism = mechanism
        self._password = password
        self._nonce = nonce
        fields = {"n": sasl_name(user), "r": nonce, **(extensions or {})}
        self._bare = ",".join(f"{name}={value}" for name, value in fields.items())
        self._signature: bytes | None = None
        self._over = False

    def first(self) -> bytes:
        return (_NO_CHANNEL_BINDING + self._bare).encode()

    def respond(self, challenge: bytes) -> bytes | None:
        if self._over:
            raise AuthenticationFailed("The server sent a message after the end of the SCRAM exchange")
        try:
            if self._signature is None:
                return self._prove(challenge)
            self._over = True
            self._verify(challenge, self._signature)
            return None
        except InvalidScramMessage as invalid:
            self._over = True
            raise AuthenticationFailed(f"The server's answer cannot be read: {invalid}") from None
        except AuthenticationFailed:
            self._over = True
            raise

    def _prove(self, challenge: bytes) -> bytes:
        first = parse_server_first(challenge)
        if not first.nonce.startswith(self._nonce) or first.nonce == self._nonce:
            raise AuthenticationFailed("Invalid server nonce: it does not extend the nonce of the client")
        if not limits.SCRAM_ITERATIONS_MIN <= first.iterations <= limits.SCRAM_CLIENT_ITERATIONS_MAX:
            raise AuthenticationFailed(
                f"The server asks for {first.iterations} iterations of {self._mechanism.sasl_name}; "
                f"{limits.SCRAM_ITERATIONS_MIN} to {limits.SCRAM_CLIENT_ITERATIONS_MAX} are accepted"
            )
        without_proof = f"c={b64encode(_NO_CHANNEL_BINDING.encode()).decode()},r={first.nonce}"
        transcript = f"{self._bare},{first.text},{without_proof}".encode()
        salted = salted_password(self._password, first.salt, first.iterations, self._mechanism)
        key = client_key(salted, self._mechanism)
        mask = self._mechanism.hmac(self._mechanism.hash(key), transcript)
        proof = xor(key, mask)
        self._signature = self._mechanism.hmac(server_key(salted, self._mechanism), transcript)
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    def _verify(self, challenge: bytes, expected: bytes) -> None:
        final = parse_server_final(challenge)
        if final.error is not None:
            raise AuthenticationFailed(
                f"Sasl authentication using {self._mechanism.sasl_name} failed with error: {final.error}"
            )
        if not hmac.compare_digest(final.signature, expected):
            raise AuthenticationFailed("Invalid server signature in server final message: the server is not trusted")
