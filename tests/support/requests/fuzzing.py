"""What fuzzing of logins sends: frames and messages as they should be, damaged, and in any order.

The seed is fixed unless OTTLA_FUZZ_SEED chooses another one.
"""

from __future__ import annotations

import os
import random
import socket
import ssl
import struct
from collections.abc import Sequence
from contextlib import suppress

from tests.support.requests.raw import Closed

from ottla.wire.frame import request_frame
from ottla.wire.message import Request, Response
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

SEED = os.environ.get("OTTLA_FUZZ_SEED", "15")
HELLO = ApiVersionsRequest(client_software_name="x", client_software_version="1")
METADATA = MetadataRequest(topics=[])
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "GSSAPI", "", "\0")
MESSAGES = (b"\0a\0b", b"n,,n=alice,r=x", b"\0" * 9, b"n,,\x01auth=Bearer x\x01\x01", b"\x01")


def chance(name: str) -> random.Random:
    """The random choices of one test."""
    return random.Random(f"{SEED} {name}")


def noise(rng: random.Random) -> bytes:
    return rng.randbytes(rng.choice((0, 1, 5, 40, 2_000)))


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Other bytes: with one bit changed, cut off, with a part of them twice or left out, or with noise in them."""
    made = data
    while made == data:
        made = _damaged(data, rng)
    return made


def _damaged(data: bytes, rng: random.Random) -> bytes:
    at, end = sorted((rng.randrange(len(data)), rng.randrange(len(data))))
    kind = rng.randrange(5)
    if kind == 0:
        return data[:at] + bytes((data[at] ^ 1 << rng.randrange(8),)) + data[at + 1 :]
    if kind == 1:
        return data[:at]
    if kind == 2:
        return data[:end] + data[at:]
    if kind == 3:
        return data[:at] + data[end + 1 :]
    return data[:at] + noise(rng) + data[at:]


def odd_frame(rng: random.Random, number: int, messages: Sequence[bytes] = MESSAGES) -> bytes:
    """A frame of the conversation with one of these messages of mechanisms, as it should be or damaged."""
    message = rng.choice((noise(rng), *messages))
    if message and rng.random() < 0.5:
        message = damaged(message, rng)
    requests: list[tuple[Request[Response], int]] = [
        (HELLO, rng.choice((0, 3, 4))),
        (SaslHandshakeRequest(mechanism=rng.choice(MECHANISMS)), rng.choice((0, 1))),
        (SaslAuthenticateRequest(auth_bytes=message), 2),
        (METADATA, 12),
    ]
    frame = bytearray(request_frame(*rng.choice(requests), number, "fuzz"))
    damage = rng.randrange(6)
    if damage == 0:
        frame[rng.randrange(len(frame))] ^= 1 << rng.randrange(8)
    elif damage == 1:
        del frame[rng.randrange(len(frame)) :]
    elif damage == 2:
        frame[:4] = struct.pack(">i", rng.choice((-1, 0, 1, 1 << 19, 1 << 20, (1 << 31) - 1)))
    elif damage == 3:
        frame += noise(rng)
    return bytes(frame)


def second_flight(connection: socket.socket, context: ssl.SSLContext) -> bytes:
    """Begin a handshake, and return what the client would send next: its certificate, the proof of its key, and the
    end of its handshake. With TLS 1.2 most of it is not encrypted.
    """
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    connection.sendall(outgoing.read())
    while not outgoing.pending:
        received = connection.recv(1 << 16)
        if not received:
            raise Closed
        incoming.write(received)
        with suppress(ssl.SSLWantReadError):
            tls.do_handshake()
    return outgoing.read()
