"""Codecs that several threads compile at once, as a node, a console and clients in one process do."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from ottla.wire.api import response_class
from ottla.wire.compile import decoder, encoder
from ottla.wire.decoding import decode_source
from ottla.wire.encoding import encode_source
from ottla.wire.message import Struct, build
from ottla.wire.messages.records.fetch import FetchRequest
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest

THREADS = 4
REQUESTS: tuple[type[Struct], ...] = (FetchRequest, ProduceRequest, CreateTopicsRequest)
KINDS = [*REQUESTS, *(response_class(each.key) for each in (FetchRequest, ProduceRequest, CreateTopicsRequest))]
CODECS = [(kind, version) for kind in KINDS for version in range(kind.versions.low, kind.versions.high + 1)]


@pytest.fixture(autouse=True)
def hurried_threads() -> Iterator[None]:
    """Threads that take turns, and garbage collections, as often as possible."""
    interval_s, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(50)
    yield
    gc.set_threshold(*thresholds)
    sys.setswitchinterval(interval_s)


def test_each_thread_gets_every_codec() -> None:
    """All compile all of them anew, in the same order, so that they are at the same ones at the same time."""
    barrier = threading.Barrier(THREADS)

    def compile_all() -> list[tuple[bytes, bytes]]:
        barrier.wait()
        return [code_of(kind, version) for kind, version in CODECS]

    with ThreadPoolExecutor(THREADS) as threads:
        made = [each.result() for each in [threads.submit(compile_all) for _ in range(THREADS)]]
    assert all(each == made[0] for each in made)
    known = [
        (encoder(kind, version).__code__.co_code, decoder(kind, version).__code__.co_code) for kind, version in CODECS
    ]
    assert made[0] == known


def code_of(kind: type[Struct], version: int) -> tuple[bytes, bytes]:
    """The bytecode of a codec that is compiled now."""
    name = f"{kind.__name__} v{version} of a test"
    source, scope = encode_source(kind, version)
    encode = build(source, f"<encode {name}>", scope, "encode")
    source, scope = decode_source(kind, version)
    decode = build(source, f"<decode {name}>", scope, "decode")
    return encode.__code__.co_code, decode.__code__.co_code
