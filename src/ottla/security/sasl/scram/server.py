"""ScramServer: the server's side of a SCRAM exchange.

Rules:
- A user that does not exist, a wrong password and a credential that may not be used look the same to the client: the
  same messages, the same work, the same error text.
- A message is refused unless it is exactly what RFC 5802 asks for; Kafka does not check the channel binding and
  compares only the end of the nonce.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Callable

from ottla.model import limits
from ottla.security.sasl.exchange import Authenticated, AuthenticationFailed
from ottla.security.sasl.failures import InvalidCredentials
from ottla.security.sasl.scram.credentials import (
    ScramCredential,
    ScramIdentity,
    ScramMechanism,
    made_up_credential,
    xor,
)
from ottla.security.sasl.scram.messages import (
    ClientFirst,
    InvalidScramMessage,
    is_nonce,
    parse_client_final,
    parse_client_first,
    write_server_first,
)

CredentialFor = Callable[[str, bool], ScramIdentity | None]


class ScramServer:
    """One exchange.

    `nonce` is fresh for each. `secret` is random, kept at least as long as the node runs, and the same on all nodes if
    they shall answer alike for users that do not exist. `credential_for` is given the user name and whether it is the
    id of a delegation token. `usual_iterations` is the number of iterations that the server sends for users that do
    not exist.
    """

    def __init__(
        self,
        mechanism: ScramMechanism,
        nonce: str,
        secret: bytes,
        credential_for: CredentialFor,
        usual_iterations: int = limits.SCRAM_ITERATIONS_MIN,
    ) -> None:
        if not is_nonce(nonce):
            raise ValueError("a SCRAM nonce is printable ASCII without commas")
        self._mechanism = mechanism
        self._nonce = nonce
        self._secret = secret
        self._credential_for = credential_for
        self._usual_iterations = usual_iterations
        self._first: ClientFirst | None = None
        self._challenge = ""
        self._identity: ScramIdentity | None = None
        self._credential: ScramCredential | None = None
        self._over = False
        self.claimed = ""  # the user, or the id of the token, that the client says to be

    def respond(self, message: bytes) -> bytes | Authenticated:
        if self._over:
            raise self._failure("a message arrived after the end of the exchange")
        try:
            if self._first is None:
                return self._challenge_to(message)
            self._over = True
            return self._end(self._first, message)
        except InvalidScramMessage as invalid:
            self._over = True
            raise self._failure(str(invalid)) from None
        except AuthenticationFailed:
            self._over = True
            raise

    def _challenge_to(self, message: bytes) -> bytes:
        first = parse_client_first(message)
        self.claimed = first.user
        if first.authorization_id not in ("", first.user):
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        about = f"{first.token_auth} {first.user}"
        made_up = made_up_credential(about, self._secret, self._usual_iterations, self._mechanism)
        identity = self._credential_for(first.user, first.token_auth)
        if identity is not None and identity.credential.iterations < limits.SCRAM_ITERATIONS_MIN:
            identity = None
        self._identity = identity
        self._credential = identity.credential if identity else made_up
        self._challenge = write_server_first(
            first.nonce + self._nonce, self._credential.salt, self._credential.iterations
        )
        self._first = first
        return self._challenge.encode()

    def _end(self, first: ClientFirst, message: bytes) -> Authenticated:
        final = parse_client_final(message)
        credential = self._credential
        assert credential is not None
        if final.nonce != first.nonce + self._nonce:
            raise self._failure("the nonce of the client's final message is not the one of this exchange")
        if final.channel_binding != first.gs2_header.encode():
            raise self._failure("the channel binding does not repeat the header of the first message")
        transcript = f"{first.bare},{self._challenge},{final.without_proof}".encode()
        proven = self._proves(credential, final.proof, transcript)
        signature = self._mechanism.hmac(credential.server_key, transcript)
        if not proven or self._identity is None:
            raise self._failure("the user or the delegation token is unknown, or the password is wrong")
        return Authenticated(
            self._identity.principal, b"v=" + b64encode(signature), expires_at_ms=self._identity.expires_at_ms
        )

    def _proves(self, credential: ScramCredential, proof: bytes, transcript: bytes) -> bool:
        signature = self._mechanism.hmac(credential.stored_key, transcript)
        if len(proof) != len(signature):
            return False
        client_key = xor(proof, signature)
        return hmac.compare_digest(self._mechanism.hash(client_key), credential.stored_key)

    def _failure(self, reason: str) -> InvalidCredentials:
        return InvalidCredentials(self._mechanism.sasl_name, reason)
