"""SCRAM credentials: what a server stores in place of a password, and how it is derived.

Kafka does not prepare passwords (SASLprep): the bytes of their UTF-8 form are used as they are. Ottla does the same, as
credentials that were created with Kafka's tools could not be used otherwise.
"""

from __future__ import annotations

import hashlib
import hmac
from enum import IntEnum
from typing import NamedTuple

from ottla.security.principal import Principal

_SALT_BITS = 130
_SALT_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class ScramMechanism(IntEnum):
    """The mechanisms with Kafka's numbers, as they are in requests and records."""

    SHA_256 = 1
    SHA_512 = 2

    @property
    def hash_name(self) -> str:
        return "sha256" if self is ScramMechanism.SHA_256 else "sha512"

    @property
    def sasl_name(self) -> str:
        return "SCRAM-SHA-256" if self is ScramMechanism.SHA_256 else "SCRAM-SHA-512"

    def hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self.hash_name)

    def hash(self, message: bytes) -> bytes:
        return hashlib.new(self.hash_name, message).digest()


SCRAM_MECHANISMS = {mechanism.sasl_name: mechanism for mechanism in ScramMechanism}


class ScramCredential(NamedTuple):
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations})"  # the keys must not reach a log


class ScramIdentity(NamedTuple):
    """What a server knows about a user name or the id of a delegation token."""

    credential: ScramCredential
    principal: Principal
    expires_at_ms: int | None = None  # of a delegation token


def salted_password(password: str, salt: bytes, iterations: int, mechanism: ScramMechanism) -> bytes:
    """Derive the salted password. This takes milliseconds: call it in a worker thread."""
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)


def credential_of(password: str, salt: bytes, iterations: int, mechanism: ScramMechanism) -> ScramCredential:
    """Create the credential of a password. This takes milliseconds: call it in a worker thread."""
    return credential_of_salted(salted_password(password, salt, iterations, mechanism), salt, iterations, mechanism)


def credential_of_salted(salted: bytes, salt: bytes, iterations: int, mechanism: ScramMechanism) -> ScramCredential:
    """Create the credential of a salted password, which is what clients send in AlterUserScramCredentials."""
    stored_key = mechanism.hash(client_key(salted, mechanism))
    return ScramCredential(salt, stored_key, server_key(salted, mechanism), iterations)


def client_key(salted: bytes, mechanism: ScramMechanism) -> bytes:
    return mechanism.hmac(salted, b"Client Key")


def server_key(salted: bytes, mechanism: ScramMechanism) -> bytes:
    return mechanism.hmac(salted, b"Server Key")


def salt_from(random: bytes) -> bytes:
    """Return a salt in the form of Kafka's: 130 random bits as a number to the base of 36. It needs 17 bytes."""
    if len(random) * 8 < _SALT_BITS:
        raise ValueError(f"a salt needs {_SALT_BITS} random bits")
    number = int.from_bytes(random) & ((1 << _SALT_BITS) - 1)
    digits = ""
    while number:
        number, digit = divmod(number, len(_SALT_DIGITS))
        digits = _SALT_DIGITS[digit] + digits
    return digits.encode()


def made_up_credential(name: str, secret: bytes, iterations: int, mechanism: ScramMechanism) -> ScramCredential:
    """Return a credential for a name that does not exist: the same one each time, and nobody knows a password for it.

    Without it, an exchange would end earlier for unknown users than for known ones.
    """
    about = f"{mechanism.sasl_name} {name}".encode()
    salt, stored_key, server = (mechanism.hmac(secret, part + about) for part in (b"salt ", b"stored ", b"server "))
    return ScramCredential(salt_from(salt), stored_key, server, iterations)


def xor(first: bytes, second: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(first, second, strict=True))
