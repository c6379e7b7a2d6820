"""Tokens of an identity provider that is slow: it ends in time, and tokens of other providers do not wait for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.support.processes.dripping import DrippingServer
from tests.support.waiting import WAIT_S

from ottla.client.errors import AuthenticationError, NotConnected
from ottla.client.security.secret import Secret
from ottla.client.security.security import Security
from ottla.client.security.tokens import TokenEndpoint, TokenPatience
from ottla.model import limits

SECRET = Secret("opensesame")


class _Quick(BaseHTTPRequestHandler):
    asked = 0
    failures = 0  # so many answers say that the provider cannot answer now

    def do_POST(self) -> None:
        type(self).asked += 1
        is_down = self.failures > 0
        type(self).failures -= is_down
        data = b'{"access_token": "quick", "expires_in": 3600}'
        self.send_response(503 if is_down else 200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


@pytest.fixture
def quick() -> Iterator[tuple[str, type[_Quick]]]:
    kind = type("Quick", (_Quick,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/token", kind
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def slow() -> Iterator[DrippingServer]:
    server = DrippingServer()
    yield server
    server.close()


def test_a_slow_provider_holds_up_no_other(quick: tuple[str, type[_Quick]]) -> None:
    url, kind = quick
    slow = DrippingServer()
    with ThreadPoolExecutor(2) as threads:
        try:
            waiting = threads.submit(TokenEndpoint(f"http://{slow.address}/token", "me", SECRET).token)
            assert slow.asked.wait(WAIT_S)
            other = TokenEndpoint(url, "me", SECRET)
            assert threads.submit(other.token).result(limits.TOKEN_READ_S / 2) == "quick"
            assert not waiting.done()
            assert other.token() == "quick" and kind.asked == 1, "it is kept"
        finally:
            slow.close()
        with pytest.raises((NotConnected, AuthenticationError)):  # cut off, or an answer of blanks
            waiting.result(WAIT_S)


def test_an_answer_that_never_ends(monkeypatch: pytest.MonkeyPatch, slow: DrippingServer) -> None:
    """Each byte comes in time, but the whole does not."""
    monkeypatch.setattr(limits, "TOKEN_READ_S", 0.2)
    with ThreadPoolExecutor(1) as thread:
        asking = thread.submit(TokenEndpoint(f"http://{slow.address}/token", "me", SECRET).token)
        with pytest.raises(NotConnected, match=r"takes longer than 0\.2 seconds"):
            asking.result(WAIT_S)


def test_the_settings_of_waits_and_tries(slow: DrippingServer) -> None:
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": f"http://{slow.address}/token",
        "sasl.oauthbearer.client.credentials.client.id": "me",
        "sasl.oauthbearer.client.credentials.client.secret": "opensesame",
        "sasl.login.read.timeout.ms": "200",
    }
    sasl = Security.of(settings).sasl
    assert sasl is not None and sasl.tokens is not None
    with pytest.raises(NotConnected, match=r"takes longer than 0\.2 seconds"):
        sasl.tokens.token()
    more = {"connect.timeout.ms": "300", "retry.backoff.ms": "50", "retry.backoff.max.ms": "4000"}
    sasl = Security.of(settings | {f"sasl.login.{name}": text for name, text in more.items()}).sasl
    assert sasl is not None and isinstance(sasl.tokens, TokenEndpoint)
    assert sasl.tokens.patience == TokenPatience(0.3, 0.2, 0.05, 4.0)
    with pytest.raises(ValueError, match=r"sasl\.login\.retry\.backoff\.ms is a number of milliseconds above 0"):
        Security.of(settings | {"sasl.login.retry.backoff.ms": "soon"})


def test_waits_double_until_their_time_is_over() -> None:
    times = iter([100, 100, 100.1, 100.3, 100.7, 101])  # as if each wait were as long as it should be
    waits = list(TokenPatience(backoff_s=0.1, retry_for_s=1.0).waits(lambda: next(times)))
    assert waits == pytest.approx([0.1, 0.2, 0.4, 0.3])
    assert list(TokenPatience().waits(lambda: 0.0)) == [], "it tries once"


def test_a_provider_that_recovers_is_asked_again(quick: tuple[str, type[_Quick]]) -> None:
    url, kind = quick
    kind.failures = 3
    patience = TokenPatience(backoff_s=0.01, retry_for_s=WAIT_S)
    assert TokenEndpoint(url, "patient", SECRET, patience=patience).token() == "quick"
    assert kind.asked == 4
    kind.failures = 1
    with pytest.raises(NotConnected, match="status 503"):
        TokenEndpoint(url, "impatient", SECRET).token()
    assert kind.asked == 5


def test_all_who_need_one_token_share_it(quick: tuple[str, type[_Quick]]) -> None:
    url, kind = quick
    endpoint = TokenEndpoint(url, "others", SECRET)
    with ThreadPoolExecutor(8) as threads:
        assert {each.result(WAIT_S) for each in [threads.submit(endpoint.token) for _ in range(50)]} == {"quick"}
    assert kind.asked == 1
