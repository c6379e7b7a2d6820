"""ClientHello: the first message of a TLS client, judged before OpenSSL does work for it (ADR 0049).

In TLS 1.3 the client chooses the group of the key exchange. With a finite field (ffdhe8192) the server needs 100 ms of
CPU to answer, and the client nothing, since it may send the same bytes again and again. Elliptic curves cost less than
a millisecond. Python's `ssl` cannot restrict the groups, so hellos that lead to a finite field are refused here.

Nothing but one hello may come first: no alert, which OpenSSL would skip, and nothing else that OpenSSL might read
differently. Bytes that are no TLS at all are left to OpenSSL, which says what they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ottla.model import limits

# Records and messages.
_RECORD_HEADER_BYTES: Final = 5  # the type, the version (2 bytes) and the length (2 bytes)
_CONTENT_TYPES: Final = range(20, 64)  # what a first byte of TLS may be (RFC 7983)
_HANDSHAKE: Final = 22
_MAJOR_VERSION: Final = 3
_MESSAGE_HEADER_BYTES: Final = 4  # the type, and the length (3 bytes)
_CLIENT_HELLO: Final = 1
_VERSION_AND_RANDOM_BYTES: Final = 34
# Extensions, and what they name.
_SUPPORTED_GROUPS: Final = 10
_KEY_SHARE: Final = 51
_FINITE_FIELDS: Final = range(0x0100, 0x0200)  # ffdhe2048 and larger ones (RFC 7919)
_CURVES: Final = frozenset((0x0017, 0x0018, 0x0019, 0x001D, 0x001E))  # P-256, P-384, P-521, X25519, X448


class BadHello(ValueError):
    """The client is refused; the text says why."""


class ClientHelloReader:
    """Collects the bytes of one client until its hello is whole."""

    def __init__(self) -> None:
        self.received = bytearray()  # all bytes so far, as they came
        self._message = bytearray()
        self._at = 0  # where the next record begins

    def feed(self, data: bytes) -> bool:
        """Take the next bytes; return whether OpenSSL may have all of them. Raise BadHello if the client is refused."""
        self.received += data
        received = self.received
        if not received:
            return False
        if received[0] not in _CONTENT_TYPES:
            return True
        while len(received) >= self._at + _RECORD_HEADER_BYTES:
            kind, major = received[self._at], received[self._at + 1]
            size_bytes = received[self._at + 3] << 8 | received[self._at + 4]
            if kind != _HANDSHAKE or major != _MAJOR_VERSION:
                raise BadHello("the first message is no hello")
            if not 0 < size_bytes <= limits.TLS_RECORD_DATA_BYTES:
                raise BadHello("a record of the hello has a bad length")
            begin = self._at + _RECORD_HEADER_BYTES
            if len(received) < begin + size_bytes:
                break
            self._message += received[begin : begin + size_bytes]
            self._at = begin + size_bytes
            if self._is_whole():
                judge(bytes(self._message[_MESSAGE_HEADER_BYTES:]))
                return True
        if len(received) > limits.TLS_HELLO_BYTES_MAX:
            raise BadHello(f"the hello has more than {limits.TLS_HELLO_BYTES_MAX} bytes")
        return False

    def _is_whole(self) -> bool:
        message = self._message
        if message[0] != _CLIENT_HELLO:
            raise BadHello("the first message is no hello")
        if len(message) < _MESSAGE_HEADER_BYTES:
            return False
        whole_bytes = _MESSAGE_HEADER_BYTES + int.from_bytes(message[1:_MESSAGE_HEADER_BYTES])
        if len(message) > whole_bytes:
            raise BadHello("another message is behind the hello")
        return len(message) == whole_bytes


def judge(hello: bytes) -> None:
    """Raise BadHello if this hello, without its header, cannot be read, or leads to a finite field."""
    parts = _Parts(hello)
    parts.skip(_VERSION_AND_RANDOM_BYTES)
    parts.vector(1)  # the session's id
    parts.vector(2)  # the ciphers
    parts.vector(1)  # the compressions
    if parts.at_end:
        return
    extensions = _Parts(parts.only_vector(2))
    found: dict[int, bytes] = {}
    while not extensions.at_end:
        kind = extensions.number(2)
        if kind in found:
            raise BadHello("the hello has an extension twice")
        found[kind] = extensions.vector(2)
    if _SUPPORTED_GROUPS in found:
        groups = set(_groups(found[_SUPPORTED_GROUPS]))
        if not groups & _CURVES and any(group in _FINITE_FIELDS for group in groups):
            raise BadHello("the client knows finite fields only, and no elliptic curve")
    if _KEY_SHARE in found and any(group in _FINITE_FIELDS for group in _shares(found[_KEY_SHARE])):
        raise BadHello("the client wants a key exchange with a finite field")


def _groups(extension: bytes) -> Iterator[int]:
    groups = _Parts(_Parts(extension).only_vector(2))
    while not groups.at_end:
        yield groups.number(2)


def _shares(extension: bytes) -> Iterator[int]:
    shares = _Parts(_Parts(extension).only_vector(2))
    while not shares.at_end:
        yield shares.number(2)
        shares.vector(2)  # the key


class _Parts:
    """Bytes that are read part by part; raises BadHello where they end too early."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at == len(self._data)

    def skip(self, size_bytes: int) -> bytes:
        begin, self._at = self._at, self._at + size_bytes
        if self._at > len(self._data):
            raise BadHello("the hello cannot be read")
        return self._data[begin : self._at]

    def number(self, size_bytes: int) -> int:
        return int.from_bytes(self.skip(size_bytes))

    def vector(self, length_bytes: int) -> bytes:
        return self.skip(self.number(length_bytes))

    def only_vector(self, length_bytes: int) -> bytes:
        """Return the content of a vector with nothing behind it."""
        content = self.vector(length_bytes)
        if not self.at_end:
            raise BadHello("the hello cannot be read")
        return content
