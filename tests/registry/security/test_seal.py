"""Signatures of forwarded requests: what is changed, old, or sent twice is refused."""

from __future__ import annotations

import pytest

from ottla.model import limits
from ottla.registry.security.caller import Caller
from ottla.registry.security.forward_seal import (
    CALLER_HEADER,
    DIGEST_HEADER,
    SEAL_HEADER,
    BadSeal,
    ForwardSeal,
    SealedRequest,
    digest_of,
)
from ottla.security.principal import Principal

ALICE = Caller(Principal.user("alice"), "10.0.0.1")
SENT = SealedRequest.of("http://leader:8081", "POST", "/subjects/s/versions?normalize=true", b'{"schema": "x"}')


class Clock:
    now_ms = 1_000_000

    def __call__(self) -> int:
        return self.now_ms


def sealed(by: ForwardSeal) -> tuple[str, str]:
    headers = by.headers(SENT, ALICE)
    assert sorted(headers) == [CALLER_HEADER, DIGEST_HEADER, SEAL_HEADER]
    assert headers[DIGEST_HEADER] == SENT.digest
    return headers[CALLER_HEADER], headers[SEAL_HEADER]


def test_a_caller_is_accepted_once() -> None:
    one, other = ForwardSeal("x" * 16, Clock()), ForwardSeal("x" * 16, Clock())
    told = sealed(one)
    assert other.open(SENT, *told) == ALICE
    with pytest.raises(BadSeal, match="before"):
        other.open(SENT, *told)
    assert other.open(SENT, *sealed(one)) == ALICE  # another attempt has another signature


@pytest.mark.parametrize(
    "changed",
    [
        SENT._replace(url="http://another:8081"),
        SENT._replace(method="DELETE"),
        SENT._replace(target="/subjects/t/versions?normalize=true"),
        SENT._replace(digest=digest_of(b'{"schema": "y"}')),
        SENT._replace(method="POS", target="T" + SENT.target),
    ],
)
def test_a_changed_request_is_refused(changed: SealedRequest) -> None:
    seal = ForwardSeal("x" * 16, Clock())
    with pytest.raises(BadSeal, match="signature"):
        seal.open(changed, *sealed(seal))


def test_a_changed_caller_and_another_secret_are_refused() -> None:
    seal = ForwardSeal("x" * 16, Clock())
    told, signature = sealed(seal)
    admin = seal.headers(SENT, Caller(Principal.user("admin"), "10.0.0.1"))[CALLER_HEADER]
    for bad in [
        (admin, signature),
        (told, ""),
        (told, signature[:-1]),
        (told, "ä"),
        ("", signature),
        ("[]", signature),
    ]:
        with pytest.raises(BadSeal):
            seal.open(SENT, *bad)
    with pytest.raises(BadSeal, match="signature"):
        ForwardSeal("y" * 16, Clock()).open(SENT, told, signature)


@pytest.mark.parametrize("late_ms", [limits.FORWARDED_AGE_MS_MAX + 1, -limits.FORWARDED_AGE_MS_MAX - 1])
def test_an_old_or_future_signature_is_refused(late_ms: int) -> None:
    clock = Clock()
    seal = ForwardSeal("x" * 16, clock)
    told = sealed(seal)
    clock.now_ms += late_ms
    with pytest.raises(BadSeal, match="clocks"):
        seal.open(SENT, *told)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FORWARDED_NONCES_MAX", 2)
    clock = Clock()
    seal = ForwardSeal("x" * 16, clock)
    for _ in range(2):
        seal.open(SENT, *sealed(seal))
    with pytest.raises(BadSeal, match="too many"):
        seal.open(SENT, *sealed(seal))
    clock.now_ms += 2 * limits.FORWARDED_AGE_MS_MAX + 1
    assert seal.open(SENT, *sealed(seal)) == ALICE
