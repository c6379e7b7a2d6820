"""What a user is told of errors that have no words of their own."""

from __future__ import annotations

import errno

import pytest

from ottla.operations.failures import message_of


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (TimeoutError(), "no answer came in time"),
        (TimeoutError("waited for 3 s"), "waited for 3 s"),
        (TimeoutError(errno.ETIMEDOUT, "Connection timed out"), "Connection timed out"),
        (KeyError(), "KeyError"),
    ],
)
def test_message_of(error: Exception, told: str) -> None:
    assert message_of(error) == told
