"""Reading keystores and truststores: PEM as it is, PKCS #12 by way of PEM; Java's JKS is refused with a hint."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from ottla.client.errors import AuthenticationError
from ottla.client.security.secret import Secret, SecretMissing
from ottla.client.security.tls import Store

_PEM: Final = b"-----BEGIN "
# The first bytes of Java's own kinds of keystore, JKS and JCEKS.
_JKS: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")


class StoreContents(NamedTuple):
    """Certificates as PEM, and the private key as PEM that is not encrypted (empty: none, or inside `certificates`)."""

    certificates: str
    key: str = ""


def read_store(store: Store) -> StoreContents:
    """Return what is in the store; raise AuthenticationError if it cannot be read."""
    if store.pem is not None:
        return StoreContents(_pem_text(reveal(store.pem, store.setting)))
    try:
        data = Path(store.path).read_bytes()
    except OSError as error:
        raise AuthenticationError(f"{store.setting}: {store.path} cannot be read: {error.strerror}") from None
    if _PEM in data:
        return StoreContents(data.decode("latin-1"))
    if data.startswith(_JKS):
        raise AuthenticationError(
            f"{store.setting}: {store.path} is a JKS keystore; convert it: keytool -importkeystore -srckeystore "
            f"{store.path} -destkeystore store.p12 -deststoretype PKCS12"
        )
    return _pkcs12(store, data)


def is_pem_file(path: str) -> bool | None:
    """Return whether a file has PEM; None if it cannot be read, which `read_store` says better."""
    try:
        return _PEM in Path(path).read_bytes()
    except OSError:
        return None


def reveal(secret: Secret | None, setting: str) -> str:
    """Return the text of a secret (empty if there is none); raise AuthenticationError if it is missing."""
    try:
        return "" if secret is None else secret.reveal()
    except SecretMissing as error:
        raise AuthenticationError(f"{setting}: {error}") from None


def _pem_text(text: str) -> str:
    """Return a PEM text with its lines apart: in a .properties file it is often one line, with blanks for line ends."""
    if "\n" in text.strip() or "-----" not in text:
        return text
    lines: list[str] = []
    for number, part in enumerate(text.split("-----")):
        # Parts alternate: between certificates, a BEGIN or END line, the encoded bytes.
        lines.append(f"-----{part}-----" if number % 2 else "\n".join(part.split()))
    return "\n".join(line for line in lines if line) + "\n"


def _pkcs12(store: Store, data: bytes) -> StoreContents:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.serialization import pkcs12

    password = reveal(store.password, store.setting)
    try:
        found = pkcs12.load_pkcs12(data, password.encode() or None)
    except ValueError:
        why = "the password is wrong" if password else "it is neither PEM nor PKCS #12, or it has a password"
        raise AuthenticationError(f"{store.setting}: {store.path} cannot be read: {why}") from None
    certificates = [each for each in (found.cert, *found.additional_certs) if each is not None]
    pem = serialization.Encoding.PEM
    key = ""
    if found.key is not None:
        form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        key = found.key.private_bytes(pem, form, plain).decode()
    return StoreContents("".join(each.certificate.public_bytes(pem).decode() for each in certificates), key)
