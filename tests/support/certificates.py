"""Certificates for tests: an authority (CA) that issues server and client certificates, also expired ones.

Keys are EC P-256, which are made in under a millisecond. Everything is PEM, as Kafka's `ssl.keystore.type=PEM` and
OpenSSL read it: private keys in PKCS #8, the chain with the own certificate first.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, NoEncryption, pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LOOPBACK = ("localhost", "127.0.0.1")
VALID_FOR = timedelta(days=90)


def _name(common_name: str, organization: str | None) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if organization is not None:
        attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(attributes)


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


@dataclass(frozen=True)
class Identity:
    """A certificate with its private key and its issuer's certificate."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    issuer: x509.Certificate

    @property
    def certificate_pem(self) -> str:
        """The certificate alone."""
        return _pem(self.certificate)

    @property
    def chain_pem(self) -> str:
        """The certificate, then its issuer's."""
        return self.certificate_pem + _pem(self.issuer)

    def key_pem(self, password: str | None = None) -> str:
        """The private key in PKCS #8, encrypted if there is a password."""
        encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
        ).decode()

    def keystore_pem(self, password: str | None = None) -> str:
        """Key and chain in one text, as Kafka's `ssl.keystore.location` of type PEM names it."""
        return self.key_pem(password) + self.chain_pem

    def pkcs12(self, password: str) -> bytes:
        """Key and chain as a PKCS #12 file, as Java's keytool makes it."""
        return pkcs12.serialize_key_and_certificates(
            b"key", self.key, self.certificate, [self.issuer], BestAvailableEncryption(password.encode())
        )

    def write(self, directory: Path, name: str, *, password: str | None = None) -> Path:
        """Write `name.pem` (key and chain), `name.crt` (chain) and `name.key`; return the path of the first."""
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{name}.crt").write_text(self.chain_pem)
        (directory / f"{name}.key").write_text(self.key_pem(password))
        path = directory / f"{name}.pem"
        path.write_text(self.keystore_pem(password))
        return path


class Authority:
    """A certificate authority of its own; two of them do not trust each other."""

    def __init__(self, common_name: str = "Ottla test CA") -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(common_name, None)
        now = datetime.now(UTC)
        public = self.key.public_key()
        self.certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 2 * VALID_FOR)
            .not_valid_after(now + 2 * VALID_FOR)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(
                x509.KeyUsage(
                    digital_signature=True,
                    content_commitment=False,
                    key_encipherment=False,
                    data_encipherment=False,
                    key_agreement=False,
                    key_cert_sign=True,
                    crl_sign=True,
                    encipher_only=False,
                    decipher_only=False,
                ),
                critical=True,
            )
            .sign(self.key, hashes.SHA256())
        )

    @property
    def pem(self) -> str:
        return _pem(self.certificate)

    def truststore(self, password: str) -> bytes:
        """The authority's certificate as a PKCS #12 truststore that Java reads, too."""
        entry = pkcs12.PKCS12Certificate(self.certificate, b"ca")
        return pkcs12.serialize_java_truststore([entry], BestAvailableEncryption(password.encode()))

    def write(self, path: Path) -> Path:
        """Write the authority's certificate as a PEM truststore."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.pem)
        return path

    def server(self, hosts: Sequence[str] = LOOPBACK, *, expired: bool = False) -> Identity:
        """Issue a server certificate for these names and addresses; `expired`: its time was over yesterday."""
        return self._issue(_name("server", None), hosts, ExtendedKeyUsageOID.SERVER_AUTH, expired)

    def client(self, common_name: str, *, organization: str | None = None, expired: bool = False) -> Identity:
        """Issue a client certificate with this subject."""
        return self._issue(_name(common_name, organization), (), ExtendedKeyUsageOID.CLIENT_AUTH, expired)

    def named(self, subject: x509.Name) -> Identity:
        """Issue a client certificate with any subject."""
        return self._issue(subject, (), ExtendedKeyUsageOID.CLIENT_AUTH, False)

    def node(self, hosts: Sequence[str] = LOOPBACK, *, common_name: str = "node") -> Identity:
        """Issue a certificate of a node that is a server, and a client of other nodes."""
        return self._issue(_name(common_name, None), hosts, None, False)

    def _issue(
        self,
        subject: x509.Name,
        hosts: Sequence[str],
        usage: x509.ObjectIdentifier | None,
        expired: bool,
    ) -> Identity:
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        ends = now - timedelta(days=1) if expired else now + VALID_FOR
        usages = [usage] if usage else [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(ends - VALID_FOR - timedelta(days=1))
            .not_valid_after(ends)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )
        if hosts:
            names = x509.SubjectAlternativeName([_alternative(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        return Identity(builder.sign(self.key, hashes.SHA256()), key, self.certificate)
