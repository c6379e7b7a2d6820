"""Tls: which authorities a client trusts, which certificate it shows, and which versions and ciphers it allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ottla.client.security.secret import Secret
from ottla.client.security.values import SettingValues

PROTOCOLS: Final = ("TLSv1.2", "TLSv1.3")
_STORE_TYPES: Final = ("PEM", "PKCS12", "JKS")
_BOOLEANS: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Store:
    """Certificates or a key: in a file (PEM or PKCS #12), or as PEM text. `setting` names it in errors."""

    setting: str
    path: str = ""
    pem: Secret | None = None
    password: Secret | None = None


@dataclass(frozen=True, slots=True)
class Tls:
    """The client's side of TLS. `context.py` makes Python's object from it."""

    trusted: Store | None = None  # None: the authorities of the operating system
    certificate: Store | None = None
    key: Store | None = None  # None: it is in `certificate`
    key_password: Secret | None = None
    check_host: bool = True
    check_certificate: bool = True
    protocols: tuple[str, ...] = PROTOCOLS
    cipher_suites: tuple[str, ...] = ()

    @classmethod
    def of(cls, values: SettingValues) -> Tls:
        """Read the settings `ssl.*`; raise ValueError if one is wrong."""
        for name in ("ssl.truststore.type", "ssl.keystore.type"):
            kind = values.text(name).upper()
            if kind and kind not in _STORE_TYPES:
                raise ValueError(f"{name} is one of {', '.join(_STORE_TYPES)}, not {kind}")
        certificate = _store(
            values,
            ("ssl.keystore.certificate.chain", "ssl.certificate.pem"),
            ("ssl.keystore.location", "ssl.certificate.location"),
            "ssl.keystore.password",
        )
        key = _store(values, ("ssl.keystore.key", "ssl.key.pem"), ("ssl.key.location",), None)
        if key is not None and certificate is None:
            raise ValueError(f"{key.setting} is a key without a certificate: set ssl.keystore.certificate.chain, too")
        if key is None and certificate is not None and certificate.pem is not None:
            raise ValueError(f"{certificate.setting} is a certificate without a key: set ssl.keystore.key, too")
        verification = values.text("enable.ssl.certificate.verification").lower() or "true"
        if verification not in _BOOLEANS:
            raise ValueError(f"enable.ssl.certificate.verification is true or false, not {verification}")
        return cls(
            trusted=_store(
                values,
                ("ssl.truststore.certificates", "ssl.ca.pem"),
                ("ssl.truststore.location", "ssl.ca.location"),
                "ssl.truststore.password",
            ),
            certificate=certificate,
            key=key,
            key_password=values.secret("ssl.key.password"),
            check_host=_checks_host(values),
            check_certificate=_BOOLEANS[verification],
            protocols=_protocols(values),
            cipher_suites=values.items("ssl.cipher.suites"),
        )


def _store(
    values: SettingValues, inline: tuple[str, ...], files: tuple[str, ...], password: str | None
) -> Store | None:
    secret = values.secret(password) if password is not None else None
    name = values.name_of(*inline)
    if name is not None:
        return Store(name, pem=values.secret(name))
    name = values.name_of(*files)
    return None if name is None else Store(name, path=values.text(name), password=secret)


def _checks_host(values: SettingValues) -> bool:
    """As with Kafka the default is to check, and an empty text turns that off (`none` with librdkafka)."""
    algorithm = values.raw("ssl.endpoint.identification.algorithm")
    if algorithm is None or algorithm.lower() == "https":
        return True
    if algorithm.lower() in ("", "none"):
        return False
    raise ValueError(f"ssl.endpoint.identification.algorithm is https or empty, not {algorithm}")


def _protocols(values: SettingValues) -> tuple[str, ...]:
    given = values.items("ssl.enabled.protocols") or PROTOCOLS
    unknown = [each for each in given if each not in PROTOCOLS]
    if unknown:
        raise ValueError(f"ssl.enabled.protocols are some of {', '.join(PROTOCOLS)}, not {', '.join(unknown)}")
    return tuple(each for each in PROTOCOLS if each in given)
