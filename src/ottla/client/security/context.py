"""Python's TLS context from a `Tls`: made once, and again when one of its files has changed.

Rule: it reads files and may decrypt keys, so callers with an event loop have a thread do it (`context_in_thread`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
import tempfile
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from ottla.client.errors import AuthenticationError
from ottla.client.security.cipher_suites import choose
from ottla.client.security.key_entries import KeyEntry, key_entries
from ottla.client.security.stores import read_store, reveal
from ottla.client.security.tls import Store, Tls
from ottla.model import limits

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_PRIVATE_KEY: Final = "PRIVATE KEY-----"
_Stamp = tuple[object, ...]
_made: OrderedDict[Tls, tuple[_Stamp, ssl.SSLContext]] = OrderedDict()


async def context_in_thread(tls: Tls) -> ssl.SSLContext:
    """Return the context, made in a thread: even to see whether its files are the same may take a while."""
    return await asyncio.to_thread(context_of, tls)


def context_of(tls: Tls) -> ssl.SSLContext:
    """Return the context of these settings; raise AuthenticationError in one line if it cannot be made."""
    known = _known(tls)
    if known is not None:
        return known
    stamp = stamp_of(tls)
    made = _make(tls)
    _made[tls] = stamp, made
    while len(_made) > limits.TLS_CONTEXTS_MAX:
        _made.popitem(last=False)
    return made


def _known(tls: Tls) -> ssl.SSLContext | None:
    stamp, made = _made.get(tls, (None, None))
    return made if stamp is not None and stamp == stamp_of(tls) else None


def stamp_of(tls: Tls) -> _Stamp:
    """Return what changes when a file is replaced: a certificate that was renewed is used by the next connection."""
    return tuple(_file_stamp(store.path) for store in (tls.trusted, tls.certificate, tls.key) if store and store.path)


def _file_stamp(path: str) -> object:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _make(tls: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = tls.check_host and tls.check_certificate
    context.verify_mode = ssl.CERT_REQUIRED if tls.check_certificate else ssl.CERT_NONE
    # A server could renegotiate again and again, to keep the client busy.
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    allow(context, tls)
    if tls.trusted is None:
        context.load_default_certs()
    else:
        trust(context, tls.trusted)
    if tls.certificate is not None:
        show(context, tls.certificate, tls)
    return context


def allow(context: ssl.SSLContext, tls: Tls) -> None:
    """Set the versions and ciphers. A list of suites without one of TLS 1.3 allows no TLS 1.3, as with Java."""
    protocols = [_VERSIONS[each] for each in tls.protocols]
    if tls.cipher_suites:
        chosen = choose(tls.cipher_suites)
        if chosen.ciphers:
            try:
                context.set_ciphers(chosen.ciphers)
            except ssl.SSLError:
                raise AuthenticationError(
                    f"ssl.cipher.suites: OpenSSL has none of {', '.join(tls.cipher_suites)}"
                ) from None
        without = {ssl.TLSVersion.TLSv1_3: not chosen.tls13, ssl.TLSVersion.TLSv1_2: not chosen.ciphers}
        protocols = [each for each in protocols if not without[each]]
        if not protocols:
            raise AuthenticationError("ssl.cipher.suites has no suite of the versions in ssl.enabled.protocols")
    context.minimum_version, context.maximum_version = protocols[0], protocols[-1]


def trust(context: ssl.SSLContext, store: Store) -> None:
    if store.path and os.path.isdir(store.path):
        context.load_verify_locations(capath=store.path)
        return
    certificates = read_store(store).certificates
    try:
        context.load_verify_locations(cadata=certificates)
    except (ssl.SSLError, ValueError):
        where = store.path or "the text"
        raise AuthenticationError(f"{store.setting}: {where} holds no certificate that can be read") from None


def entries_of(store: Store, tls: Tls) -> list[KeyEntry]:
    """Return the own keys with their certificates: one, unless the store holds several keys."""
    chain, key = read_store(store)
    if tls.key is not None:
        if (key or _PRIVATE_KEY in chain) and (not store.path or tls.key.path != store.path):
            raise AuthenticationError(f"{store.setting} holds a private key, and {tls.key.setting} gives one, too")
        key = read_store(tls.key).certificates
    try:
        return key_entries(f"{key}\n{chain}" if key else chain, _key_password(store, tls))
    except ValueError as error:
        raise AuthenticationError(f"{store.setting}: {error}") from None


def show(context: ssl.SSLContext, store: Store, tls: Tls, entry: KeyEntry | None = None) -> None:
    """Load the own certificate and key, the first of the store unless told. OpenSSL reads them from files only."""
    pem = (entries_of(store, tls)[0] if entry is None else entry).pem
    # There is always a password: without one OpenSSL would ask for it at the terminal.
    password = _key_password(store, tls)
    with _as_file(pem) as path:
        try:
            context.load_cert_chain(path, password=password)
        except ssl.SSLError as error:
            if "key values mismatch" in str(error):
                why = "the key does not belong to the certificate"
            elif "ENCRYPTED" in pem:
                why = "the key is encrypted, and ssl.key.password is " + ("wrong" if password else "not set")
            else:
                why = "a private key and a certificate are needed"
            raise AuthenticationError(f"{store.setting}: {why}") from None


def _key_password(store: Store, tls: Tls) -> str:
    return reveal(tls.key_password or store.password, "ssl.key.password")


@contextlib.contextmanager
def _as_file(text: str) -> Iterator[str]:
    """Give a path under which the text can be read: in memory where the system can, so that no key gets to a disk."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("ottla-tls", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, text.encode())
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.NamedTemporaryFile("w") as file:  # readable by its owner only
        file.write(text)
        file.flush()
        yield file.name
