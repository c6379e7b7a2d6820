"""What a certificate says: its names, its issuer, how long it is valid, its key. `cryptography` reads it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from ottla.model import limits

if TYPE_CHECKING:
    from cryptography import x509

_DAY_S = 86_400


class CertificateFacts(NamedTuple):
    """The names are in the form of RFC 4514, as Kafka shows them; `hosts` are names and addresses (SANs)."""

    subject: str
    issuer: str
    hosts: tuple[str, ...]
    begins: datetime
    ends: datetime
    key: str
    is_authority: bool
    uses: tuple[str, ...]  # `server`, `client`; empty: not restricted

    def days_left(self, now: datetime) -> int:
        """Return how many whole days it is still valid; negative if it has expired."""
        return int((self.ends - now).total_seconds() // _DAY_S)

    def problem(self, now: datetime) -> str | None:
        """Return what is wrong with its period of validity, also that it ends soon; None if nothing is."""
        at = f"{self.ends:%Y-%m-%d %H:%M} UTC"
        if self.ends <= now:
            return f"has expired at {at}"
        if self.begins > now:
            return f"is not valid before {self.begins:%Y-%m-%d %H:%M} UTC"
        days = self.days_left(now)
        return f"expires in {days} days, at {at}" if days < limits.CERTIFICATE_WARNING_DAYS else None


def read_certificates(pem: str | bytes) -> list[CertificateFacts]:
    """Return the facts of all certificates in a PEM text, in its order; raise ValueError if there is none."""
    from cryptography import x509

    data = pem.encode() if isinstance(pem, str) else pem
    return [_facts(each) for each in x509.load_pem_x509_certificates(data)]


def read_certificate(der: bytes) -> CertificateFacts:
    """Return the facts of one certificate in DER, as a TLS peer shows it; raise ValueError if it is none."""
    from cryptography import x509

    return _facts(x509.load_der_x509_certificate(der))


def _facts(certificate: x509.Certificate) -> CertificateFacts:
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    try:
        extensions = certificate.extensions
    except (x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        raise ValueError(str(error)) from None
    hosts: tuple[str, ...] = ()
    is_authority = False
    uses: tuple[str, ...] = ()
    for each in extensions:
        value = each.value
        if isinstance(value, x509.SubjectAlternativeName):
            hosts = tuple(str(name.value) for name in value if isinstance(name, x509.DNSName | x509.IPAddress))
        elif isinstance(value, x509.BasicConstraints):
            is_authority = value.ca
        elif isinstance(value, x509.ExtendedKeyUsage):
            known = {ExtendedKeyUsageOID.SERVER_AUTH: "server", ExtendedKeyUsageOID.CLIENT_AUTH: "client"}
            uses = tuple(known[usage] for usage in value if usage in known)
    return CertificateFacts(
        certificate.subject.rfc4514_string(),
        certificate.issuer.rfc4514_string(),
        hosts,
        certificate.not_valid_before_utc,
        certificate.not_valid_after_utc,
        _key_text(certificate),
        is_authority,
        uses,
    )


def _key_text(certificate: x509.Certificate) -> str:
    """Return the kind of the key. Some that OpenSSL knows, `cryptography` does not read."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    try:
        key = certificate.public_key()
    except (UnsupportedAlgorithm, ValueError):
        return "a key that is not known here"
    if isinstance(key, EllipticCurvePublicKey):
        return f"EC {key.curve.name}"
    if isinstance(key, RSAPublicKey):
        return f"RSA {key.key_size}"
    return type(key).__name__.strip("_").removesuffix("PublicKey")
