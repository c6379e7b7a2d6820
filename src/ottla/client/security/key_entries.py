"""KeyEntry: one private key of a keystore with its certificate, the chain of its issuers, and the names it is for.

A PEM text may hold several keys and the certificates in any order: `openssl pkcs12 -nodes` writes such texts. Each key
gets its own certificate by the public key, and that gets its issuers. `cryptography` reads a text with several keys.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from cryptography import x509

_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----\n?", re.DOTALL)
_KEY: Final = "PRIVATE KEY"
_CERTIFICATE: Final = "CERTIFICATE"


class KeyEntry(NamedTuple):
    """`pem` is the key, then the chain with the own certificate first. `names` are DNS names in lower case."""

    pem: str
    names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"KeyEntry(names={self.names})"  # the key must not reach a log


def key_entries(pem: str, password: str) -> list[KeyEntry]:
    """Return the entries of a PEM text in the order of its keys. A text with one key is taken as it is, without names.

    Raise ValueError if there are several keys, and one cannot be read or has no certificate.
    """
    blocks = [(found[1], found[0]) for found in _BLOCK.finditer(pem)]
    keys = [block for label, block in blocks if label.endswith(_KEY)]
    if len(keys) < 2:
        return [KeyEntry(pem)]
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        certificates = [
            x509.load_pem_x509_certificate(text.encode()) for label, text in blocks if label == _CERTIFICATE
        ]
        publics = [_of_certificate(each) for each in certificates]
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError("a certificate cannot be read") from None
    entries = []
    for number, key in enumerate(keys, 1):
        public = _of_key(key, number, password)
        if public not in publics:
            raise ValueError(f"there is no certificate of private key {number}")
        own = certificates[publics.index(public)]
        chain = "".join(map(_text, _chain(own, certificates)))
        entries.append(KeyEntry(f"{key.rstrip()}\n{chain}", _names(own)))
    return entries


def _of_key(pem: str, number: int, password: str) -> bytes:
    """Return the public key of a private key."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

    is_encrypted = "ENCRYPTED" in pem
    try:
        key = load_pem_private_key(pem.encode(), password.encode() if is_encrypted and password else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        why = "is encrypted, and ssl.key.password is " + ("wrong" if password else "not set")
        raise ValueError(f"private key {number} {why if is_encrypted else 'cannot be read'}") from None
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _of_certificate(certificate: x509.Certificate) -> bytes:
    """Return the public key of a certificate."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _chain(own: x509.Certificate, certificates: Sequence[x509.Certificate]) -> list[x509.Certificate]:
    """Return a certificate, its issuer, the issuer's issuer and so on, as far as they are among `certificates`."""
    chain: list[x509.Certificate] = [own]
    while True:
        issuer = next((each for each in certificates if each not in chain and _has_issued(each, chain[-1])), None)
        if issuer is None:
            return chain
        chain.append(issuer)


def _has_issued(issuer: x509.Certificate, certificate: x509.Certificate) -> bool:
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _names(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return the DNS names of a certificate; if there are none, the common name of its subject."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        names = alternatives.get_values_for_type(x509.DNSName)
    except x509.ExtensionNotFound:
        names = []
    names = names or [str(each.value) for each in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    return tuple(name.lower() for name in names)


def _text(certificate: x509.Certificate) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM).decode()
