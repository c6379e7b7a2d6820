"""The hello of a TLS client: what passes, what is refused, and that none that passes has OpenSSL use a finite field."""

import ssl
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.security.secured import Certificates

from ottla.model import limits
from ottla.security.client_hello import BadHello, ClientHelloReader

P256, X25519, FFDHE2048, FFDHE8192, GREASE = 0x0017, 0x001D, 0x0100, 0x0104, 0x0A0A
# The generator is a point of the curve, and any number serves as a key of the others.
P256_KEY = bytes.fromhex(
    "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
    "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
)
KEYS = {P256: P256_KEY, X25519: b"\x09" + bytes(31), FFDHE2048: b"\x5a" * 256, FFDHE8192: b"\x5a" * 1024, GREASE: b"x"}
GROUPS, SHARES = 10, 51


def vector(content: bytes, length_bytes: int = 2) -> bytes:
    return len(content).to_bytes(length_bytes) + content


def numbers(*values: int) -> bytes:
    return b"".join(each.to_bytes(2) for each in values)


def records(message: bytes, size_bytes: int = 1 << 14) -> bytes:
    parts = [message[at : at + size_bytes] for at in range(0, len(message), size_bytes)]
    return b"".join(b"\x16\x03\x01" + vector(part) for part in parts)


def hello(groups: list[int], shares: list[int], *more: bytes) -> bytes:
    """A hello of TLS 1.3, as a handshake message."""
    extensions = [
        numbers(GROUPS) + vector(vector(numbers(*groups))),
        numbers(13) + vector(vector(numbers(0x0403, 0x0804, 0x0805, 0x0806, 0x0401))),  # signatures
        numbers(43) + vector(vector(numbers(0x0304), 1)),  # TLS 1.3
        numbers(SHARES) + vector(vector(b"".join(numbers(each) + vector(KEYS[each]) for each in shares))),
        *more,
    ]
    body = numbers(0x0303) + bytes(32) + vector(bytes(32), 1) + vector(numbers(0x1301)) + vector(b"\0", 1)
    return b"\x01" + vector(body + vector(b"".join(extensions)), 3)


def judged(data: bytes) -> bool:
    return ClientHelloReader().feed(data)


def real_hello(lowest: ssl.TLSVersion, highest: ssl.TLSVersion) -> bytes:
    context = ssl.create_default_context()
    context.minimum_version, context.maximum_version = lowest, highest
    outgoing = ssl.MemoryBIO()
    tls = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="broker.example.com")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """OpenSSL alone, with all groups that it has."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificates = Certificates.make(tmp_path_factory.mktemp("certificates"))
    made.load_cert_chain(Path(certificates.node()["ssl.keystore.location"]))
    return made


def group_of_answer(server: ssl.SSLContext, data: bytes) -> int | None:
    """The group that OpenSSL has chosen for a hello; None if it refuses the hello or asks for another one."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = server.wrap_bio(incoming, outgoing, server_side=True)
    incoming.write(data)
    with pytest.raises(ssl.SSLError):
        tls.do_handshake()
    answer = outgoing.read()
    if answer[:1] != b"\x16":
        return None
    at = 5 + 4 + 34
    at += 1 + answer[at] + 3
    end = at + 2 + int.from_bytes(answer[at : at + 2])
    at += 2
    while at < end:
        kind, size = int.from_bytes(answer[at : at + 2]), int.from_bytes(answer[at + 2 : at + 4])
        if kind == SHARES:
            return int.from_bytes(answer[at + 4 : at + 6])
        at += 4 + size
    return None


@pytest.mark.parametrize("highest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_hello_of_openssl_passes_however_it_comes(highest: ssl.TLSVersion) -> None:
    data = real_hello(ssl.TLSVersion.TLSv1_2, highest)
    assert judged(data)
    reader = ClientHelloReader()
    assert not any(reader.feed(data[at : at + 1]) for at in range(len(data) - 1))
    assert reader.feed(data[-1:] + b"and more")
    assert reader.received == data + b"and more"


@pytest.mark.parametrize("size_bytes", [1, 3, 100])
def test_hello_in_many_records(size_bytes: int) -> None:
    assert judged(records(hello([X25519, P256], [X25519]), size_bytes))


@pytest.mark.parametrize(
    ("groups", "shares"),
    [
        ([FFDHE8192], [FFDHE8192]),
        ([X25519, FFDHE2048], [X25519, FFDHE2048]),
        ([X25519, FFDHE2048], [FFDHE2048]),
        ([FFDHE2048], []),  # the answer would ask for such a share
        ([GREASE, FFDHE2048], [GREASE]),
    ],
)
def test_finite_fields_are_refused(groups: list[int], shares: list[int]) -> None:
    for size_bytes in (1 << 14, 7):
        with pytest.raises(BadHello, match="finite field"):
            judged(records(hello(groups, shares), size_bytes))


def test_openssl_alone_uses_finite_fields(server: ssl.SSLContext) -> None:
    """The reason for all this. If it fails, there is another way to choose the groups, perhaps."""
    assert group_of_answer(server, records(hello([X25519, FFDHE2048], [FFDHE2048]))) == FFDHE2048
    assert group_of_answer(server, records(hello([GREASE, FFDHE2048], []))) == FFDHE2048


def test_finite_fields_that_are_only_known_are_no_harm(server: ssl.SSLContext) -> None:
    data = records(hello([FFDHE8192, P256], []))
    assert judged(data)
    assert group_of_answer(server, data) == P256  # which it asks the client for


def test_hello_behind_something_else_is_refused() -> None:
    """OpenSSL skips warnings."""
    data = records(hello([FFDHE2048], [FFDHE2048]))
    for first in (
        b"\x15\x03\x01\x00\x02\x01\x00",
        b"\x14\x03\x01\x00\x01\x01",
        b"\x17\x03\x03\x00\x01x",
        b"\x16\x03\x01\0\0",
    ):
        with pytest.raises(BadHello):
            judged(first + data)
    half, rest = records(hello([X25519], [X25519]), 100)[:105], data
    with pytest.raises(BadHello):
        judged(half + b"\x15\x03\x01\x00\x02\x01\x00" + rest)
    with pytest.raises(BadHello, match="another message"):
        judged(records(hello([X25519], [X25519]) + b"\x01\0\0\0"))
    with pytest.raises(BadHello, match="twice"):
        judged(records(hello([X25519], [X25519], numbers(SHARES) + vector(vector(b"")))))


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x20\0\x12", b"\n"])
def test_what_is_no_tls_is_left_to_openssl(data: bytes, server: ssl.SSLContext) -> None:
    assert judged(data)
    assert group_of_answer(server, data) is None


def test_too_large_hello_is_refused() -> None:
    padding = numbers(21) + vector(bytes(40_000))
    reader = ClientHelloReader()
    data = records(hello([X25519], [X25519], padding))
    assert not reader.feed(data[: limits.TLS_HELLO_BYTES_MAX])
    with pytest.raises(BadHello, match="more than"):
        reader.feed(data[limits.TLS_HELLO_BYTES_MAX :][:1])
    for size in (0xFFFF, 0x4001):
        with pytest.raises(BadHello, match="length"):
            judged(b"\x16\x03\x01" + size.to_bytes(2))


@given(
    st.lists(st.sampled_from((P256, X25519, FFDHE2048, GREASE)), max_size=4),
    st.lists(st.sampled_from((P256, X25519, FFDHE2048, GREASE)), max_size=3),
    st.integers(20, 2000),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=2),
)
def test_no_hello_that_passes_leads_to_a_finite_field(
    server: ssl.SSLContext, groups: list[int], shares: list[int], size_bytes: int, changes: list[tuple[int, int]]
) -> None:
    data = bytearray(records(hello(groups, shares), size_bytes))
    for at, value in changes:
        data[at % len(data)] = value
    group = group_of_answer(server, bytes(data))
    try:
        judged(bytes(data))
    except BadHello:
        return
    assert group is None or group not in range(0x0100, 0x0200)


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes(data: bytes, as_hello: bool) -> None:
    message = records(b"\x01" + vector(numbers(0x0303) + bytes(32) + data, 3)) if as_hello else data
    reader = ClientHelloReader()
    try:
        for at in range(0, len(message), 50):
            reader.feed(message[at : at + 50])
    except BadHello:
        pass
