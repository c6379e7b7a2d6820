"""Which changes of a certificate a listener takes, as Kafka decides it for AlterConfigs.

A new certificate has the names of the old one, so that a wrong file does not take another node's place. Where brokers
connect to each other, nodes with the old and with the new settings have to trust each other.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from cryptography import x509

_HANDSHAKE_TURNS_MAX: Final = 20  # a handshake takes four


class CertificateNames(NamedTuple):
    """The names that the own certificate of a keystore's entry is for."""

    subject: str
    alternatives: frozenset[x509.GeneralName]


def names_in(pem: str) -> CertificateNames:
    """Return the names of the first certificate of a text. One that only OpenSSL can read has none."""
    alternatives: frozenset[x509.GeneralName] = frozenset()
    try:
        own = x509.load_pem_x509_certificates(pem.encode())[0]
        subject = own.subject.rfc4514_string()
        with suppress(x509.ExtensionNotFound):
            alternatives = frozenset(own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except (ValueError, IndexError):
        return CertificateNames("", alternatives)
    return CertificateNames(subject, alternatives)


def check_names(
    old: Sequence[CertificateNames], new: Sequence[CertificateNames], *, other_subject: bool, fewer_alternatives: bool
) -> None:
    """Raise ValueError if the new certificates have other names, unless that is allowed."""
    if len(old) != len(new) and not (other_subject and fewer_alternatives):
        raise ValueError(f"the keystore has {len(new)} keys, and the present one has {len(old)}")
    for before, after in zip(old, new, strict=False):
        if not other_subject and before.subject.casefold() != after.subject.casefold():
            raise ValueError(
                f"the new certificate is of {after.subject}, and the present one of {before.subject} "
                "(ssl.allow.dn.changes=true allows it)"
            )
        lost = before.alternatives - after.alternatives
        if lost and not fewer_alternatives:
            names = ", ".join(sorted(str(each.value) for each in lost))
            raise ValueError(f"the new certificate is not for {names} any more (ssl.allow.san.changes=true allows it)")


def check_handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Have the two shake hands in memory; raise ValueError if one does not trust the other."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [server.wrap_bio(to_server, to_client, server_side=True), client.wrap_bio(to_client, to_server)]
    for _ in range(_HANDSHAKE_TURNS_MAX):
        for side in list(sides):
            try:
                side.do_handshake()
                sides.remove(side)
            except ssl.SSLWantReadError:
                pass  # it waits for the other side
            except ssl.SSLCertVerificationError as error:
                raise ValueError(f"brokers would not trust each other: {error.verify_message}") from None
            except ssl.SSLError as error:
                raise ValueError(f"brokers could not connect to each other: {error.reason or error}") from None
        if not sides:
            return
    raise ValueError("brokers could not connect to each other: their handshake does not end")
