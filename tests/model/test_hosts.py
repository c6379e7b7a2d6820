"""What can be the name of a host."""

import pytest

from ottla.model.hosts import is_host

GOOD = ["h", "localhost", "127.0.0.1", "::1", "fe80::1%eth0", "a-b.example.", "_srv.x", "bücher.example", 63 * "a"]
BAD = ["", ".", "..", "a..b", "-a", "a b", "a/b", "a:b:x", "[::1]", "http://h", "h,h", "ü ü", 64 * "a", 64 * "abcd."]


@pytest.mark.parametrize("text", GOOD)
def test_hosts(text: str) -> None:
    assert is_host(text)


@pytest.mark.parametrize("text", BAD)
def test_what_is_none(text: str) -> None:
    assert not is_host(text)
