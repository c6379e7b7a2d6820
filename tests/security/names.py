"""Names in DER and certificates with them, for tests."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from tests.security.tokens import ec_key

# Object identifiers in DER.
COMMON_NAME, COUNTRY, ORGANIZATION, TITLE = (bytes([0x55, 0x04, number]) for number in (3, 6, 10, 12))
EMAIL = bytes.fromhex("2a864886f70d010901")
USER_ID = bytes.fromhex("0992268993f22c640101")
DOMAIN = bytes.fromhex("0992268993f22c640119")
# The tags of strings with their encodings, but not BMPString, which Java 17 reads in another way than newer ones.
STRINGS = {
    0x0C: "utf-8",
    0x13: "ascii",
    0x14: "latin-1",
    0x16: "ascii",
    0x1B: "ascii",
    0x1C: "utf-32-be",
}


def der(tag: int, content: bytes) -> bytes:
    size = len(content)
    length = bytes([size]) if size < 128 else bytes([0x82]) + size.to_bytes(2)
    return bytes([tag]) + length + content


def attribute(kind: bytes, tag: int, content: bytes) -> bytes:
    return der(0x30, der(0x06, kind) + der(tag, content))


def name(*parts: Sequence[bytes]) -> bytes:
    """A name of parts, each with one or several attributes."""
    return der(0x30, b"".join(der(0x31, b"".join(part)) for part in parts))


def certificate(subject: x509.Name) -> bytes:
    """A certificate that signs itself."""
    key = ec_key()
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "issuer")])
    day = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    built = x509.CertificateBuilder(issuer, subject, key.public_key(), 1, day, day.replace(year=2046))
    return built.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)
