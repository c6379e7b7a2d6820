"""Reading the keys of an identity provider: the time for it is bounded, and its address is no part of the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from tests.security.tokens import jwk, jwks, rsa_key
from tests.support.processes.dripping import ANSWER, HANDSHAKE, DrippingServer
from tests.support.waiting import WAIT_S

from ottla.model import limits
from ottla.security.jwks import VerificationKey, parse_jwks
from ottla.server.loop.workers import in_worker
from ottla.server.security.key_document import KeyDocument, KeysUnavailable
from ottla.server.security.verification_keys import ReadingPlace, VerificationKeys


@pytest.fixture
def worker() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as made:
        yield made


@pytest.mark.parametrize(("scheme", "beginning"), [("http", ANSWER), ("http", b"H"), ("https", HANDSHAKE)])
def test_a_provider_that_never_ends_its_answer(
    monkeypatch: pytest.MonkeyPatch, worker: ThreadPoolExecutor, scheme: str, beginning: bytes
) -> None:
    """Each byte comes in time, but the whole does not; an answer, its head and a handshake alike."""
    monkeypatch.setattr(limits, "JWKS_READ_S", 0.2)
    provider = DrippingServer(beginning)
    try:
        reading = worker.submit(KeyDocument(f"{scheme}://{provider.address}/keys", None).read)
        with pytest.raises(KeysUnavailable, match=r"takes longer than 0\.2 seconds"):
            reading.result(WAIT_S)
    finally:
        provider.close()


def test_secrets_in_the_address_are_not_shown() -> None:
    document = KeyDocument("https://me:pass@idp.test:8443/keys?key=secret#part", None)
    assert document.shown == "https://idp.test:8443/keys"
    assert not [word for word in ("me:", "pass", "secret") if word in repr(document)]


@pytest.mark.parametrize(
    "url",
    ["ftp://me:secret@idp/keys", "me:secret@idp", "https://me:secret", "https://[me:secret@idp", "https://", "secret"],
)
def test_an_address_that_is_none_is_not_repeated(url: str) -> None:
    with pytest.raises(ValueError, match="an http, https or file URL is needed") as refused:
        KeyDocument(url, None)
    assert "secret" not in str(refused.value)


def test_a_failure_of_any_kind_makes_the_next_read_wait(caplog: pytest.LogCaptureFixture) -> None:
    """Otherwise every token would ask the provider anew, and old keys would never be read again."""
    found = _keys()
    results: list[Exception | tuple[VerificationKey, ...]] = []
    now_ms = 0
    asked = 0

    def read() -> tuple[VerificationKey, ...]:
        nonlocal asked
        asked += 1
        result = results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    async def test() -> None:
        nonlocal now_ms
        loop = asyncio.get_running_loop()
        place = ReadingPlace(partial(in_worker, loop, None), loop.create_task, lambda: now_ms)
        known = VerificationKeys(read, place, name="x", refresh_ms=1, backoff_ms=100, backoff_max_ms=1_000)
        results.append(ZeroDivisionError("a mistake"))
        for _ in range(3):
            await known.known()
        assert (asked, known.keys) == (1, ())
        now_ms = 100
        results.append(found)
        await known.known()
        assert (asked, known.keys) == (2, found)

    with caplog.at_level(logging.WARNING):
        asyncio.run(test())
    assert "no client can log in with a token: a mistake" in caplog.text
    (told,) = [each for each in caplog.records if "a mistake" in each.getMessage()]
    assert told.exc_info is not None, "nobody expected it, so the log says where it came from"


def _keys() -> tuple[VerificationKey, ...]:
    return parse_jwks(jwks(jwk(rsa_key(), kid="one", use="sig", alg="RS256")).encode())
