"""Failures of TLS in one line with the cause, from what OpenSSL says."""

from __future__ import annotations

import ssl
from typing import Final

from ottla.client.address import Address
from ottla.client.errors import AuthenticationError, ClientError, NotConnected, NoTls

# X509_V_ERR_* of OpenSSL: why a certificate is not accepted.
_CERTIFICATE: Final = {
    9: "its certificate is not valid yet",
    10: "its certificate has expired",
    18: "its certificate is signed by itself and not in the truststore",
    19: "its certificate is of an authority that is not in the truststore",
    20: "its certificate is of an authority that is not in the truststore",
    21: "its certificate is of an authority that is not in the truststore",
    26: "its certificate is not for servers",
    62: "its certificate is not for this host name",
    64: "its certificate is not for this address",
}
_PLAINTEXT: Final = "is it a plaintext listener (security.protocol=PLAINTEXT or SASL_PLAINTEXT)?"
# Parts of OpenSSL's reason: what the other side said, or what it is.
_REASONS: Final = {
    "WRONG_VERSION_NUMBER": f"it does not speak TLS: {_PLAINTEXT}",
    "RECORD_LAYER_FAILURE": f"it does not speak TLS: {_PLAINTEXT}",
    "PACKET_LENGTH_TOO_LONG": f"it does not speak TLS: {_PLAINTEXT}",
    "HTTP_REQUEST": "it speaks HTTP",
    "CERTIFICATE_REQUIRED": "it wants a certificate of the client: set ssl.keystore.location",
    "ALERT_BAD_CERTIFICATE": "it did not accept the client's certificate, or wants one (ssl.keystore.location)",
    "ALERT_CERTIFICATE_EXPIRED": "the client's certificate has expired",
    "ALERT_CERTIFICATE_UNKNOWN": "it did not accept the client's certificate",
    "ALERT_UNKNOWN_CA": "it does not know the authority of the client's certificate",
    "ALERT_HANDSHAKE_FAILURE": "the two share no cipher suite, or it wants a certificate of the client",
    "ALERT_PROTOCOL_VERSION": "it does not allow the client's versions of TLS (ssl.enabled.protocols)",
    "UNSUPPORTED_PROTOCOL": "it does not allow the client's versions of TLS (ssl.enabled.protocols)",
    "NO_PROTOCOLS_AVAILABLE": "ssl.enabled.protocols has no version that OpenSSL allows",
    "UNRECOGNIZED_NAME": "it has no certificate for this host name",
}


def tls_failure(address: Address, error: BaseException) -> ClientError:
    """Return the error of a failed handshake: an AuthenticationError if another attempt would fail, too."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return AuthenticationError(f"no TLS connection to {address}: {certificate_problem(error)}")
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError | ConnectionError):
        return NoTls(f"no TLS connection to {address}: it closed the connection during the handshake: {_PLAINTEXT}")
    if isinstance(error, ssl.SSLError):
        return AuthenticationError(f"no TLS connection to {address}: {reason_of(error)}")
    return NotConnected(f"no TLS connection to {address}: {error}")


def certificate_problem(error: ssl.SSLCertVerificationError) -> str:
    """Return why the server's certificate is not accepted."""
    return _CERTIFICATE.get(error.verify_code, error.verify_message)


def refusal(address: Address, error: OSError) -> AuthenticationError | None:
    """Return the error of a connection that the server ended because of the client's certificate: with TLS 1.3 it says
    so only after the handshake. None if the connection was lost for another reason.
    """
    if not isinstance(error, ssl.SSLError) or isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return None
    return AuthenticationError(f"{address} ended the TLS connection: {reason_of(error)}")


def reason_of(error: ssl.SSLError) -> str:
    said = (error.reason or "").upper()
    return next((text for part, text in _REASONS.items() if part in said), str(error.reason or error).lower())
