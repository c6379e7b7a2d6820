"""The error of a lost connection, with the likely reason in one line.

A listener whose security protocol differs from the client's closes the connection without saying why. The moment tells:
a TLS listener closes the connection of a plaintext client before it has answered anything; a SASL listener closes it at
the first request that needs authentication.
"""

from __future__ import annotations

from ottla.client.address import Address
from ottla.client.errors import ClientError, ConnectionLost, UnlikeListener


def loss(
    address: Address, error: Exception | None, *, at_first: bool, with_tls: bool, with_versions: bool
) -> ClientError:
    """Return the error of a lost connection.

    `at_first`: a request waits for its answer, nothing but ApiVersions was answered before it, and the client uses no
    SASL. `with_versions`: ApiVersions was answered.
    """
    if isinstance(error, OSError):
        from ottla.client.security.tls_failures import refusal

        refused = refusal(address, error)
        if refused is not None:
            return refused
    if not at_first:
        return ConnectionLost(f"{address} closed the connection" + ("" if error is None else f": {error}"))
    if with_versions:
        protocol = "SASL_SSL" if with_tls else "SASL_PLAINTEXT"
        why = f"at the first request: its listener may demand SASL: set security.protocol={protocol}"
    elif with_tls:
        why = "after the TLS handshake: does it want a certificate of the client (ssl.keystore.location)?"
    else:
        why = "before it answered: its listener may speak TLS: set security.protocol=SSL or SASL_SSL"
    return UnlikeListener(f"{address} closed the connection {why}")
