"""Names of cipher suites: Java's (`ssl.cipher.suites` of Kafka) as OpenSSL names them.

TLS 1.3 has suites of its own, which have the same names in both. Python cannot choose among them, so that a list which
has one of them allows TLS 1.3 with all of its suites.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

TLS13_SUITES: Final = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")


class CipherChoice(NamedTuple):
    """`ciphers` is OpenSSL's list for TLS 1.2, empty if the list has none; `tls13`: whether it has one of TLS 1.3."""

    ciphers: str
    tls13: bool


def choose(suites: Iterable[str]) -> CipherChoice:
    """Sort a list of Java's or OpenSSL's names by version of TLS."""
    older: list[str] = []
    tls13 = False
    for suite in suites:
        if suite in TLS13_SUITES:
            tls13 = True
        else:
            older.append(openssl_name(suite))
    return CipherChoice(":".join(older), tls13)


def openssl_name(suite: str) -> str:
    """Return OpenSSL's name of a suite up to TLS 1.2; one that is OpenSSL's already is returned as it is."""
    keys, separator, cipher = suite.partition("_WITH_")
    if not separator or not keys.startswith(("TLS_", "SSL_")):
        return suite
    exchange = keys[4:].replace("_", "-")
    # OpenSSL leaves out the exchange by RSA, the mode CBC, and the hash of ChaCha20.
    cipher = cipher.replace("AES_", "AES").replace("_CBC", "").removesuffix("_SHA256" if "CHACHA20" in cipher else "")
    cipher = cipher.replace("_", "-")
    return cipher if exchange == "RSA" else f"{exchange}-{cipher}"
