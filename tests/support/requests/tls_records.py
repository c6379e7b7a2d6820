"""TlsRecords: a client that writes its TLS records itself after the handshake, so that a test decides every one.

The handshake is that of Python; the keys come from its key log. Only AES-GCM is spoken.
"""

from __future__ import annotations

import hmac
import socket
import ssl
import struct
from contextlib import suppress
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from tests.support.waiting import WAIT_S

HANDSHAKE, APPLICATION_DATA = 22, 23
_KEY_UPDATE = bytes([24, 0, 0, 1])
_SERVER_RANDOM_AT = 11  # in the first record of the server


class TlsRecords:
    def __init__(self, bootstrap: str, context: ssl.SSLContext, key_log: Path, *, source: str | None = None) -> None:
        """Connect and do the handshake; `key_log` is a file that does not exist yet."""
        host, port = bootstrap.rsplit(":", 1)
        context.keylog_filename = str(key_log)
        self.socket = socket.create_connection(
            (host, int(port)), WAIT_S, source_address=None if source is None else (source, 0)
        )
        received = self._shake_hands(context, host)
        secrets = [line.split() for line in key_log.read_text().splitlines() if not line.startswith("#")]
        by_label = {label: bytes.fromhex(secret) for label, _, secret in secrets}
        self._digest = "sha384" if "SHA384" in self._cipher else "sha256"
        self._key_size = 32 if "256" in self._cipher.partition("GCM")[0] else 16
        self._sequence = 0
        self._is_old = "CLIENT_RANDOM" in by_label
        if self._is_old:
            random = bytes.fromhex(secrets[-1][1])
            self._use_old(by_label["CLIENT_RANDOM"], received[_SERVER_RANDOM_AT : _SERVER_RANDOM_AT + 32] + random)
        else:
            self._use(by_label["CLIENT_TRAFFIC_SECRET_0"])

    def _shake_hands(self, context: ssl.SSLContext, host: str) -> bytes:
        """Return all bytes that the server has sent."""
        incoming, outgoing, received = ssl.MemoryBIO(), ssl.MemoryBIO(), b""
        tls = context.wrap_bio(incoming, outgoing, server_hostname=host)
        while True:
            with suppress(ssl.SSLWantReadError):
                tls.do_handshake()
                self.socket.sendall(outgoing.read())
                break
            self.socket.sendall(outgoing.read())
            data = self.socket.recv(1 << 16)
            assert data, "the server has refused the handshake"
            received += data
            incoming.write(data)
        cipher = tls.cipher()
        assert cipher is not None and "GCM" in cipher[0], cipher
        self._cipher = cipher[0]
        return received

    # --- TLS 1.3

    def _use(self, secret: bytes) -> None:
        self._secret = secret
        self._aead = AESGCM(self._expanded("key", self._key_size))
        self._iv = int.from_bytes(self._expanded("iv", 12), "big")
        self._sequence = 0

    def _expanded(self, label: str, size: int) -> bytes:
        name = b"tls13 " + label.encode()
        info = struct.pack(">HB", size, len(name)) + name + b"\0"
        return hmac.digest(self._secret, info + b"\1", self._digest)[:size]

    def key_update(self) -> bytes:
        """Return the record that says that new keys follow; the next record has them."""
        record = self.record(_KEY_UPDATE + b"\0", HANDSHAKE)
        self._use(self._expanded("traffic upd", len(self._secret)))
        return record

    # --- TLS 1.2

    def _use_old(self, master: bytes, randoms: bytes) -> None:
        seed, block, a = b"key expansion" + randoms, b"", b"key expansion" + randoms
        while len(block) < 2 * self._key_size + 8:
            a = hmac.digest(master, a, self._digest)
            block += hmac.digest(master, a + seed, self._digest)
        self._aead = AESGCM(block[: self._key_size])
        self._salt = block[2 * self._key_size : 2 * self._key_size + 4]
        self._sequence = 1  # the client's Finished was the first

    # --- both

    def record(self, data: bytes, kind: int = APPLICATION_DATA) -> bytes:
        """Return one encrypted record."""
        sequence = self._sequence
        self._sequence += 1
        if self._is_old:
            explicit = struct.pack(">Q", sequence)
            aad = explicit + struct.pack(">BHH", kind, 0x0303, len(data))
            body = explicit + self._aead.encrypt(self._salt + explicit, data, aad)
            return struct.pack(">BHH", kind, 0x0303, len(body)) + body
        head = struct.pack(">BHH", APPLICATION_DATA, 0x0303, len(data) + 17)
        nonce = (self._iv ^ sequence).to_bytes(12, "big")
        return head + self._aead.encrypt(nonce, data + bytes([kind]), head)

    def close(self) -> None:
        self.socket.close()
