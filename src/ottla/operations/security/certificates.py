"""Read the certificates in a file, or the one that a listener shows."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

from ottla.model.limits import CERTIFICATE_FILE_BYTES_MAX
from ottla.operations.addresses import host_and_port
from ottla.operations.errors import CommandError, WrongUsage
from ottla.security.certificate_facts import CertificateFacts, read_certificate, read_certificates

_TIMEOUT_S = 5.0
_HINT = "give a PEM file, or the HOST:PORT of a listener with TLS"


def certificates_at(place: str) -> list[CertificateFacts]:
    """Return the certificates in a PEM file, or the certificate that the listener HOST:PORT shows."""
    if not place:
        raise WrongUsage("the name of the file is empty", _HINT)
    path = Path(place)
    if path.exists() or "/" in place:
        return certificates_in(path)
    try:
        host, port = host_and_port(place)
    except ValueError:
        raise CommandError(f"{place} is neither a file nor HOST:PORT", _HINT) from None
    return [shown_by(host, port)]


def certificates_in(path: Path) -> list[CertificateFacts]:
    """Return the certificates in a PEM file."""
    try:
        with path.open("rb") as file:
            data = file.read(CERTIFICATE_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}", _HINT) from None
    if len(data) > CERTIFICATE_FILE_BYTES_MAX:
        raise CommandError(f"{path} is larger than {CERTIFICATE_FILE_BYTES_MAX} bytes: it is no certificate", _HINT)
    try:
        return read_certificates(data)
    except ValueError:
        raise CommandError(f"{path} holds no certificate that can be read (PEM)", _HINT) from None


def shown_by(host: str, port: int, timeout_s: float = _TIMEOUT_S) -> CertificateFacts:
    """Return the certificate that a listener shows. It is not checked: it is only looked at, nothing is sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((host, port), timeout_s) as plain,
            context.wrap_socket(plain, server_hostname=host) as secured,
        ):
            return read_certificate(secured.getpeercert(binary_form=True) or b"")
    except ssl.SSLError as error:
        why = (error.reason or "no answer").lower().replace("_", " ")
        raise CommandError(
            f"{host}:{port} shows no certificate: TLS failed ({why})", "is it a plaintext port?"
        ) from None
    except (OSError, UnicodeError) as error:  # UnicodeError: the name cannot be written as DNS writes names
        why = (error.strerror if isinstance(error, OSError) else None) or str(error) or "no answer"
        raise CommandError(f"{host}:{port} cannot be reached: {why}", _HINT) from None
    except ValueError:
        raise CommandError(f"{host}:{port} shows a certificate that cannot be read", _HINT) from None
