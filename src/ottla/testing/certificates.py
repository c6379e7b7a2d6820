"""Make certificates: a development authority (CA), and certificates of servers and clients that it signs.

Keys are EC P-256. Everything is PEM: private keys in PKCS #8, a chain with the own certificate first. `cryptography` is
loaded when a certificate is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from ottla.model import limits

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

_CLOCK_SKEW = timedelta(hours=1)  # how far the clock of another machine may be behind


class PemPair(NamedTuple):
    """A certificate, or a chain of certificates, and the private key of the first."""

    certificates: str
    key: str

    @property
    def text(self) -> str:
        """Both in one text, as `ssl.keystore.location` of type PEM names it."""
        return self.certificates + self.key

    def __repr__(self) -> str:
        return "PemPair(...)"  # the key must not reach a log


def make_authority(common_name: str, now: datetime, valid_for: timedelta | None = None) -> PemPair:
    """Return a new authority that can sign certificates."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    ends = now + (timedelta(days=limits.AUTHORITY_DAYS) if valid_for is None else valid_for)
    name = _name(common_name, None)
    builder = (
        _builder(name, name, key, now, ends)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
    )
    return _pair([_signed(builder, key)], key)


def issue(
    authority: PemPair,
    common_name: str,
    hosts: Sequence[str],
    now: datetime,
    *,
    client: bool = False,
    server: bool = True,
    unit: str | None = None,
    valid_for: timedelta | None = None,
) -> PemPair:
    """Return a certificate for a server at these hosts (names and addresses), for a client, or for both.

    `unit` is the organizational unit (OU) of its subject. It ends when the authority does, at the latest. Raise
    ValueError if the authority cannot be used, or a name cannot be in a certificate.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID

    signer, signer_key = _authority(authority)
    if signer.not_valid_after_utc <= now:
        raise ValueError("the authority's certificate has expired")
    key = ec.generate_private_key(ec.SECP256R1())
    valid_for = timedelta(days=limits.CERTIFICATE_DAYS) if valid_for is None else valid_for
    ends = min(now + valid_for, signer.not_valid_after_utc)
    usages = [ExtendedKeyUsageOID.SERVER_AUTH] * server + [ExtendedKeyUsageOID.CLIENT_AUTH] * client
    builder = (
        _builder(_name(common_name, unit), signer.subject, key, now, ends)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer_key.public_key()), critical=False)
    )
    if hosts:
        names = x509.SubjectAlternativeName([_alternative(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    return _pair([_signed(builder, signer_key), signer], key)


def _authority(pair: PemPair) -> tuple[x509.Certificate, EllipticCurvePrivateKey]:
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        certificate = x509.load_pem_x509_certificate(pair.certificates.encode())
        key = load_pem_private_key(pair.key.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError("the authority's certificate or its key cannot be read (PEM without a password)") from None
    if not isinstance(key, EllipticCurvePrivateKey):
        raise ValueError("the authority's key is no EC key")
    if key.public_key() != certificate.public_key():
        raise ValueError("the authority's key does not belong to its certificate")
    return certificate, key


def _builder(
    subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey, now: datetime, ends: datetime
) -> x509.CertificateBuilder:
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, ends) - _CLOCK_SKEW)
        .not_valid_after(ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _signed(builder: x509.CertificateBuilder, key: EllipticCurvePrivateKey) -> x509.Certificate:
    from cryptography.hazmat.primitives import hashes

    return builder.sign(key, hashes.SHA256())


def _name(common_name: str, unit: str | None) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if unit is not None:
        parts.insert(0, x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit))
    return x509.Name(parts)


def _alternative(host: str) -> x509.GeneralName:
    from ipaddress import ip_address

    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pair(certificates: Sequence[x509.Certificate], key: EllipticCurvePrivateKey) -> PemPair:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return PemPair("".join(each.public_bytes(Encoding.PEM).decode() for each in certificates), text.decode())
